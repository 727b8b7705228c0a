"""Finds out what an API server serves: the plural of a kind, its scope, and which Cluster API contract there is.

Answers are remembered until a CustomResourceDefinition changes. That a kind is missing is an ordinary answer.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from crds.names import CAPI_GROUP
from service.kube.client import Client
from service.kube.errors import NotFound, Unavailable
from service.kube.resource import Resource

CONTRACTS = ("v1beta2", "v1beta1")
# How long "there is no such kind" is believed without asking again.
BELIEVE_SECONDS = 5.0
# A CustomResourceDefinition takes a moment from stored to served, and from deleted to gone: what was said within a
# while of a change is asked again.
SETTLING_SECONDS = 15.0
BELIEVE_WHILE_SETTLING_SECONDS = 0.2
MOST_REMEMBERED = 256
"""Tenants choose the versions that we ask about, and nearly all of those they could choose are not served."""


@dataclass(frozen=True, slots=True)
class CapiResources:
    """The Cluster API contract in force and the kinds that we use of it."""

    version: str
    clusters: Resource
    machines: Resource
    drain_rules: Resource | None = None
    """Cluster API has them from 1.9 on."""


@dataclass(frozen=True, slots=True)
class _Table:
    """The kinds of one group and version; empty if it is not served."""

    kinds: dict[str, Resource]
    asked_at: float


class Discovery:
    """Resolves kinds. `contract` forces a version of Cluster API instead of the newest one served."""

    def __init__(
        self, client: Client, *, contract: str | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._contracts = (contract,) if contract else CONTRACTS
        self._tables: dict[str, _Table] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._changed_at: dict[str, float] = {}
        self._listeners: list[Callable[[str], None]] = []

    async def resolve(self, api_version: str, kind: str) -> Resource | None:
        """The resource behind `apiVersion` and `kind`, or None if the server has no such kind now."""
        table, asking = self._tables.get(api_version), self._asking[api_version]
        if table is not None and kind in table.kinds and asking.locked():
            return table.kinds[kind]  # somebody makes sure of it already: that need not hold up everybody
        async with asking:  # of a thousand who ask at once, one asks the server
            table = self._tables.get(api_version)
            if table is None or not self._believable(api_version, table, kind):
                table = await self._ask(api_version)
                self._remember(api_version, table)
            return table.kinds.get(kind)

    async def served(self, group: str, kind: str) -> Resource | None:
        """The resource behind a kind in whatever version the server prefers, or None if it has no such kind now."""
        for version in await self._versions(group):
            resource = await self.resolve(f"{group}/{version}", kind)
            if resource is not None:
                return resource
        return None

    async def cluster_scoped(self, group: str) -> frozenset[str]:
        """The kinds of a group that are cluster-scoped in any of its versions; always asks the server."""
        tables = [await self._ask(f"{group}/{version}") for version in await self._versions(group)]
        return frozenset(kind for table in tables for kind, each in table.kinds.items() if not each.namespaced)

    async def capi(self) -> CapiResources | None:
        """The newest Cluster API contract whose kinds are served, or None while Cluster API is not installed.

        During an upgrade definitions come one by one: a version may be there before the kinds that we need of it.
        """
        served = await self._versions(CAPI_GROUP)
        # The newest is asked about last: during an installation the older must not win by a moment.
        found = [await self._contract(version) for version in reversed(self._contracts) if version in served]
        return next((capi for capi in reversed(found) if capi is not None), None)

    async def _contract(self, version: str) -> CapiResources | None:
        machines = await self.resolve(f"{CAPI_GROUP}/{version}", "Machine")
        clusters = await self.resolve(f"{CAPI_GROUP}/{version}", "Cluster")
        drain_rules = await self.resolve(f"{CAPI_GROUP}/{version}", "MachineDrainRule")
        return CapiResources(version, clusters, machines, drain_rules) if machines and clusters else None

    def listen(self, listener: Callable[[str], None]) -> None:
        """From now on `listener` is told the group of every CustomResourceDefinition that changes."""
        self._listeners.append(listener)

    def crd_changed(self, name: str) -> None:
        """A CustomResourceDefinition (`machines.cluster.x-k8s.io`) came, changed or went: ask again about its group."""
        group = name.partition(".")[2]
        self.forget(group)
        self._changed_at[group] = self._monotonic()
        for listener in self._listeners:
            listener(group)

    def forget(self, group: str) -> None:
        """Asks the server again next time; also the right thing after a 404 for a whole kind."""
        for api_version in [key for key in self._tables if key.partition("/")[0] == group]:
            del self._tables[api_version]

    def _remember(self, api_version: str, table: _Table) -> None:
        if len(self._tables) >= MOST_REMEMBERED:
            self._tables = {name: known for name, known in self._tables.items() if known.kinds}
            for name in [name for name, lock in self._asking.items() if name not in self._tables and not lock.locked()]:
                del self._asking[name]
        self._tables[api_version] = table

    def _believable(self, api_version: str, table: _Table, kind: str) -> bool:
        age, known = self._monotonic() - table.asked_at, kind in table.kinds
        since = table.asked_at - self._changed_at.get(api_version.partition("/")[0], -inf)
        if since < SETTLING_SECONDS:
            # What is missing may come at any moment; what is there is made sure of after twice as long each time.
            return age < max(BELIEVE_WHILE_SETTLING_SECONDS, since if known else 0.0)
        return known or age < BELIEVE_SECONDS

    async def _versions(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first."""
        try:
            answer = await self._client.raw_get(f"/apis/{group}")
        except NotFound:
            return []
        return [entry["version"] for entry in answer.get("versions") or ()]

    async def _ask(self, api_version: str) -> _Table:
        asked_at = self._monotonic()
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            answer = await self._client.raw_get(path)
        except NotFound:
            await self._check_consistent(group, version)
            return _Table({}, asked_at)
        return _Table({entry["kind"]: _resource(group, version, entry) for entry in _own(answer)}, asked_at)

    async def _check_consistent(self, group: str, version: str) -> None:
        """`Unavailable` if the server lists a version that it does not know when asked about it.

        So it is for a moment after its start, when the definitions are read but not all served yet. To take that for
        "no such kind" would be to say that everything of it is gone.
        """
        if group and version in await self._versions(group):
            raise Unavailable(f"{group}/{version} is listed, but not served yet")


def _own(answer: dict[str, Any]) -> list[dict[str, Any]]:
    # Subresources are listed too, as `machines/status`, some under a kind of another group.
    return [entry for entry in answer.get("resources") or () if "/" not in entry["name"]]


def _resource(group: str, version: str, entry: dict[str, Any]) -> Resource:
    return Resource(
        group=group, version=version, plural=entry["name"], kind=entry["kind"], namespaced=bool(entry["namespaced"])
    )
