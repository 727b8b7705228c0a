"""Puts the controller together: watches wake keys, the queue orders them, workers reconcile them.

A component of `service.app`: it lives beside the servers, and the process ends if it dies.
"""

import asyncio
import math
import socket
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Final, NoReturn

import structlog

from crds import names
from crds.status import Phase
from service import metrics
from service.act.events import EventRecorder
from service.act.perform import Performer
from service.app import Component, Shared
from service.controller.availability import Availability
from service.controller.reconciler import Reconciler, TroubleError
from service.decide.precedence import precedence_of
from service.decide.reasons import Reason
from service.kube.decode import Object
from service.kube.discovery import BELIEVE_SECONDS, Discovery
from service.kube.errors import KubeError
from service.kube.resource import SCHEDULED_MACHINES
from service.kube.transport import Call
from service.observe.freshness import DOUBT_SECONDS
from service.observe.indexes import READY
from service.observe.observer import Observer
from service.observe.prewarm import Prewarmer
from service.observe.scopes import Scopes
from service.observe.unowned_nodes import UnownedNodes, asks_back
from service.observe.watches import Hooks, Watches
from service.runtime.cache import Change, EventType
from service.runtime.key import Key
from service.runtime.queue import URGENT
from service.runtime.slots import Slots
from service.runtime.worker import WorkerPool
from service.settings import Settings
from service.sharding.assignment import ShardAssignment, ShardQueue
from service.sharding.fence import Fence, NoFence, NotOursError
from service.sharding.manager import ShardListener, ShardManager
from service.sharding.shard import Shard
from service.sharding.watchdog import Watchdog
from service.workload.clusters import WorkloadClusters

SUFFIXES: Final = (names.MACHINE_SUFFIX, names.BOOTSTRAP_SUFFIX, names.INFRASTRUCTURE_SUFFIX)
SETTLE_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""CustomResourceDefinitions come in bunches and are served some time after they are stored: ask more than once."""

SERVED_SECONDS: Final = BELIEVE_SECONDS + 1.0
"""By then every kind that was just defined can be resolved."""

HASTE_SECONDS: Final = 2.0
"""When the API server is well again, those that failed meanwhile look again within so long."""

CLOCK_SECONDS: Final = 5.0
"""How often it is asked whether the clock was set back."""

LAST_WORDS_SECONDS: Final = 2.0
"""Events that wait to be sent when the service stops have so long; another replica may have the leases by then."""

RIVALS_WOKEN: Final = 16
"""How many of those who want the same host look again when one of them changes: the best claims first."""

PODS_SETTLE_SECONDS: Final = 0.5
"""Pods of a Node that is drained go in bunches: one look for all that changed within so long."""

KNOWN_STATUSES: Final = frozenset({0, *HTTPStatus})

log = structlog.get_logger(__name__)


class StoppedError(Exception):
    """Ends the controller's tasks after an orderly stop."""


def component(shared: Shared) -> Component:
    """The controller as a part of the service."""
    settings = shared.settings
    controller = Controller(shared, Fence(settings.instance_count, alarm=Watchdog()) if settings.leases else None)
    return Component(name="controller", run=controller.run, unready=controller.unready)


