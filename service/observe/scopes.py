"""Which providers' kinds are cluster-scoped: the webhooks refuse them, as no machine can own such an object."""

import asyncio
from typing import Final

import structlog

from crds.providers import ProviderPolicy
from service.kube.discovery import Discovery
from service.kube.errors import KubeError

FIRST_PAUSE: Final = 0.2
PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Several definitions change together and are served some time after they are stored: ask more than once."""

log = structlog.get_logger(__name__)


class Scopes:
    """Keeps `kinds`, pairs of group and kind, up to date for the groups that the settings allow."""

    def __init__(self, discovery: Discovery, policy: ProviderPolicy, kinds: set[tuple[str, str]]) -> None:
        self._discovery = discovery
        self._groups = policy.bootstrap_groups | policy.infrastructure_groups
        self._kinds = kinds
        self._due = asyncio.Event()
        self._due.set()

    def changed(self, group: str) -> None:
        """A CustomResourceDefinition of this group was added, changed or deleted."""
        if group in self._groups:
            self._due.set()

    async def run(self) -> None:
        """Asks at the start and after every change, until cancelled."""
        while True:
            await self._due.wait()
            await asyncio.sleep(FIRST_PAUSE)
            self._due.clear()
            if not await self._settled():
                self._due.set()

    async def _settled(self) -> bool:
        """Asks until what was just defined must be served; whether the last answer is current."""
        answered = await self._ask()
        for pause in PAUSES:
            try:
                async with asyncio.timeout(pause):
                    await self._due.wait()
            except TimeoutError:
                answered = await self._ask()
            else:
                return False
        return answered

    async def _ask(self) -> bool:
        try:
            found = {(group, kind) for group in self._groups for kind in await self._discovery.cluster_scoped(group)}
        except KubeError as error:
            log.warning("cannot ask which kinds are cluster-scoped", error=error.message)
            return False
        self._kinds.clear()
        self._kinds.update(found)
        return True
