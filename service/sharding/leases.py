"""What a replica knows of a shard's Lease, and when it should acquire or hand over the shard: pure, no requests."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from service.sharding.shard import Shard

DELETED: Final = 0
"""The version in the record of a Lease that was deleted."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of leader election, in real seconds."""

    duration: float = 15.0
    """Any replica may acquire a Lease that was not renewed for this long."""
    deadline: float = 10.0
    """The holder stops acting if it could not renew its Lease for this long."""
    retry: float = 2.0
    """Pause between renewals, and between attempts to acquire."""

    @property
    def request(self) -> float:
        """The timeout of a request, so short that there is time for another one before the deadline."""
        return self.deadline / 3

    @property
    def in_flight(self) -> float:
        """A write that has not arrived after this long is abandoned: it must never meet the next holder's writes."""
        return 0.8 * (self.duration - self.deadline)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as this replica observed it. Only durations on the replica's own clock count; clocks are never compared.

    `since` is when the replica first observed this holder with this renewal.
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
        """Whether the Lease was deleted; its holder may not know yet."""
        return self.version == DELETED

    def live(self, now: float) -> bool:
        """Whether its holder may be acting; if not, any replica may acquire the Lease."""
        return bool(self.holder) and now < self.since + self.duration

    def same_renewal(self, other: "LeaseRecord") -> bool:
        """Whether both show the same holder and the same renewal."""
        return (self.holder, self.renewal) == (other.holder, other.renewal)


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: its identity, the shard that it prefers, when it started, and how many shards it holds."""

    identity: str
    preferred: int | None
    started: float
    held: int = 0

    def prefers(self, shard: Shard) -> bool:
        """Whether this is its preferred shard; it hands over any other on request."""
        return shard.number == self.preferred


def acquire_at(shard: Shard, record: LeaseRecord | None, replica: Replica, times: LeaseTimes) -> float:
    """The instant at which a replica should try to acquire a shard that it does not hold.

    The replica that prefers the shard tries first, then those that hold the fewest shards. So the shards spread evenly
    without any coordination.
    """
    preferred = replica.prefers(shard)
    delay = 0.0 if preferred else min(0.25 + 0.5 * replica.held, times.retry)
    if record is None:
        # On the very first start the replicas that prefer the other shards are starting too.
        return replica.started + delay + _first_start_delay(shard, replica, times)
    if record.holder == replica.identity:
        return record.since
    if record.holder:
        return record.since + record.duration + delay
    requested_by_another = record.wanted_by not in {"", replica.identity}
    return record.since + delay + (times.retry if requested_by_another else 0.0)


def _first_start_delay(shard: Shard, replica: Replica, times: LeaseTimes) -> float:
    """On the very first start, a replica that prefers another shard leaves time to the one that prefers this shard."""
    if replica.preferred is None or replica.prefers(shard):
        return 0.0
    return 2 * times.retry


def should_request(shard: Shard, record: LeaseRecord | None, replica: Replica, now: float) -> bool:
    """Whether to request the preferred shard from the replica that holds it meanwhile."""
    if record is None or record.deleted or not replica.prefers(shard) or not record.live(now):
        return False
    return record.holder != replica.identity and not record.wanted_by


def shard_to_share(records: Iterable[LeaseRecord], replica: Replica, now: float) -> Shard | None:
    """The shard that a replica without any, and without a preference, should request: one of a holder of several.

    A replica requests one shard at a time, and each replica another one.
    """
    if replica.preferred is not None or replica.held:
        return None
    live = [record for record in records if record.live(now) and not record.deleted]
    if any(record.wanted_by == replica.identity for record in live):
        return None
    held = Counter(record.holder for record in live)
    shared = [record.shard for record in live if held[record.holder] > 1 and not record.wanted_by]
    return min(shared, key=lambda shard: shard.number, default=None)


def should_hand_over(shard: Shard, record: LeaseRecord | None, replica: Replica) -> bool:
    """Whether a replica should release a shard that it holds because another one requests it."""
    if record is None or replica.prefers(shard):
        return False
    return record.wanted_by not in {"", replica.identity}


def with_other_count(records: Iterable[LeaseRecord], count: int) -> list[LeaseRecord]:
    """Leases for another number of shards; no replica may act while one of them is live."""
    return [record for record in records if record.shard.count != count]
