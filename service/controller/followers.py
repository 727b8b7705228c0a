"""Loops that notice what no watch reports: which contract of Cluster API is served, and a clock that is set back."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from service.clock import Clock
from service.kube.errors import KubeError
from service.observe.watches import Watches

SETTLE_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Several CustomResourceDefinitions change together and are served some time after they are stored."""

CLOCK_SECONDS: Final = 5.0
"""How often the loop checks whether the clock was set back."""

log = structlog.get_logger(__name__)


class CapiFollower:
    """Finds out which contract of Cluster API is served whenever one of its CustomResourceDefinitions changed."""

    def __init__(self, watches: Watches, changed: Callable[[], None]) -> None:
        self._watches = watches
        self._changed = changed
        self._due = asyncio.Event()

    def definitions_changed(self) -> None:
        """A CustomResourceDefinition of Cluster API was added, changed or deleted."""
        self._due.set()

    async def run(self) -> None:
        """Asks after every change, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            for pause in SETTLE_PAUSES:
                await asyncio.sleep(pause)
                await self._ask()

    async def _ask(self) -> None:
        try:
            changed = await self._watches.find_capi()
        except KubeError as error:
            log.warning("cannot find out which contract of Cluster API is served", error=error.message)
            self._due.set()
            return
        if changed:
            log.info("Cluster API contract changed", contract=self._watches.contract)
            self._changed()


async def follow_clock(clock: Clock, set_back: Callable[[], None]) -> None:
    """Calls `set_back` whenever the clock was set back; timers notice a step forward themselves."""
    shown = clock.now()
    while True:
        await asyncio.sleep(CLOCK_SECONDS)
        before = shown
        shown = clock.now()
        if shown < before:
            log.warning("the clock was set back", seconds=round((before - shown).total_seconds()))
            set_back()
