"""Everything that is watched in the management cluster; providers' kinds only while they are served and needed."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from crds import names
from service.decide.world import Contract
from service.kube.client import Client
from service.kube.discovery import CapiResources as Found
from service.kube.discovery import Discovery
from service.kube.errors import KubeError, NotFound, Rejected, Unavailable
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, Resource
from service.observe.indexes import INDEXES, kind_term
from service.runtime.cache import UNKNOWN_VERSION, Change, EventType, Object
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.tasks import start
from service.sharding.shard import SHARD, shard_index

SYNC_SECONDS = 15.0
ASK_AGAIN_SECONDS = 2.0

DOWN_SECONDS = 300.0
"""Without a watch for so long, a replica knows too little of what happens to be given work."""
DRAIN_RULE_BYTES = 64 * 1024
"""Of the spec of a MachineDrainRule: at most 64 selectors, and tenants write them."""

FAILURES_THAT_LAST = 3
"""A kind that the API server answers for, but has failed to list so often, is broken until somebody mends it."""

SWEEP_SECONDS = 300.0
"""How often the watches of providers' kinds are compared with what ScheduledMachines name; a comparison in memory."""

log = structlog.get_logger(__name__)

Raw = dict[str, Any]
Listener = Callable[[Change], None]


class NotListedError(Unavailable):
    """A kind whose objects nobody can list, such as for want of the webhook that converts them: no passing fault."""


def _ignore(*_: object) -> None:
    """For a listener that is not needed."""


@dataclass(frozen=True, slots=True)
class WatchListener:
    """What is called when a watched object changes, or a watch has trouble."""

    scheduled: Listener = _ignore
    cluster: Listener = _ignore
    child: Listener = _ignore
    drain_rule: Listener = _ignore
    restart: Callable[[str, str], None] = _ignore
    """With the kind whose watch broke, and why."""
    defect: Callable[[str, str], None] = _ignore
    """With the kind of an object that cannot be read, and what is wrong with it."""
    ended: Callable[[Resource], None] = _ignore
    """With a provider's kind that is not watched any more."""


