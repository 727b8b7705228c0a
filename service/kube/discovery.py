"""Discovers what an API server serves: the plural of a kind, its scope, and the Cluster API contract.

Answers are cached until a CustomResourceDefinition changes. A missing kind is an ordinary answer, not an error.
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
# How long a missing kind is cached.
MISSING_SECONDS = 5.0
# It takes a moment until the server serves a new CustomResourceDefinition, or no longer serves a deleted one. Answers
# that the server gave this soon after a change are cached only briefly.
SETTLING_SECONDS = 15.0
SETTLING_CACHE_SECONDS = 0.2
MAX_CACHED = 256
"""Limits the cache: tenants choose the versions that are looked up, and almost any text is a version not served."""


@dataclass(frozen=True, slots=True)
class CapiResources:
    """The Cluster API contract in use, and the kinds that the controller uses of it."""

    version: str
    clusters: Resource
    machines: Resource
    drain_rules: Resource | None = None
    """Since Cluster API 1.9."""


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
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._changed_at: dict[str, float] = {}
        self._listeners: list[Callable[[str], None]] = []

    async def resolve(self, api_version: str, kind: str) -> Resource | None:
        """The resource behind `apiVersion` and `kind`, or None if the server has no such kind now."""
        table = self._tables.get(api_version)
        lock = self._locks[api_version]
        if table is not None and kind in table.kinds and lock.locked():
            return table.kinds[kind]  # another caller refreshes it already: this one need not wait
        async with lock:  # of a thousand callers at once, one asks the server
            table = self._tables.get(api_version)
            if table is None or not self._is_fresh(api_version, table, kind):
                table = await self._ask(api_version)
                self._cache(api_version, table)
            return table.kinds.get(kind)

    async def served(self, group: str, kind: str) -> Resource | None:
        """The resource behind a kind in the version that the server prefers, or None if it has no such kind now."""
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

        During an upgrade the definitions appear one by one: a version may be served before all its kinds are.
        """
        served = await self._versions(CAPI_GROUP)
        # Looks up the newest last: during an installation an older contract must not win by a moment.
        found = [await self._contract(version) for version in reversed(self._contracts) if version in served]
        return next((capi for capi in reversed(found) if capi is not None), None)

    async def _contract(self, version: str) -> CapiResources | None:
        machines = await self.resolve(f"{CAPI_GROUP}/{version}", "Machine")
        clusters = await self.resolve(f"{CAPI_GROUP}/{version}", "Cluster")
        drain_rules = await self.resolve(f"{CAPI_GROUP}/{version}", "MachineDrainRule")
        if machines is None or clusters is None:
            return None
        return CapiResources(version, clusters, machines, drain_rules)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with the group of every CustomResourceDefinition that changes, from now on."""
        self._listeners.append(listener)

    def crd_changed(self, name: str) -> None:
        """Drops the cached answers about the group of a CustomResourceDefinition (`machines.cluster.x-k8s.io`)."""
        group = name.partition(".")[2]
        self.forget(group)
        self._changed_at[group] = self._monotonic()
        for listener in self._listeners:
            listener(group)

    def forget(self, group: str) -> None:
        """Drops the cached answers about a group; call it also after a 404 for a whole kind."""
        for api_version in [key for key in self._tables if key.partition("/")[0] == group]:
            del self._tables[api_version]

    def _cache(self, api_version: str, table: _Table) -> None:
        if len(self._tables) >= MAX_CACHED:
            self._tables = {name: known for name, known in self._tables.items() if known.kinds}
            for name in [name for name, lock in self._locks.items() if name not in self._tables and not lock.locked()]:
                del self._locks[name]
        self._tables[api_version] = table

    def _is_fresh(self, api_version: str, table: _Table, kind: str) -> bool:
        age = self._monotonic() - table.asked_at
        known = kind in table.kinds
        since = table.asked_at - self._changed_at.get(api_version.partition("/")[0], -inf)
        if since < SETTLING_SECONDS:
            # A missing kind may appear at any moment; a known one is checked again after twice as long each time.
            return age < max(SETTLING_CACHE_SECONDS, since if known else 0.0)
        return known or age < MISSING_SECONDS

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

        This happens for a moment after the server starts, when it has read the definitions but does not serve all of
        them yet. Without this check, all objects of the kind would seem to be deleted.
        """
        if group and version in await self._versions(group):
            raise Unavailable(f"{group}/{version} is listed, but not served yet")


def _own(answer: dict[str, Any]) -> list[dict[str, Any]]:
    # The list also has subresources, such as `machines/status`, some with a kind of another group.
    return [entry for entry in answer.get("resources") or () if "/" not in entry["name"]]


def _resource(group: str, version: str, entry: dict[str, Any]) -> Resource:
    return Resource(
        group=group, version=version, plural=entry["name"], kind=entry["kind"], namespaced=bool(entry["namespaced"])
    )
