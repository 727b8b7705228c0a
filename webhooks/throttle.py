"""Keeps heavy reviews from holding up everything else that shares the event loop: leases, watches, ordinary reviews.

Ordinary reviews pass at once. Heavy ones are judged one at a time, and after each the lane rests for as long as it
worked, so that they take at most half of the loop's time, however many callers send them.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from webhooks.complexity import most_values

LIGHT_BYTES: Final = 64 * 1024
"""What uvicorn collects before it stops to read from the connection."""
LIGHT_VALUES: Final = 3_000
"""An update of a machine with ten services behind it has 1,100 and, with a longer spec, 1,600: both versions come with
their status and managedFields. The worst review with as many as this costs less than 10 ms."""
READERS: Final = 16
"""Large bodies that are received at once: so many times three megabytes are held in memory at most."""
PATIENCE_SECONDS: Final = 2.5
"""How long a heavy review waits for its turn: API servers give up after three seconds."""


class BusyError(Exception):
    """Too many heavy reviews wait already."""


def is_light(body: bytes) -> bool:
    """Whether a review needs no turn, as nearly all do not."""
    return len(body) <= LIGHT_BYTES and most_values(body, LIGHT_VALUES) <= LIGHT_VALUES


class Throttle:
    """One for all webhooks of a process."""

    def __init__(self, *, patience: float = PATIENCE_SECONDS, clock: Callable[[], float] = time.perf_counter) -> None:
        self._patience = patience
        self._clock = clock
        self._readers = asyncio.Semaphore(READERS)
        self._lane = asyncio.Semaphore(1)

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        """Held while a large body is received."""
        await self._wait(self._readers)
        try:
            yield
        finally:
            self._readers.release()

    @asynccontextmanager
    async def judging(self) -> AsyncIterator[None]:
        """Held while a heavy review is judged, without waiting for anything; `BusyError` if its turn does not come."""
        await self._wait(self._lane)
        started = self._clock()
        try:
            yield
        finally:
            spent = self._clock() - started
            asyncio.get_running_loop().call_later(spent, self._lane.release)

    async def _wait(self, turn: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await turn.acquire()
        except TimeoutError:
            raise BusyError from None
