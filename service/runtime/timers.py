"""The timers of a queue: when a key becomes due, on the domain's clock, in real time, or on both."""

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
class Timer:
    """When a key becomes due: at `due` on the domain's clock or at `real` on the real one, whichever comes first."""

    due: float | None
    real: float | None
    priority: int | None

    def merged(self, earlier: "Timer | None") -> "Timer":
        """This timer set while another one is: the earliest times, and the priority given last."""
        if earlier is None:
            return self
        return Timer(
            due=_earliest(self.due, earlier.due),
            real=_earliest(self.real, earlier.real),
            priority=earlier.priority if self.priority is None else self.priority,
        )

    @property
    def due_or_inf(self) -> float:
        """The due time on the domain's clock; infinite if there is none."""
        return inf if self.due is None else self.due

    @property
    def priority_or_default(self) -> int:
        """The priority, or the default one."""
        return DEFAULT_PRIORITY if self.priority is None else self.priority


class Timers:
    """Keys that are not due yet; adding and expiring cost O(log n)."""

    def __init__(self, clock: Clock, real: Callable[[], float]) -> None:
        self._clock = clock
        self._real = real
        self._timers: dict[Key, tuple[int, Timer]] = {}
        self._by_due: list[tuple[float, int, Key]] = []
        self._by_real: list[tuple[float, int, Key]] = []
        self._serial = count()

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Key) -> bool:
        return key in self._timers

    def add(self, key: Key, timer: Timer) -> bool:
        """Sets the timer of a key, or moves it if the new one is earlier; returns whether anything changed."""
        _, known = self._timers.get(key, (0, None))
        timer = timer.merged(known)
        if timer == known:
            return False
        serial = next(self._serial)
        self._timers[key] = (serial, timer)
        if timer.due is not None:
            heapq.heappush(self._by_due, (timer.due, serial, key))
        if timer.real is not None:
            heapq.heappush(self._by_real, (timer.real, serial, key))
        self._compact()
        return True

    def remove(self, key: Key) -> None:
        """Removes the timer of a key."""
        self._timers.pop(key, None)

    def expired(self, limit: int) -> Iterator[tuple[Key, Timer]]:
        """Removes and returns the keys that are due now, earliest first, at most `limit` of them."""
        now = self._clock.now().timestamp()
        for heap, time in ((self._by_due, now), (self._by_real, self._real())):
            while limit and heap and heap[0][0] <= time:
                _, serial, key = heapq.heappop(heap)
                if self._current(key, serial):
                    limit -= 1
                    timer = self._timers.pop(key)[1]
                    yield key, Timer(due=_earliest(timer.due, now), real=None, priority=timer.priority)

    def seconds_left(self) -> float:
        """Real seconds until the next key becomes due, as the clocks stand now; infinite if there is none."""
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
        known = self._timers.get(key)
        return known is not None and known[0] == serial

    def _compact(self) -> None:
        # A timer that was moved leaves its old entry in the heap, perhaps due in days: those must not pile up.
        for heap in (self._by_due, self._by_real):
            if len(heap) > 2 * len(self._timers) + 64:
                heap[:] = [entry for entry in heap if self._current(entry[2], entry[1])]
                heapq.heapify(heap)


def speed_of(clock: Clock) -> float:
    """How many of the clock's seconds pass in a real one; 1 for a clock that stands still."""
    real = clock.real_seconds(_SECOND)
    runs = isfinite(real) and real > 0
    return 1 / real if runs else 1.0


def _earliest(one: float | None, other: float | None) -> float | None:
    if one is None:
        return other
    if other is None:
        return one
    return min(one, other)
