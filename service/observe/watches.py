"""Everything that is watched in the management cluster: ScheduledMachines, Cluster API, and providers' kinds."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from crds import names
from service.decide.world import Contract
from service.kube.client import Client
from service.kube.discovery import CapiResources, Discovery
from service.kube.errors import KubeError, NotFound
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, Resource
from service.observe.drain_rules import DRAIN_RULE_INDEXES, slim_drain_rule
from service.observe.indexes import INDEXES
from service.observe.informers import InformerFactory, WatchListener
from service.observe.provider_watches import ProviderWatches
from service.runtime.cache import Change, EventType, Object
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.sharding.shard import SHARD, shard_index

SYNC_SECONDS: Final = 15.0
RETRY_SECONDS: Final = 2.0
DOWN_SECONDS: Final = 300.0
"""After this long without a watch, the caches of a replica are too old for it to be ready."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CapiInformers:
    """The watches of one contract of Cluster API; replaced as a whole, so that one pass never mixes two contracts."""

    contract: Contract
    machines: Informer
    clusters: Informer
    drain_rules: Informer | None = None
    """None where this version of Cluster API has no MachineDrainRules."""


class Watches:
    """The caches that observation reads. Only children with our label are watched: there may be many other Machines."""

    def __init__(
        self, client: Client, discovery: Discovery, namespaces: tuple[str, ...] = (), *, shards: int = 1
    ) -> None:
        self._discovery = discovery
        self._factory = InformerFactory(client, namespaces)
        self._capi_tasks: list[asyncio.Task[None]] = []
        self._served: CapiResources | None = None
        self.capi: CapiInformers | None = None
        indexes = INDEXES | {SHARD: shard_index(shards)}
        self.scheduled = self._factory.make(SCHEDULED_MACHINES, self._scheduled_changed, indexes=indexes)
        self._definitions = self._factory.make(
            CUSTOM_RESOURCE_DEFINITIONS, self._definition_changed, metadata_only=True
        )
        self.providers = ProviderWatches(self._factory, discovery, self.scheduled)

    def subscribe(self, listener: WatchListener) -> None:
        """Sets what is called on changes; before `start`."""
        self._factory.listener = listener

    def listen_to_definitions(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` from now on with the API group of every CustomResourceDefinition that changes."""
        self._discovery.listen(listener)

    def defines(self, resource: Resource) -> bool:
        """Whether the CustomResourceDefinition of a kind exists."""
        return Key("", resource.label) in self._definitions

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Starts watching in `group`; returns when everything that is needed at once is complete."""
        self._factory.group = group
        for informer in (self.scheduled, self._definitions):
            group.create_task(informer.run(), name=f"watch {informer.resource.plural}")
        await self._definitions.synced()
        await self._wait_for_capi()
        await self.scheduled.synced()

    async def _wait_for_capi(self) -> None:
        """Retries until Cluster API is watched: without all Machines the controller cannot know which are missing."""
        while True:
            try:
                await self.find_capi()
            except KubeError as error:
                log.warning("cannot see Cluster API's objects", error=error.message)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    @property
    def contract(self) -> Contract | None:
        """The contract of Cluster API in force."""
        return self.capi.contract if self.capi else None

    @property
    def machines(self) -> Informer | None:
        """Our Machines."""
        return self.capi.machines if self.capi else None

    @property
    def clusters(self) -> Informer | None:
        """All Clusters."""
        return self.capi.clusters if self.capi else None

    @property
    def is_synced(self) -> bool:
        """Whether the caches that everything depends on are complete."""
        core = (self.scheduled, self.machines, self.clusters)
        return self._factory.group is not None and all(informer.is_synced for informer in core if informer is not None)

    @property
    def not_live(self) -> str | None:
        """Which watch that everything depends on has not been live for long, and why; None if all are.

        Not those of providers' kinds: tenants choose them, and a kind that cannot be listed concerns its users alone.
        """
        for informer in (self.scheduled, self._definitions, self.machines, self.clusters):
            down = informer.down_seconds if informer is not None else 0.0
            if informer is not None and down > DOWN_SECONDS and not isinstance(informer.error, NotFound):
                why = informer.error.message if informer.error else "it ends as soon as it begins"
                return f"the watch of {informer.resource.label} has not been live for {down:.0f} seconds: {why}"
        return None

    async def find_capi(self) -> bool:
        """Finds out which contract of Cluster API is served and watches that; returns whether it changed.

        The old watches stay in force until the new ones are complete; `Unavailable` if they do not become so in time.
        """
        served = await self._discovery.capi()
        if served == self._served:
            return False
        tasks, capi = await self._watch_capi(served) if served else ([], None)
        for task in self._capi_tasks:
            task.cancel()
        self._capi_tasks = tasks
        self._served = served
        self.capi = capi
        return True

    async def _watch_capi(self, served: CapiResources) -> tuple[list[asyncio.Task[None]], CapiInformers]:
        listener = self._factory.listener
        machines = self._factory.make(served.machines, listener.child, labels=names.LABEL_OWNER)
        clusters = self._factory.make(served.clusters, listener.cluster, slim=_slim_cluster)
        rules = self._drain_rules(served.drain_rules) if served.drain_rules else None
        tasks = [self._factory.run(informer) for informer in (machines, clusters, rules) if informer is not None]
        try:
            for informer in (machines, clusters):
                await informer.listed(pause=SYNC_SECONDS)
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
        return tasks, CapiInformers(Contract(served.version), machines, clusters, rules)

    def _drain_rules(self, resource: Resource) -> Informer:
        """Not waited for: only drains need them."""
        changed = self._factory.listener.drain_rule
        return self._factory.make(resource, changed, slim=slim_drain_rule, indexes=DRAIN_RULE_INDEXES)

    async def resolve(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind; `NotFound` if it is not served, `Rejected` if it is cluster-scoped."""
        return await self.providers.resolve(api_version, kind)

    def informer_of(self, resource: Resource) -> Informer | None:
        """The cache that holds objects of that resource, if it is watched."""
        if self.machines is not None and self.machines.resource == resource:
            return self.machines
        return self.providers.informers.get(resource)

    def _scheduled_changed(self, change: Change) -> None:
        self._factory.listener.scheduled(change)

    def _definition_changed(self, change: Change) -> None:
        self._discovery.crd_changed(change.key.name)
        if change.type is EventType.DELETED:
            self.providers.definition_deleted(change.key.name)


def _slim_cluster(raw: Object) -> Object:
    metadata = raw["metadata"]
    spec = raw.get("spec") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "annotations", "labels")
    return {
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"paused": bool(spec.get("paused"))},
    }
