"""What a replica knows of a shard's Lease, and when it should try to get or give up the shard: pure, no requests."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from service.sharding.shard import Shard

DELETED: Final = 0
"""The version of a Lease that has been deleted."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long things take, in real seconds."""

    duration: float = 15.0
    """Untouched for this long, a Lease is anybody's."""
    deadline: float = 10.0
    """Its holder stops acting if it could not renew for this long."""
    retry: float = 2.0
    """Pause between renewals, and between attempts."""

    @property
    def request(self) -> float:
        """A request that has no answer by then is given up, so that there is time for another."""
        return self.deadline / 3

    @property
    def under_way(self) -> float:
        """What was sent and has not arrived by then is given up, so that it does not meet the next holder's writes."""
        return 0.8 * (self.duration - self.deadline)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as one replica has seen it. Only durations on the replica's own clock count: clocks are never compared.

    `since` is when the replica first saw this holder with this renewal.
    """

    shard: Shard
    version: int
    holder: str
    renewal: str
    duration: float
    since: float
    wanted_by: str = ""
    transitions: int = 0

    @property
    def deleted(self) -> bool:
        """Whether the Lease is not there any more; whoever held it may not know yet."""
        return self.version == DELETED

    def live(self, now: float) -> bool:
        """Whether its holder may be acting; if not, it is anybody's."""
        return bool(self.holder) and now < self.since + self.duration

    def same_hold(self, other: "LeaseRecord") -> bool:
        """Whether neither the holder nor the renewal changed."""
        return (self.holder, self.renewal) == (other.holder, other.renewal)


@dataclass(frozen=True, slots=True)
class Replica:
    """Who asks: its identity, the shard it prefers if any, since when it runs, and how many shards it holds already."""

    identity: str
    preferred: int | None
    started: float
    held: int = 0

    def prefers(self, shard: Shard) -> bool:
        """Whether this shard is its own rather than one that it looks after for others."""
        return shard.number == self.preferred


def try_at(shard: Shard, sight: LeaseRecord | None, replica: Replica, times: LeaseTimes) -> float:
    """The instant at which a replica should try to get a shard that it does not hold.

    Whoever prefers it goes first, then those who hold the fewest: so the shards spread evenly without any talk.
    """
    patience = 0.0 if replica.prefers(shard) else min(0.25 + 0.5 * replica.held, times.retry)
    if sight is None:
        return replica.started + patience + _first_start(shard, replica, times)
    if sight.holder == replica.identity:
        return sight.since
    if sight.holder:
        return sight.since + sight.duration + patience
    promised = sight.wanted_by not in {"", replica.identity}
    return sight.since + patience + (times.retry if promised else 0.0)


def _first_start(shard: Shard, replica: Replica, times: LeaseTimes) -> float:
    """On the first start of all, a replica that prefers another shard leaves time to those that prefer this one."""
    return 0.0 if replica.preferred is None or replica.prefers(shard) else 2 * times.retry


def should_claim(shard: Shard, sight: LeaseRecord | None, replica: Replica, now: float) -> bool:
    """Whether to ask the holder of the preferred shard for it: it may be looking after it for us."""
    if sight is None or sight.deleted or not replica.prefers(shard) or not sight.live(now):
        return False
    return sight.holder != replica.identity and not sight.wanted_by


def shard_to_share(sights: Iterable[LeaseRecord], replica: Replica, now: float) -> Shard | None:
    """The shard that a replica without any, and without a preference, should ask for: one of a holder of several.

    It asks for one at a time, and each replica for another one.
    """
    if replica.preferred is not None or replica.held:
        return None
    live = [sight for sight in sights if sight.live(now) and not sight.deleted]
    if any(sight.wanted_by == replica.identity for sight in live):
        return None
    held = Counter(sight.holder for sight in live)
    shared = [sight.shard for sight in live if held[sight.holder] > 1 and not sight.wanted_by]
    return min(shared, key=lambda shard: shard.number, default=None)


def should_yield(shard: Shard, sight: LeaseRecord | None, replica: Replica) -> bool:
    """Whether a shard that we hold should be given to the one who asks for it."""
    return sight is not None and not replica.prefers(shard) and sight.wanted_by not in {"", replica.identity}


def rivals(sights: Iterable[LeaseRecord], count: int) -> list[LeaseRecord]:
    """Leases for another number of shards; nobody may act while one of them is live."""
    return [sight for sight in sights if sight.shard.count != count]
