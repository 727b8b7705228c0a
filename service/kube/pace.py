"""How fast a server may talk: watches and lists let others have their turn, and a cluster that floods us waits.

What is not read stays with the server, which slows down or ends the watch; either way it is resumed, and nothing of it
is lost. The management cluster is never slowed down: it only takes turns.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

TURN_SECONDS: Final = 0.001
"""How long one watch goes on while others want the loop."""
BYTES_PER_UNIT: Final = 16 * 1024
VALUES_PER_UNIT: Final = 512
"""An event costs one unit and more if it is large: so many bytes or values take about as long as an event itself."""
UNITS_PER_SECOND: Final = 500.0
"""Of one cluster. 5,000 Nodes that each change once in ten seconds are fewer."""
BURST_UNITS: Final = 2_000.0
ALL_UNITS_PER_SECOND: Final = 2_000.0
"""Of all clusters that go beyond their own share, together."""


def units(text: bytes) -> float:
    """What it costs to take in an event."""
    return 1.0 + len(text) / BYTES_PER_UNIT + text.count(b",") / VALUES_PER_UNIT


class Pace:
    """Without limit: only lets others have their turn."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._turn_since = monotonic()

    async def spent(self, cost: float) -> None:  # noqa: ARG002 - for those that limit
        """Called after each piece of work; returns when the next may begin."""
        if self._monotonic() - self._turn_since >= TURN_SECONDS:
            await asyncio.sleep(0)
            self._turn_since = self._monotonic()


class WatchThrottle:
    """What all clusters that talk too much share."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.monotonic = monotonic
        self.sleep = sleep
        self.waiting = 0
        """How many connections wait because they went beyond their share."""

    @property
    def units_per_second(self) -> float:
        """What one cluster may spend now."""
        return min(UNITS_PER_SECOND, ALL_UNITS_PER_SECOND / max(1, self.waiting))


class Limited(Pace):
    """One cluster's share: a token bucket that all its watches and lists take from."""

    def __init__(self, throttle: WatchThrottle) -> None:
        super().__init__(throttle.monotonic)
        self._throttle = throttle
        self._left = BURST_UNITS
        self._filled_at = throttle.monotonic()

    async def spent(self, cost: float) -> None:
        """Called after each piece of work; returns when the next may begin."""
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
