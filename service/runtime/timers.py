"""One set of timers for everything that has a time: on the domain's clock, on the real one, or on both."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from math import inf, isfinite

from service.clock import Clock
from service.runtime.key import Key

DEFAULT_PRIORITY = 50
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Ask:
    """When somebody wants a key looked at: `due` on the domain's clock, `at` in real seconds, the earlier counts."""

    due: float | None
    at: float | None
    priority: int | None

    def after(self, earlier: "Ask | None") -> "Ask":
        """This request made while another one stands: the earliest times, and the priority given last."""
        if earlier is None:
            return self
        return Ask(
            due=_earliest(self.due, earlier.due),
            at=_earliest(self.at, earlier.at),
            priority=earlier.priority if self.priority is None else self.priority,
        )

    @property
    def moment(self) -> float:
        """The due time, once it has come."""
        return inf if self.due is None else self.due

    @property
    def rank(self) -> int:
        """The priority, or the usual one."""
        return DEFAULT_PRIORITY if self.priority is None else self.priority


class Timers:
    """Keys whose time has not come; adding and expiring cost O(log n)."""

    def __init__(self, clock: Clock, real: Callable[[], float]) -> None:
        self._clock = clock
        self._real = real
        self._asks: dict[Key, tuple[int, Ask]] = {}
        self._by_due: list[tuple[float, int, Key]] = []
        self._by_real: list[tuple[float, int, Key]] = []
        self._serial = count()

    def __len__(self) -> int:
        return len(self._asks)

    def __contains__(self, key: Key) -> bool:
        return key in self._asks

    def add(self, key: Key, ask: Ask) -> bool:
        """Sets the timer of a key, keeping earlier times asked for before; whether anything changed."""
        _, known = self._asks.get(key, (0, None))
        ask = ask.after(known)
        if ask == known:
            return False
        serial = next(self._serial)
        self._asks[key] = (serial, ask)
        if ask.due is not None:
            heapq.heappush(self._by_due, (ask.due, serial, key))
        if ask.at is not None:
            heapq.heappush(self._by_real, (ask.at, serial, key))
        self._compact()
        return True

    def remove(self, key: Key) -> None:
        """Drops a key's timer."""
        self._asks.pop(key, None)

    def expired(self, limit: int) -> Iterator[tuple[Key, Ask]]:
        """Takes out keys whose time has come, earliest first, at most `limit` of them."""
        now = self._clock.now().timestamp()
        for heap, time in ((self._by_due, now), (self._by_real, self._real())):
            while limit and heap and heap[0][0] <= time:
                _, serial, key = heapq.heappop(heap)
                if self._current(key, serial):
                    limit -= 1
                    ask = self._asks.pop(key)[1]
                    yield key, Ask(due=_earliest(ask.due, now), at=None, priority=ask.priority)

    def seconds_left(self) -> float:
        """Real seconds until the next key expires, by what the clocks say now; infinite if there is none."""
        for heap in (self._by_due, self._by_real):
            while heap and not self._current(heap[0][2], heap[0][1]):
                heapq.heappop(heap)
        left = inf
        if self._by_due:
            span = self._by_due[0][0] - self._clock.now().timestamp()
            left = self._clock.real_seconds(timedelta(seconds=span))
        if self._by_real:
            left = min(left, self._by_real[0][0] - self._real())
        return max(0.0, left)

    def _current(self, key: Key, serial: int) -> bool:
        known = self._asks.get(key)
        return known is not None and known[0] == serial

    def _compact(self) -> None:
        # A timer that was moved leaves its old entry behind, perhaps due in days: do not collect those.
        for heap in (self._by_due, self._by_real):
            if len(heap) > 2 * len(self._asks) + 64:
                heap[:] = [entry for entry in heap if self._current(entry[2], entry[1])]
                heapq.heapify(heap)


def speed_of(clock: Clock) -> float:
    """How many of the clock's seconds pass in a real one; 1 for a clock that stands still."""
    real = clock.real_seconds(_SECOND)
    return 1 / real if isfinite(real) and real > 0 else 1.0


def _earliest(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
