"""Opens the caches that the objects of other replicas need, so that they are full when a shard changes hands."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import structlog

from crds.providers import BOOTSTRAP, INFRASTRUCTURE, ProviderPolicy
from service.kube.errors import KubeError
from service.kube.resource import Resource
from service.observe.watches import Watches

MOST_KINDS: Final = 64
"""Tenants choose the kinds; one who names many does not get a watch for each."""

log = structlog.get_logger(__name__)


class Prewarmer:
    """Remembers the kinds that ScheduledMachines name, and opens a watch for each."""

    def __init__(self, watches: Watches, policy: ProviderPolicy) -> None:
        self._watches = watches
        self._policy = policy
        self._known: set[tuple[str, str]] = set()
        self._to_open: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def add_kinds(self, raw: dict[str, Any]) -> None:
        """Queues the kinds in a ScheduledMachine that the settings allow."""
        for kind in set(wanted_kinds(raw, self._policy)) - self._known:
            if len(self._known) < MOST_KINDS:
                self._known.add(kind)
                self._to_open.put_nowait(kind)

    def forget(self, resource: Resource) -> None:
        """The kind is not watched any more: the next ScheduledMachine that names it opens the watch again."""
        self._known.discard((resource.api_version, resource.kind))

    async def run(self) -> None:
        """Opens caches until cancelled. One that cannot be opened now is opened by the first pass that needs it."""
        while True:
            api_version, kind = await self._to_open.get()
            try:
                await self._watches.providers.kind(api_version, kind)
            except KubeError as error:
                log.info("kind cannot be watched yet", kind=kind, error=error.message)


def wanted_kinds(raw: dict[str, Any], policy: ProviderPolicy) -> Iterator[tuple[str, str]]:
    """The provider's kinds in a ScheduledMachine, which may be malformed; only those that may be created."""
    spec = raw.get("spec")
    for part in (BOOTSTRAP, INFRASTRUCTURE):
        match spec.get(part) if isinstance(spec, dict) else None:
            case {"apiVersion": str(api_version), "kind": str(kind)}:
                group = api_version.partition("/")[0]
                if not (policy.refuses_group(part, group) or policy.refuses_kind(part, group, kind)):
                    yield api_version, kind