class Controller:
    """All that turns ScheduledMachines into machines; with a `fence`, only those of shards whose lease it holds."""

    def __init__(self, shared: Shared, fence: Fence | None = None) -> None:
        self._shared = shared
        self.fence = fence or NoFence()
        settings, client = shared.settings, shared.client
        forced = None if settings.capi_contract == "auto" else settings.capi_contract
        self.queue = ShardQueue(shared.clock, self.fence.owns, running_per_namespace=_most_of_one(settings))
        hooks = Hooks(
            self._scheduled_changed,
            self._cluster_changed,
            self._child_changed,
            _count_restart,
            _count_defect,
            self._drain_rule_changed,
        )
        discovery = Discovery(client, contract=forced)
        self.watches = Watches(client, discovery, hooks, settings.namespaces, shards=self.fence.count)
        self._scopes = Scopes(discovery, settings.policy, shared.cluster_scoped)
        self.workloads = WorkloadClusters(client, guard=self.fence.check, observer=_count_call)
        self.observer = Observer(
            client, self.watches, self.workloads, settings.policy, shared.clock, settings.host_identities
        )
        self.events = EventRecorder(client, instance=socket.gethostname(), busy=lambda: self.queue.depth > 0)
        slots = Slots(settings.workers, self.queue.add)
        performer = Performer(client, self.observer, slots)
        performer.doubtful = self._may_be_stale
        self.reconciler = Reconciler(self.queue, self.observer, performer, self.events, shared.clock)
        self.reconciler.on_finished = lambda key, waits: slots.finished(key, waits=waits)
        self.reach = Availability(self._ask, lambda: self.queue.hasten(HASTE_SECONDS))
        self._ownership = ShardAssignment(self.fence, self.queue, self.watches.scheduled, self.reconciler.forget)
        self.leases = self._make_leases(fence) if fence is not None else None
        self._warmth = Prewarmer(self.watches, settings.policy)
        self._pool = WorkerPool(self.queue, self._handle, size=settings.workers, on_error=self._failed)
        self._started = False
        self._taken_at: dict[Shard, float] = {}
        """The version at which a shard became ours: whoever had it before wrote nothing after that."""
        self._capi_changed = asyncio.Event()
        self._strangers = UnownedNodes()
        self._connect()

    def unready(self) -> str | None:
        """Why no work should come here: the caches are not complete yet, or have not been kept so for long."""
        if not (self._started and self.watches.is_synced):
            return "the caches are not complete yet"
        return self.watches.not_live

    async def run(self) -> None:
        """Runs until the service stops."""
        try:
            async with asyncio.TaskGroup() as group:
                await self.watches.start(group)
                self.watches.listen_to_definitions(self._definitions_changed)
                group.create_task(self._follow_capi(), name="find Cluster API")
                group.create_task(self._scopes.run(), name="scopes of kinds")
                group.create_task(self.watches.sweep_for_ever(), name="watches that nobody needs")
                group.create_task(self.workloads.run(), name="workload clusters")
                group.create_task(self._warmth.run(), name="caches for others")
                group.create_task(self.events.run(), name="events")
                group.create_task(self.reach.run(), name="reach")
                group.create_task(self._follow_clock(), name="follow the clock")
                group.create_task(self._pool.run(), name="workers")
                if self.leases is not None:
                    group.create_task(self.leases.run(), name="leases")
                self._started = True
                log.info("controller started", objects=len(self.watches.scheduled), capi=self.watches.contract)
                await self._until_stopped()
        except* StoppedError:
            log.info("controller stopped")

    async def _until_stopped(self) -> NoReturn:
        """Puts down what is in hand, then ends the tasks beside it."""
        await self._shared.stopping.wait()
        self.reach.release()
        await self._pool.stop(self._shared.settings.stop_seconds)
        if self.leases is not None:
            await self.leases.release()
        await self.events.finish(LAST_WORDS_SECONDS)
        raise StoppedError

    async def _handle(self, key: Key) -> None:
        await self.reach.wait()
        await self._ownership.handle(key, self.reconciler)

    def _may_be_stale(self, key: Key) -> bool:
        """Whether others may have changed an object, before it became ours, without our having heard of it."""
        if self.watches.scheduled.error is not None:
            return True
        heard = self.watches.scheduled.position(key.namespace) >= self._taken_at.get(self.fence.shard(key), math.inf)
        return not heard and self.fence.held_for(key) < DOUBT_SECONDS

    def _acquired(self, shard: Shard) -> None:
        seen = self.leases.book.sight(shard) if self.leases else None
        self._taken_at[shard] = seen.version if seen is not None and not seen.deleted else math.inf
        self._ownership.acquired(shard)

    async def _ask(self) -> None:
        """A small request that the API server cannot answer without its storage."""
        namespace = next(iter(self._shared.settings.namespaces), None)
        await self._shared.client.list_page(SCHEDULED_MACHINES, namespace=namespace, limit=1)

    def _called(self, call: Call) -> None:
        _count_call(call)
        self.reach.note(call)

    def _make_leases(self, fence: Fence) -> ShardManager:
        settings = self._shared.settings
        return ShardManager(
            self._shared.client,
            fence,
            ShardListener(self._acquired, self._ownership.lost),
            namespace=settings.namespace,
            preferred=settings.preferred_shard,
            watches=settings.namespaces,
            times=settings.lease_times,
        )

    # What wakes whom

    def _connect(self) -> None:
        self.workloads.on_node = self._node_changed
        self.workloads.on_state = self._workload_changed
        self.workloads.on_restart = _count_restart
        self.workloads.on_defect = _count_defect
        self.watches.on_ended = self._warmth.forget
        self.observer.on_agent = self.queue.add
        self.observer.on_claim = self._wake_rivals
        self.observer.on_neighbour = self.queue.add
        self.observer.on_drain = self._drain_changed
        self.reconciler.shown_shard = self.fence.shown
        self._shared.client.guard_writes(self.fence.check)
        self._shared.cluster_exists = self._cluster_exists
        self._shared.client.observe_calls(self._called)
        self.queue.on_taken = metrics.QUEUE_LATENCY.observe
        metrics.QUEUE_DEPTH.set_function(lambda: self.queue.depth)
        metrics.KINDS_WATCHED.set_function(lambda: self.watches.kinds_watched)
        metrics.CLOCK_TIME.set_function(lambda: self._shared.clock.now().timestamp())
        metrics.CLOCK_SKEW.set_function(lambda: self._shared.client.skew_seconds or 0.0)
        for phase in Phase:
            metrics.OBJECTS.labels(phase).set_function(partial(self.watches.scheduled.count_by, "phase", phase))
        counted = partial(self.watches.scheduled.count_by, "ready")
        metrics.OBJECTS_READY.set_function(partial(counted, READY))
        metrics.OBJECTS_NOT_READY_IN_TIME.set_function(partial(counted, Reason.NOT_READY_IN_TIME))

    def _scheduled_changed(self, change: Change) -> None:
        gone = change.type is EventType.DELETED
        self._wake_rivals(change.key, self.observer.hosts.saw(change.key, None if gone else change.object))
        if gone:
            self.queue.discard(change.key)
            self.reconciler.forget(change.key)
        else:
            if change.type is EventType.ADDED:
                self.queue.add(change.key, priority=precedence_of(change.object))
            self.reconciler.echoes.heard(change.key, str(change.version))
            if _is_killed(change.object):
                self.queue.add(change.key, due=URGENT)
            if not self.fence.owns(change.key):
                self._warmth.see(change.object)

    def _wake_rivals(self, key: Key | None, terms: Iterable[str]) -> None:
        """Others who want the same hosts may have a chance now; not all of them, if it is a crowd."""
        now = self._shared.clock.now()
        for term in terms:
            for rival in islice(self.observer.hosts.claimants(term, now, but=key), RIVALS_WOKEN):
                self.queue.add(rival)

    def _child_changed(self, change: Change) -> None:
        name = change.key.name
        for suffix in (*SUFFIXES, ""):  # without one: a Machine that another operator made, see World.rival
            owner = Key(change.key.namespace, name.removesuffix(suffix))
            if name.endswith(suffix) and owner in self.watches.scheduled:
                self.reconciler.echoes.heard(owner, str(change.version))

    def _cluster_changed(self, change: Change) -> None:
        named = self.watches.scheduled.keys_by("cluster", change.key.name)
        keys = [key for key in named if key.namespace == change.key.namespace]
        for key in keys:
            self.queue.add(key)
        # Without a Cluster nobody has a claim to a host.
        self._wake_rivals(None, self.observer.hosts.reconsider(keys))

    def _drain_changed(self, key: Key) -> None:
        self.queue.retry(key, after=PODS_SETTLE_SECONDS)

    def _drain_rule_changed(self, change: Change) -> None:
        for key in self.observer.drains.draining(change.key.namespace):
            self.queue.add(key)

    def _node_changed(self, cluster: Key, change: Change) -> None:
        users, urgent = self.observer.nodes.users(cluster, change.key.name), asks_back(change)
        for key in users:
            self.queue.add(key, due=URGENT if urgent else None)
        if urgent and not users:
            self._strangers.asked(cluster, change.object, self.watches.machines)

    def _workload_changed(self, cluster: Key) -> None:
        for key in self.workloads.holders(cluster):
            self.queue.add(key)

    def _definitions_changed(self, group: str) -> None:
        self._scopes.changed(group)
        if group == names.CAPI_GROUP:
            self._capi_changed.set()
        # What is defined now is served a moment later.
        asyncio.get_running_loop().call_later(SERVED_SECONDS, self._wake_waiting)
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        for phase in (Phase.ERROR, Phase.PENDING):
            for key in self.watches.scheduled.keys_by("phase", phase):
                self.queue.add(key)

    async def _follow_capi(self) -> None:
        while True:
            await self._capi_changed.wait()
            self._capi_changed.clear()
            for pause in SETTLE_PAUSES:
                await asyncio.sleep(pause)
                await self._ask_for_capi()

    async def _ask_for_capi(self) -> None:
        try:
            changed = await self.watches.find_capi()
        except KubeError as error:
            log.warning("cannot ask for Cluster API", error=error.message)
            self._capi_changed.set()
            return
        if changed:
            log.info("Cluster API contract changed", contract=self.watches.contract)
            self.observer.hosts.reconsider(self.watches.scheduled)
            for key in self.watches.scheduled:
                self.queue.add(key)

    async def _follow_clock(self) -> None:
        """A clock that was set forward finds what is due by itself; one that was set back may have closed a window."""
        clock = self._shared.clock
        shown = clock.now()
        while True:
            await asyncio.sleep(CLOCK_SECONDS)
            before, shown = shown, clock.now()
            if shown < before:
                log.warning("the clock was set back", seconds=round((before - shown).total_seconds()))
                for key in self.watches.scheduled:
                    self.queue.add(key)

    def _cluster_exists(self, namespace: str, name: str) -> bool | None:
        clusters = self.watches.clusters
        return None if clusters is None or not clusters.is_synced else Key(namespace, name) in clusters

    def _failed(self, key: Key, error: Exception) -> None:
        if isinstance(error, NotOursError):
            log.info("left to another replica", object=str(key), error=str(error))
        elif isinstance(error, TroubleError):
            after = error.retry_after.total_seconds() if error.retry_after else None
            pause = self.queue.retry(key, after=after)
            log.warning("will try again", object=str(key), error=str(error), seconds=round(pause, 1))
        elif isinstance(error, KubeError):
            pause = self.queue.retry(key, after=error.retry_after)
            log.warning("will try again", object=str(key), error=error.message, seconds=round(pause, 1))
        else:
            self.queue.retry(key)
            log.error("a bug in handling this object", object=str(key), exc_info=error)


def _most_of_one(settings: Settings) -> int | None:
    """How many workers one namespace may take: always some are left for the others, if there are others."""
    return None if len(settings.namespaces) == 1 else max(1, settings.workers - max(1, settings.workers // 8))


def _is_killed(raw: Object) -> bool:
    """Whether somebody has just pulled the kill switch: no crowd of its namespace goes first then."""
    spec, status = raw.get("spec"), raw.get("status")
    seen = status.get("observedGeneration") if isinstance(status, dict) else None
    return isinstance(spec, dict) and spec.get("killSwitch") is True and seen != raw["metadata"].get("generation")


def _count_restart(kind: str, reason: str) -> None:
    metrics.WATCH_RESTARTS.labels(kind, reason).inc()


def _count_defect(kind: str, defect: str) -> None:
    metrics.WATCH_OBJECTS_UNREADABLE.labels(kind, defect).inc()


def _count_call(call: Call) -> None:
    # A workload cluster may answer with any number it likes.
    status = str(call.status) if call.status in KNOWN_STATUSES else "other"
    metrics.API_REQUESTS.labels(call.verb, call.resource, status).inc()
