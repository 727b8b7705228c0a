"""Knows which shards are ours, and until when; refuses passes and writes for those that are not.

The leases extend and drop what is held here, the controller asks before it takes an object in hand, and clients ask
right before the bytes of a write leave.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from service.runtime.key import Key
from service.sharding.shard import Shard, shard_number
from service.sharding.watchdog import Watchdog

_IN_HAND: Final[ContextVar[Key | None]] = ContextVar("in_hand", default=None)

RealTime = Callable[[], float]


def boottime() -> float:
    """Seconds on a clock that nobody can set and that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class NotOursError(Exception):
    """The shard of the object in hand is not held, or not any more: somebody else may be acting for it."""


class Fence:
    """The shards held, each until an instant that its lease extends."""

    def __init__(self, count: int, clock: RealTime = boottime, alarm: Watchdog | None = None) -> None:
        self.count = count
        self._clock = clock
        self._alarm = alarm
        self._until: dict[int, float] = {}
        self._since: dict[int, float] = {}
        self._alarm_at: dict[int, float] = {}
        self._in_hand: Counter[int] = Counter()

    @property
    def shards(self) -> tuple[Shard, ...]:
        """All there are, ours or not."""
        return tuple(Shard(number, self.count) for number in range(self.count))

    def shard(self, key: Key) -> Shard:
        """The shard of an object."""
        return Shard(shard_number(key.namespace, key.name, self.count), self.count)

    def shown(self, key: Key) -> str | None:
        """What the status says about who serves an object."""
        return str(self.shard(key))

    def extend(self, shard: Shard, until: float, *, others: float | None = None) -> None:
        """The shard is ours until then; others may act for it from `others` on."""
        if not self.holds(shard):
            self._since[shard.number] = self._clock()
        self._until[shard.number] = until
        self._alarm_at[shard.number] = until if others is None else (until + others) / 2

    def drop(self, shard: Shard) -> None:
        """The shard is not ours any more."""
        self._until.pop(shard.number, None)

    def until(self, shard: Shard) -> float:
        """When the shard ceases to be ours unless its lease is renewed; long ago if it is not ours."""
        return self._until.get(shard.number, float("-inf"))

    def holds(self, shard: Shard) -> bool:
        """Whether we may act for the shard now."""
        return self._clock() < self.until(shard)

    def owns(self, key: Key) -> bool:
        """Whether we may act for an object now."""
        return self.holds(self.shard(key))

    def held_for(self, key: Key) -> float:
        """For how many seconds we have been the one to act for an object."""
        return self._clock() - self._since.get(self.shard(key).number, float("-inf"))

    def busy(self, shard: Shard) -> bool:
        """Whether an object of the shard is still in hand."""
        return self._in_hand[shard.number] > 0

    @contextmanager
    def in_hand(self, key: Key) -> Iterator[None]:
        """Whatever is written inside is written for that object."""
        number = self.shard(key).number
        token = _IN_HAND.set(key)
        self._in_hand[number] += 1
        try:
            yield
        finally:
            self._in_hand[number] -= 1
            _IN_HAND.reset(token)

    def check(self) -> None:
        """Aborts a write for an object of a shard that is not ours; what is written for no object may pass."""
        key = _IN_HAND.get()
        if key is None:
            return
        shard = self.shard(key)
        if self.holds(shard) and self._alarm is not None:
            self._alarm.watch(self._alarm_at[shard.number])
        # Asked after the alarm is set: from here on the write leaves in time, or not at all.
        if not self.holds(shard):
            raise NotOursError(f"the lease of shard {shard} is not held: nothing is written for {key}")


class NoFence(Fence):
    """For a process that is the only one: everything is its own."""

    def __init__(self) -> None:
        super().__init__(count=1)

    def holds(self, shard: Shard) -> bool:  # noqa: ARG002 - whatever it is
        """Always."""
        return True

    def shown(self, key: Key) -> str | None:  # noqa: ARG002
        """Nothing: there are no shards."""
        return None
