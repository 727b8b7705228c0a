"""Whether the management cluster's API server answers. While it does not, workers wait and one loop sends a probe.

Without this, every object that is due would fail on its own and then wait out a back-off, long after the server is
back; with many objects, that is a burst of requests first and a delay afterwards. Used by the controller.
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

UNANSWERED_CALLS: Final = 3
"""After this many calls in a row without an answer, the API server counts as unavailable."""
PROBE_SECONDS: Final = 1.0
PROBE_TIMEOUT: Final = 5.0
RECOVERY_SECONDS: Final = 3.0
"""After this long without a failure, failed objects are retried; if that fails, after twice as long, and so on."""
MAX_RECOVERY_SECONDS: Final = 300.0

log = structlog.get_logger(__name__)


class Availability:
    """Records how every call ended.

    `probe` sends a request that the API server cannot answer without its storage. `recovered` is called when the API
    server works again.
    """

    def __init__(self, probe: Callable[[], Awaitable[object]], recovered: Callable[[], None]) -> None:
        self._probe = probe
        self._recovered = recovered
        self._unanswered = 0
        self._recovery_seconds = RECOVERY_SECONDS
        self._last_failure = -math.inf
        self._failing = asyncio.Event()
        self._available = asyncio.Event()
        self._available.set()

    @property
    def unavailable(self) -> bool:
        """Whether the API server does not answer at all."""
        return not self._available.is_set()

    async def wait(self) -> None:
        """Returns when the API server answers: at once, nearly always."""
        await self._available.wait()

    def record(self, call: Call) -> None:
        """Records how a call ended."""
        if call.status == 0 or call.status >= 500:
            self._record_failure()
        if call.status:
            self._unanswered = 0
            return
        self._unanswered += 1
        if self._unanswered == UNANSWERED_CALLS:
            log.warning("the API server does not answer; work waits for it")
            self._available.clear()

    async def run(self) -> None:
        """Probes while the API server is unavailable, and reports its recovery, until cancelled."""
        while True:
            await self._failing.wait()
            await asyncio.sleep(PROBE_SECONDS * (0.5 + random.random()))  # noqa: S311 - spreads load
            if self.unavailable:
                if await self._answers():
                    self._mark_available()
            elif time.monotonic() - self._last_failure >= self._recovery_seconds:
                self._failures_ended()

    def release(self) -> None:
        """Ends every wait, because the process stops."""
        self._available.set()

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                with suppress(KubeError):  # recorded like every call
                    await self._probe()
                    return True
        except TimeoutError:
            self._record_failure()
        return False

    def _record_failure(self) -> None:
        now = time.monotonic()
        if now - self._last_failure > 2 * MAX_RECOVERY_SECONDS:
            self._recovery_seconds = RECOVERY_SECONDS  # the last failure belongs to an earlier outage
        self._last_failure = now
        self._failing.set()

    def _failures_ended(self) -> None:
        """Failures that return at once do not concern the whole server: the back-off of their objects handles them."""
        self._recovery_seconds = min(2 * self._recovery_seconds, MAX_RECOVERY_SECONDS)
        self._failing.clear()
        self._recovered()

    def _mark_available(self) -> None:
        if self.unavailable:
            log.info("the API server answers again")
            self._available.set()
            self._recovered()
