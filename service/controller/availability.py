"""Whether the management cluster's API server answers. While it does not, work waits, and one small request asks.

Without this, every object that is due would fail on its own and then wait out a back-off, long after the server is
back; with many of them, that is a storm first and a delay afterwards. Used by the controller.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from service.kube.errors import KubeError
from service.kube.transport import Call

SILENT_CALLS: Final = 3
"""So many calls in a row without an answer, and the server counts as away."""
ASK_SECONDS: Final = 1.0
ASK_PATIENCE: Final = 5.0
QUIET_SECONDS: Final = 3.0
"""After so long without another failure, whoever failed tries again; if that fails, after twice as long, and so on."""
MOST_QUIET_SECONDS: Final = 300.0

log = structlog.get_logger(__name__)


class Availability:
    """Told of every call. `ask` is a request that needs the server's storage too; `recovered` is told of the end."""

    def __init__(self, ask: Callable[[], Awaitable[object]], recovered: Callable[[], None]) -> None:
        self._ask = ask
        self._recovered = recovered
        self._silent = 0
        self._quiet = QUIET_SECONDS
        self._last_trouble = -math.inf
        self._troubled = asyncio.Event()
        self._there = asyncio.Event()
        self._there.set()

    @property
    def away(self) -> bool:
        """Whether the server does not answer at all."""
        return not self._there.is_set()

    async def wait(self) -> None:
        """Returns when the server answers: at once, nearly always."""
        await self._there.wait()

    def note(self, call: Call) -> None:
        """Takes in how a call ended."""
        if call.status == 0 or call.status >= 500:
            self._trouble()
        if call.status:
            self._silent = 0
            return
        self._silent += 1
        if self._silent == SILENT_CALLS:
            log.warning("the API server does not answer; work waits for it")
            self._there.clear()

    async def run(self) -> None:
        """Asks while the server is away, and tells when trouble is over, until cancelled."""
        while True:
            await self._troubled.wait()
            await asyncio.sleep(ASK_SECONDS * (0.5 + random.random()))  # noqa: S311 - spreads load
            if self.away:
                if await self._answers():
                    self._back()
            elif time.monotonic() - self._last_trouble >= self._quiet:
                self._over()

    def release(self) -> None:
        """Lets go whoever waits: the process stops."""
        self._there.set()

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(ASK_PATIENCE):
                with suppress(KubeError):  # noted as every call is
                    await self._ask()
                    return True
        except TimeoutError:
            self._trouble()
        return False

    def _trouble(self) -> None:
        now = time.monotonic()
        if now - self._last_trouble > 2 * MOST_QUIET_SECONDS:
            self._quiet = QUIET_SECONDS  # that was another time
        self._last_trouble = now
        self._troubled.set()

    def _over(self) -> None:
        """Trouble that comes back at once is not the server's as a whole: it is left to the back-off of its objects."""
        self._quiet = min(2 * self._quiet, MOST_QUIET_SECONDS)
        self._troubled.clear()
        self._recovered()

    def _back(self) -> None:
        if self.away:
            log.info("the API server answers again")
            self._there.set()
            self._recovered()