@dataclass(frozen=True, slots=True)
class CapiInformers:
    """Cluster API as it is watched; replaced as a whole, so that whoever holds it sees things that belong together."""

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
        self._client = client
        self._listener = WatchListener()
        self._discovery = discovery
        self._namespaces = namespaces
        self._group: asyncio.TaskGroup | None = None
        self._kinds: dict[Resource, Informer] = {}
        self._kind_tasks: dict[Resource, asyncio.Task[None]] = {}
        self._unneeded: set[Resource] = set()
        """Kinds that the last sweep found unneeded."""
        self._capi_tasks: list[asyncio.Task[None]] = []
        self._found: Found | None = None
        self.capi: CapiInformers | None = None
        indexes = INDEXES | {SHARD: shard_index(shards)}
        self.scheduled = self._informer(SCHEDULED_MACHINES, self._scheduled_changed, indexes=indexes)
        self._definitions = self._informer(CUSTOM_RESOURCE_DEFINITIONS, self._definition_changed, metadata_only=True)

    def subscribe(self, listener: WatchListener) -> None:
        """Sets what is called on changes; before `start`."""
        self._listener = listener

    def _scheduled_changed(self, change: Change) -> None:
        self._listener.scheduled(change)

    def defines(self, resource: Resource) -> bool:
        """Whether the CustomResourceDefinition of a kind exists."""
        return Key("", resource.label) in self._definitions

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Starts watching in `group`; returns when everything that is needed at once is complete."""
        self._group = group
        for informer in (self.scheduled, self._definitions):
            group.create_task(informer.run(), name=f"watch {informer.resource.plural}")
        await self._definitions.synced()
        await self._find_capi_at_last()
        await self.scheduled.synced()

    async def _find_capi_at_last(self) -> None:
        """Waits out whatever is in the way: without a sight of all Machines nobody could tell which are missing."""
        while True:
            try:
                await self.find_capi()
            except KubeError as error:
                log.warning("cannot see Cluster API's objects", error=error.message)
                await asyncio.sleep(ASK_AGAIN_SECONDS)
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
        return self._group is not None and all(informer.is_synced for informer in core if informer is not None)

    @property
    def not_live(self) -> str | None:
        """Which watch that everything depends on has not been live for long, and why; None if all are.

        Not those of providers' kinds: tenants choose them, and one that cannot be listed is its users' trouble alone.
        """
        for informer in (self.scheduled, self._definitions, self.machines, self.clusters):
            down = informer.down_seconds if informer is not None else 0.0
            if informer is not None and down > DOWN_SECONDS and not isinstance(informer.error, NotFound):
                why = informer.error.message if informer.error else "it ends as soon as it begins"
                return f"the watch of {informer.resource.label} has not been live for {down:.0f} seconds: {why}"
        return None

    async def find_capi(self) -> bool:
        """Asks which contract of Cluster API is served and watches that; whether it changed.

        What was watched stays in force until all of the new is seen; `Unavailable` if that does not come about.
        """
        found = await self._discovery.capi()
        if found == self._found:
            return False
        tasks, capi = await self._watch_capi(found) if found else ([], None)
        old, self._capi_tasks, self.capi, self._found = self._capi_tasks, tasks, capi, found
        for task in old:
            task.cancel()
        return True

    async def _watch_capi(self, found: Found) -> tuple[list[asyncio.Task[None]], CapiInformers]:
        machines = self._informer(found.machines, self._listener.child, labels=names.LABEL_OWNER)
        clusters = self._informer(found.clusters, self._listener.cluster, slim=_slim_cluster)
        rules = self._drain_rules(found.drain_rules) if found.drain_rules else None
        tasks = [self._run(informer) for informer in (machines, clusters, rules) if informer is not None]
        try:
            for informer in (machines, clusters):
                await informer.synced(within=SYNC_SECONDS)
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
        return tasks, CapiInformers(Contract(found.version), machines, clusters, rules)

    def _drain_rules(self, resource: Resource) -> Informer:
        """Not waited for: only drains need them."""
        indexes = {"namespace": _namespace_terms}
        return self._informer(resource, self._listener.drain_rule, slim=_slim_drain_rule, indexes=indexes)

    async def kind(self, api_version: str, kind: str) -> Informer | None:
        """The cache of a provider's kind, watched from now on; None if it is not installed."""
        return await self._cache_of(await self._discovery.resolve(api_version, kind))

    async def kind_of_any_version(self, api_version: str, kind: str) -> Informer | None:
        """The cache of a kind in whatever version of its group it is served; None if it is in none."""
        return await self._cache_of(await self._discovery.served(api_version.rpartition("/")[0], kind))

    async def _cache_of(self, resource: Resource | None) -> Informer | None:
        if resource is None or not resource.namespaced:
            return None
        informer = self._kinds.get(resource)
        if informer is None:
            informer = self._open(resource)
        if not informer.is_synced and informer.error is None:  # what is known to fail, nobody need wait for
            with suppress(Unavailable):
                await informer.synced(within=SYNC_SECONDS)
        if informer.is_synced:
            return informer
        error = informer.error or Unavailable(f"{resource.label} cannot be listed: no answer")
        if isinstance(error, Unavailable) and error.status and informer.failures >= FAILURES_THAT_LAST:
            raise NotListedError(error.message, status=error.status) from error
        raise error

    def _open(self, resource: Resource) -> Informer:
        informer = self._informer(resource, self._listener.child, labels=names.LABEL_OWNER)
        informer.on_restart(lambda reason: self._kind_failed(informer, reason))
        self._kinds[resource] = informer
        self._kind_tasks[resource] = self._run(informer)
        return informer

    @property
    def kinds_watched(self) -> int:
        """How many providers' kinds are watched."""
        return len(self._kinds)

    async def sweep_for_ever(self) -> None:
        """Ends watches that no ScheduledMachine needs, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Ends the watch of every provider's kind that was needed neither now nor at the last sweep."""
        unneeded = {resource for resource, informer in self._kinds.items() if not self._needed(resource, informer)}
        for resource in unneeded & self._unneeded:
            self._end(resource, "no ScheduledMachine names this kind")
        self._unneeded = unneeded

    def _needed(self, resource: Resource, informer: Informer) -> bool:
        named = self.scheduled.count_by("kind", kind_term(resource.api_version, resource.kind))
        return named > 0 or len(informer) > 0

    def _kind_failed(self, informer: Informer, reason: str) -> None:
        self._listener.restart(informer.resource.plural, reason)
        if reason == NotFound.__name__ and informer.failures >= FAILURES_THAT_LAST:
            self._discovery.forget(informer.resource.group)
            self._end(informer.resource, "the API server does not serve this kind any more")

    def _end(self, resource: Resource, why: str) -> None:
        """Ends a watch and drops its cache; the next pass that needs the kind opens both again."""
        informer = self._kinds.pop(resource, None)
        if informer is None:
            return
        log.info("watch ended", kind=resource.label, why=why)
        self._kind_tasks.pop(resource).cancel()
        self._listener.ended(resource)
        for key in informer:
            raw = informer.get(key)
            if raw is not None:
                self._listener.child(Change(EventType.CHANGED, key, raw, UNKNOWN_VERSION))

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
        informer.on_restart(lambda reason: self._listener.restart(resource.plural, reason))
        informer.on_defect(lambda defect: self._listener.defect(resource.plural, defect))
        return informer

    def _run(self, informer: Informer) -> asyncio.Task[None]:
        if self._group is None:
            raise RuntimeError("start() comes first")
        return start(self._group, informer.run(), name=f"watch {informer.resource.plural}")

    def _definition_changed(self, change: Change) -> None:
        self._discovery.crd_changed(change.key.name)
        if change.type is EventType.DELETED:
            for resource in [each for each in self._kinds if each.label == change.key.name]:
                self._end(resource, "its CustomResourceDefinition was deleted")


def _slim_cluster(raw: Object) -> Object:
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "annotations", "labels")
    return {
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"paused": bool(spec.get("paused"))},
    }


def _slim_drain_rule(raw: Object) -> Object:
    """One that is larger than anybody means it is kept without its spec, which makes it one that cannot be read."""
    kept = {name: raw["metadata"].get(name) for name in ("name", "namespace", "uid", "resourceVersion")}
    spec = raw.get("spec")
    return {"metadata": kept, "spec": spec if _is_small(spec) else None}


def _is_small(spec: Any) -> bool:
    try:
        return len(orjson.dumps(spec)) <= DRAIN_RULE_BYTES
    except orjson.JSONEncodeError:
        return False  # nested too deep


def _namespace_terms(raw: Object) -> Iterable[str]:
    yield raw["metadata"]["namespace"]
