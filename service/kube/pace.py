"""How fast events are processed: watches and lists yield to other tasks, and a cluster that sends too much waits.

Unread events stay with the server, which slows down or ends the watch; either way the watch resumes and loses nothing.
The management cluster is never slowed down: its watches only yield.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

TURN_SECONDS: Final = 0.001
"""How long one watch may use the event loop before it yields."""
BYTES_PER_UNIT: Final = 16 * 1024
VALUES_PER_UNIT: Final = 512
"""An event costs one unit, and one more for each so many bytes or values, which take about as long to process."""
UNITS_PER_SECOND: Final = 500.0
"""The limit of one cluster. 5,000 Nodes that each change once in ten seconds need less."""
BURST_UNITS: Final = 2_000.0
ALL_UNITS_PER_SECOND: Final = 2_000.0
"""The limit of all clusters together that exceed their share."""


def units(text: bytes) -> float:
    """The cost of processing an event."""
    return 1.0 + len(text) / BYTES_PER_UNIT + text.count(b",") / VALUES_PER_UNIT


class Pace:
    """No limit: only yields to other tasks."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._turn_since = monotonic()

    async def spent(self, cost: float) -> None:  # noqa: ARG002 - subclasses use it
        """Call after each piece of work; returns when the next may begin."""
        if self._monotonic() - self._turn_since >= TURN_SECONDS:
            await asyncio.sleep(0)
            self._turn_since = self._monotonic()


class WatchThrottle:
    """The limit that all clusters which exceed their share have in common."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.monotonic = monotonic
        self.sleep = sleep
        self.waiting = 0
        """How many connections wait because they exceeded their share."""

    @property
    def units_per_second(self) -> float:
        """The units that one cluster may use now."""
        return min(UNITS_PER_SECOND, ALL_UNITS_PER_SECOND / max(1, self.waiting))


class Limited(Pace):
    """The share of one cluster: a token bucket for all its watches and lists."""

    def __init__(self, throttle: WatchThrottle) -> None:
        super().__init__(throttle.monotonic)
        self._throttle = throttle
        self._left = BURST_UNITS
        self._filled_at = throttle.monotonic()

    async def spent(self, cost: float) -> None:
        """Call after each piece of work; returns when the next may begin."""
        self._fill()
        self._left -= cost
        if self._left >= 0:
            await super().spent(cost)
            return
        self._throttle.waiting += 1
        try:
            await self._throttle.sleep(-self._left / self._throttle.units_per_second)
        finally:
            self._throttle.waiting -= 1

    def _fill(self) -> None:
        now = self._monotonic()
        gained = (now - self._filled_at) * self._throttle.units_per_second
        self._filled_at = now
        self._left = min(BURST_UNITS, self._left + gained)
