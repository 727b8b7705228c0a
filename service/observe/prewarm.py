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
"""Tenants choose the kinds; those who choose many gain nothing by it."""

log = structlog.get_logger(__name__)


class Prewarmer:
    """Remembers the kinds that were asked for, and has each of them watched."""

    def __init__(self, watches: Watches, policy: ProviderPolicy) -> None:
        self._watches = watches
        self._policy = policy
        self._known: set[tuple[str, str]] = set()
        self._cold: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def see(self, raw: dict[str, Any]) -> None:
        """Takes note of the kinds in a ScheduledMachine that the operator allows."""
        for kind in set(wanted_kinds(raw, self._policy)) - self._known:
            if len(self._known) < MOST_KINDS:
                self._known.add(kind)
                self._cold.put_nowait(kind)

    def forget(self, resource: Resource) -> None:
        """The kind is not watched any more: the next ScheduledMachine that names it has it watched again."""
        self._known.discard((resource.api_version, resource.kind))

    async def run(self) -> None:
        """Opens caches until cancelled. What cannot be watched now is opened by the first who needs it."""
        while True:
            api_version, kind = await self._cold.get()
            try:
                await self._watches.kind(api_version, kind)
            except KubeError as error:
                log.info("cannot be watched yet", kind=kind, error=error.message)


def wanted_kinds(raw: dict[str, Any], policy: ProviderPolicy) -> Iterator[tuple[str, str]]:
    """The provider's kinds in a ScheduledMachine, which may be malformed; only those that may be created."""
    spec = raw.get("spec")
    for part in (BOOTSTRAP, INFRASTRUCTURE):
        match spec.get(part) if isinstance(spec, dict) else None:
            case {"apiVersion": str(api_version), "kind": str(kind)}:
                group = api_version.partition("/")[0]
                if not (policy.refuses_group(part, group) or policy.refuses_kind(part, group, kind)):
                    yield api_version, kind
