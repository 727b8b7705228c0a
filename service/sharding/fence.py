"""Knows which shards this replica holds, and until when; refuses passes and writes for all others.

The elections extend and drop the shards, the controller asks before each pass, and clients ask right before they send
the bytes of a write.
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

_ACTING_FOR: Final[ContextVar[Key | None]] = ContextVar("acting_for", default=None)

RealTime = Callable[[], float]


def boottime() -> float:
    """Seconds on a clock that cannot be set and that runs on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ShardNotHeldError(Exception):
    """This replica does not hold the shard of the object, or no longer does: another replica may act for it."""


class Fence:
    """The shards that this replica holds, each until an instant that every renewal of its Lease extends."""

    def __init__(self, count: int, clock: RealTime = boottime, watchdog: Watchdog | None = None) -> None:
        self.count = count
        self._clock = clock
        self._watchdog = watchdog
        self._until: dict[int, float] = {}
        self._since: dict[int, float] = {}
        self._exit_at: dict[int, float] = {}
        self._passes: Counter[int] = Counter()

    @property
    def shards(self) -> tuple[Shard, ...]:
        """All shards, held or not."""
        return tuple(Shard(number, self.count) for number in range(self.count))

    def shard(self, key: Key) -> Shard:
        """The shard of an object."""
        return Shard(shard_number(key.namespace, key.name, self.count), self.count)

    def shown(self, key: Key) -> str | None:
        """The shard of an object as `status.shard` shows it."""
        return str(self.shard(key))

    def extend(self, shard: Shard, until: float, *, others_from: float | None = None) -> None:
        """This replica holds the shard until `until`; another may act for it from `others_from` on."""
        if not self.holds(shard):
            self._since[shard.number] = self._clock()
        self._until[shard.number] = until
        self._exit_at[shard.number] = until if others_from is None else (until + others_from) / 2

    def drop(self, shard: Shard) -> None:
        """This replica no longer holds the shard."""
        self._until.pop(shard.number, None)

    def until(self, shard: Shard) -> float:
        """When this replica loses the shard unless it renews the Lease; minus infinity if it does not hold it."""
        return self._until.get(shard.number, float("-inf"))

    def holds(self, shard: Shard) -> bool:
        """Whether this replica may act for the shard now."""
        return self._clock() < self.until(shard)

    def owns(self, key: Key) -> bool:
        """Whether this replica may act for an object now."""
        return self.holds(self.shard(key))

    def held_for(self, key: Key) -> float:
        """For how many seconds this replica has held the shard of an object."""
        return self._clock() - self._since.get(self.shard(key).number, float("-inf"))

    def busy(self, shard: Shard) -> bool:
        """Whether a pass over an object of the shard still runs."""
        return self._passes[shard.number] > 0

    @contextmanager
    def acting_for(self, key: Key) -> Iterator[None]:
        """Every write inside this context, in child tasks too, is checked against the shard of that object."""
        number = self.shard(key).number
        token = _ACTING_FOR.set(key)
        self._passes[number] += 1
        try:
            yield
        finally:
            self._passes[number] -= 1
            _ACTING_FOR.reset(token)

    def check(self) -> None:
        """Aborts a write for an object whose shard is not held; a write outside `acting_for` passes."""
        key = _ACTING_FOR.get()
        if key is None:
            return
        shard = self.shard(key)
        if self.holds(shard) and self._watchdog is not None:
            self._watchdog.watch(self._exit_at[shard.number])
        # Checked after the watchdog is armed: from here on the write is sent in time, or the process ends.
        if not self.holds(shard):
            raise ShardNotHeldError(f"this replica does not hold shard {shard}: the write for {key} is refused")


class NoFence(Fence):
    """For a single replica without Leases: it holds every shard."""

    def __init__(self) -> None:
        super().__init__(count=1)

    def holds(self, shard: Shard) -> bool:  # noqa: ARG002 - any shard
        """Always."""
        return True

    def shown(self, key: Key) -> str | None:  # noqa: ARG002
        """Nothing: there are no shards."""
        return None
