"""Everything that is watched in the management cluster, opened as needed, and kept for as long as the process lives."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from crds import names
from service.decide.world import Contract
from service.kube.client import Client
from service.kube.discovery import Discovery
from service.kube.errors import NotFound, Rejected
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, Resource
from service.runtime.cache import Change, Object
from service.runtime.informer import Informer

SYNC_SECONDS = 15.0

Raw = dict[str, Any]
Listener = Callable[[Change], None]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who is told of changes that others made."""

    scheduled: Listener
    cluster: Listener
    child: Listener
    restart: Callable[[str, str], None]
    """Told the kind whose watch broke, and why."""


class Watches:
    """The caches that observation reads. Only children with our label are watched: there may be many other Machines."""

    def __init__(self, client: Client, discovery: Discovery, hooks: Hooks, namespaces: tuple[str, ...] = ()) -> None:
        self._client = client
        self._hooks = hooks
        self._discovery = discovery
        self._namespaces = namespaces
        self._group: asyncio.TaskGroup | None = None
        self._kinds: dict[Resource, Informer] = {}
        self._capi_tasks: list[asyncio.Task[None]] = []
        self.contract: Contract | None = None
        self.scheduled = self._informer(SCHEDULED_MACHINES, hooks.scheduled, indexes=INDEXES)
        self.machines: Informer | None = None
        self.clusters: Informer | None = None

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Starts watching in `group`; returns when everything that is needed at once is complete."""
        self._group = group
        definitions = self._informer(CUSTOM_RESOURCE_DEFINITIONS, self._definition_changed, metadata_only=True)
        for informer in (self.scheduled, definitions):
            group.create_task(informer.run(), name=f"watch {informer.resource.plural}")
        await definitions.synced()
        await self.find_capi()
        await self.scheduled.synced()

    @property
    def is_synced(self) -> bool:
        """Whether the caches that everything depends on are complete."""
        core = (self.scheduled, self.machines, self.clusters)
        return self._group is not None and all(informer.is_synced for informer in core if informer is not None)

    async def find_capi(self) -> bool:
        """Asks which contract of Cluster API is served and watches that; whether it changed."""
        found = await self._discovery.capi()
        contract = Contract(found.version) if found else None
        if contract is self.contract:
            return False
        for task in self._capi_tasks:
            task.cancel()
        self._capi_tasks = []
        if found is None:
            self.machines = self.clusters = self.contract = None
            return True
        machines = self._informer(found.machines, self._hooks.child, labels=names.LABEL_OWNER)
        clusters = self._informer(found.clusters, self._hooks.cluster, slim=_slim_cluster)
        self._capi_tasks = [self._run(informer) for informer in (machines, clusters)]
        await machines.synced()
        await clusters.synced()
        self.machines, self.clusters, self.contract = machines, clusters, contract
        return True

    async def kind(self, api_version: str, kind: str) -> Informer | None:
        """The cache of a provider's kind, watched from now on; None if it is not installed."""
        resource = await self._discovery.resolve(api_version, kind)
        if resource is None or not resource.namespaced:
            return None
        informer = self._kinds.get(resource)
        if informer is None:
            informer = self._informer(resource, self._hooks.child, labels=names.LABEL_OWNER)
            self._kinds[resource] = informer
            self._run(informer)
        if not informer.is_synced:
            if informer.error is not None:
                raise informer.error  # known to fail: nobody need wait for it
            await informer.synced(within=SYNC_SECONDS)
        return informer

    async def resolve(self, api_version: str, kind: str) -> Resource:
        """The resource behind a kind that can be a machine's own."""
        resource = await self._discovery.resolve(api_version, kind)
        if resource is None:
            raise NotFound(f"{kind} in {api_version} is not served by this API server")
        if not resource.namespaced:
            raise Rejected(f"{kind} in {api_version} is not namespaced, so it cannot be one machine's own")
        return resource

    def informer_of(self, resource: Resource) -> Informer | None:
        """The cache that holds objects of that resource, if it is watched."""
        if self.machines is not None and self.machines.resource == resource:
            return self.machines
        return self._kinds.get(resource)

    def listen_to_definitions(self, listener: Callable[[str], None]) -> None:
        """From now on `listener` is told the API group of every CustomResourceDefinition that changes."""
        self._discovery.listen(listener)

    def _informer(self, resource: Resource, listener: Listener, **options: Any) -> Informer:
        informer = Informer(self._client, resource, namespaces=self._namespaces, **options)
        informer.listen(listener)
        informer.on_restart(lambda reason: self._hooks.restart(resource.plural, reason))
        return informer

    def _run(self, informer: Informer) -> asyncio.Task[None]:
        if self._group is None:
            raise RuntimeError("start() comes first")
        return self._group.create_task(informer.run(), name=f"watch {informer.resource.plural}")

    def _definition_changed(self, change: Change) -> None:
        self._discovery.crd_changed(change.key.name)


def _slim_cluster(raw: Object) -> Object:
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "annotations")
    return {
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"paused": bool(spec.get("paused"))},
    }


def _cluster_terms(raw: Object) -> Iterable[str]:
    spec = raw.get("spec")
    name = spec.get("clusterName") if isinstance(spec, dict) else None
    if isinstance(name, str):
        yield name


def _phase_terms(raw: Object) -> Iterable[str]:
    status = raw.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    yield phase if isinstance(phase, str) else "Pending"


INDEXES = {"cluster": _cluster_terms, "phase": _phase_terms}
