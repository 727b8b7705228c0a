"""Puts the controller together: watches add keys to the queue, the queue orders them, workers reconcile them.

`service.app` runs it beside the servers; the process ends if it dies.
"""

import asyncio
import math
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NoReturn

import structlog

from crds import names
from crds.calendars import CalendarReference
from service.act.children import Children
from service.act.events import EventRecorder
from service.act.freshness import CATCH_UP_SECONDS
from service.act.perform import Performer
from service.act.writer import WriteListener, Writer
from service.controller import gauges
from service.controller.availability import Availability
from service.controller.calendars import CalendarController
from service.controller.classes import ClassController
from service.controller.context import ControllerContext
from service.controller.followers import CapiFollower, follow_clock
from service.controller.overrides import OverrideController
from service.controller.reconciler import Actors, Reconciler
from service.controller.requeue import Requeuer
from service.controller.shared import Shared
from service.controller.triggers import Triggers
from service.decide.intent import Sources
from service.decide.requeue import failed
from service.kube.discovery import Discovery
from service.kube.resource import SCHEDULED_MACHINES
from service.kube.transport import Call
from service.notify.notifier import Notifier
from service.notify.sink import Sink
from service.observe.classes import ClassStore
from service.observe.crowds import CrowdOptions, Crowds
from service.observe.informers import WatchListener
from service.observe.observer import Observer, ObserverOptions
from service.observe.prewarm import Prewarmer
from service.observe.scopes import Scopes
from service.observe.watches import Watches
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from service.runtime.slots import Slots
from service.runtime.worker import WorkerPool
from service.settings import Settings
from service.sharding.assignment import ShardAssignment, ShardQueue
from service.sharding.fence import Fence, NoFence, ShardNotHeldError
from service.sharding.manager import ShardListener, ShardManager
from service.sharding.shard import Shard
from service.workload.clusters import WorkloadClusters
from service.workload.connection import ClusterListener

RETRY_WITHIN_SECONDS: Final = 2.0
"""When the API server answers again, objects that failed meanwhile are due within this time."""

LAST_EVENTS_SECONDS: Final = 2.0
"""How long a stop waits for the last Events to be sent; another replica may hold the leases by then."""

PODS_SETTLE_SECONDS: Final = 0.5
"""Several pods leave a drained Node together: one pass handles all that changed within this time."""

log = structlog.get_logger(__name__)


class StoppedError(Exception):
    """Ends the controller's tasks after an orderly stop."""


class Controller:
    """Reconciles all ScheduledMachines; with a `fence`, only those of shards whose lease this replica holds."""

    def __init__(self, shared: Shared, fence: Fence | None = None) -> None:
        settings, client, clock = shared.settings, shared.client, shared.clock
        self._shared = shared
        self.fence = fence or NoFence()
        discovery = Discovery(client, contract=_forced_contract(settings))
        self.queue = ShardQueue(clock, self.fence.owns, running_per_namespace=_workers_per_namespace(settings))
        self.watches = Watches(client, discovery, settings.namespaces, shards=self.fence.count)
        self.workloads = WorkloadClusters(client)
        self.events = EventRecorder(client, instance=socket.gethostname(), busy=lambda: self.queue.depth > 0)
        context = self._context()
        self.calendars = CalendarController(client, settings, clock, context)
        self.overrides = OverrideController(client, settings, clock, context, self.watches.scheduled)
        self.classes = ClassController(ClassStore(client, settings.policy), self.watches.scheduled, self.fence.owns)
        options = ObserverOptions(
            identities=settings.host_identities,
            sources=Sources(self.calendars, self.overrides, self.classes.store),
            class_outlines=self.classes.store,
            acknowledged_reclaims=settings.reclaim_reenable == "Acknowledged",
            agent_changed=self.queue.add,
            drain_changed=self._drain_changed,
            dry_run=settings.dry_run,
        )
        self.observer = Observer(client, self.watches, self.workloads, settings.policy, clock, options)
        self.own_writes = OwnWrites(self.queue.add)
        self._prewarmer = Prewarmer(self.watches, settings.policy)
        self._scopes = Scopes(discovery, settings.policy, shared.cluster_scoped)
        self.triggers = Triggers(
            queue=self.queue,
            watches=self.watches,
            observer=self.observer,
            own_writes=self.own_writes,
            prewarmer=self._prewarmer,
            clock=clock,
            owns=self.fence.owns,
            forget=self.forget,
            class_outline=self.classes.store.outline,
        )
        self._capi = CapiFollower(self.watches, self.triggers.capi_changed)
        self.availability = Availability(self._probe, lambda: self.queue.retry_failed(RETRY_WITHIN_SECONDS))
        self._slots = Slots(settings.workers, self.queue.add)
        self.crowds = Crowds(self.watches, self.observer.subject, clock, self.triggers.turn_came, self._crowd_options())
        self.notifier = self._make_notifier()
        self.reconciler = self._make_reconciler()
        self.requeue = Requeuer(self.queue)
        self._assignment = ShardAssignment(self.fence, self.queue, self.watches.scheduled, self.forget)
        self.leases = self._make_leases(fence) if fence is not None else None
        self._pool = WorkerPool(self.queue, self._handle, size=settings.workers, on_error=self._failed)
        self._started = False
        self._taken_at: dict[Shard, float] = {}
        """The resource version at which a shard became ours: its last holder wrote nothing after that."""
        self._subscribe()
        gauges.publish(self.queue, self.watches, client, clock)
        gauges.publish_overrides(self.overrides.in_force)
        if settings.machine_metrics:
            gauges.publish_trouble(self.watches.scheduled)
        gauges.publish_crowds(self.crowds)

    def _context(self) -> ControllerContext:
        return ControllerContext(
            defined=self.watches.defines,
            owns=self.fence.owns,
            acting_for=self.fence.acting_for,
            events=self.events,
        )

    def _crowd_options(self) -> CrowdOptions:
        settings = self._shared.settings
        return CrowdOptions(
            max_provisioning=settings.max_provisioning,
            max_draining=settings.max_draining,
            shards=self.fence.count,
            shard_number=lambda key: self.fence.shard(key).number,
        )

    def _make_notifier(self) -> Notifier:
        settings = self._shared.settings
        options = settings.notification_sink
        lead = timedelta(minutes=settings.notify_closing_minutes)
        return Notifier(Sink(options) if options.is_set else None, source=settings.notify_source, lead=lead)

    def _make_reconciler(self) -> Reconciler:
        client, clock = self._shared.client, self._shared.clock
        listener = WriteListener(
            scheduled_machine=self.triggers.scheduled_machine_written,
            node=self.triggers.node_written,
            agent_config=self.observer.workload.agents.absorb_config,
            eviction_refused=self.observer.workload.drains.eviction_refused,
        )
        writer = Writer(client, self.watches, self.workloads, self.own_writes, listener)
        performer = Performer(writer, Children(client, writer, self._slots), clock, self._may_be_stale)
        actors = Actors(performer, writer, self.events, self.own_writes, self._slots, self.crowds, self.notifier)
        return Reconciler(self.observer, actors, clock, self.fence.shown)

    def _make_leases(self, fence: Fence) -> ShardManager:
        settings = self._shared.settings
        return ShardManager(
            self._shared.client,
            fence,
            ShardListener(self._acquired, self._assignment.lost),
            namespace=settings.namespace,
            preferred=settings.preferred_shard,
            watches=settings.namespaces,
            times=settings.lease_times,
        )

    def _subscribe(self) -> None:
        """The one table of events: their sources, and what handles them."""
        self.watches.subscribe(
            WatchListener(
                scheduled=self.triggers.scheduled_machine_changed,
                cluster=self.triggers.cluster_changed,
                child=self.triggers.child_changed,
                drain_rule=self.triggers.drain_rule_changed,
                restart=gauges.count_restart,
                defect=gauges.count_defect,
                ended=self._prewarmer.forget,
            )
        )
        self.workloads.subscribe(
            ClusterListener(
                node=self.triggers.node_changed,
                state=self._workload_changed,
                restart=gauges.count_restart,
                defect=gauges.count_defect,
                call=gauges.count_call,
                guard=self.fence.check,
            )
        )
        self.calendars.subscribe(self.triggers.calendar_changed)
        self.overrides.subscribe(self.triggers.overrides_changed)
        self.classes.subscribe(self.triggers.class_user_changed, self.triggers.class_user_read)
        self.watches.providers.named_by_class = self.classes.store.uses_kind
        self._shared.client.guard_writes(self.fence.check)
        self._shared.client.observe_calls(self._called)

    def unready(self) -> str | None:
        """Why this replica is not ready: its caches are not complete, or too old; None if it is ready."""
        if not (self._started and self.watches.is_synced):
            return "the caches are not complete yet"
        if self.overrides.pending:
            return "the overrides are not listed yet"
        if self.classes.store.pending:
            return "classes and namespaces are not listed yet"
        return self.watches.not_live

    def cluster_exists(self, namespace: str, name: str) -> bool | None:
        """Whether there is such a Cluster; None while that is not known. The webhooks ask for every object."""
        clusters = self.watches.clusters
        if clusters is None or not clusters.is_synced:
            return None
        return Key(namespace, name) in clusters

    def machine_exists(self, namespace: str, name: str) -> bool | None:
        """Whether there is such a ScheduledMachine; None while that is not known."""
        scheduled = self.watches.scheduled
        return Key(namespace, name) in scheduled if scheduled.is_synced else None

    def calendar_users(self, namespace: str, calendar: CalendarReference) -> Sequence[str] | None:
        """The ScheduledMachines that name a calendar, for a warning when it is deleted."""
        return [str(key) for key in self.triggers.calendar_users(namespace, calendar)]

    def class_users(self, name: str) -> Sequence[str] | None:
        """The ScheduledMachines that name a class, for a warning when it is deleted."""
        return [str(key) for key in self.classes.users(name)] if self.watches.scheduled.is_synced else None

    async def run(self) -> None:
        """Runs until the service stops."""
        try:
            async with asyncio.TaskGroup() as group:
                await self.watches.start(group)
                self.watches.listen_to_definitions(self._definitions_changed)
                group.create_task(self._capi.run(), name="find Cluster API")
                group.create_task(self.calendars.run(), name="calendars")
                group.create_task(self.overrides.run(), name="overrides")
                group.create_task(self.classes.run(), name="classes")
                group.create_task(self._scopes.run(), name="scopes of kinds")
                group.create_task(self.watches.providers.run_sweeps(), name="unneeded watches")
                group.create_task(self.workloads.run(), name="workload clusters")
                group.create_task(self._prewarmer.run(), name="prewarm caches")
                group.create_task(self.events.run(), name="events")
                group.create_task(self.notifier.run(), name="notifications")
                group.create_task(self.availability.run(), name="availability")
                group.create_task(follow_clock(self._shared.clock, self._clock_set_back), name="clock")
                group.create_task(self._pool.run(), name="workers")
                if self.leases is not None:
                    group.create_task(self.leases.run(), name="leases")
                self._started = True
                log.info("controller started", objects=len(self.watches.scheduled), capi=self.watches.contract)
                await self._until_stopped()
        except* StoppedError:
            log.info("controller stopped")

    async def _until_stopped(self) -> NoReturn:
        """Finishes the passes that are running, then ends the other tasks."""
        await self._shared.stopping.wait()
        self.availability.release()
        await self._pool.stop(self._shared.settings.stop_seconds)
        if self.leases is not None:
            await self.leases.release()
        await asyncio.gather(self.events.finish(LAST_EVENTS_SECONDS), self.notifier.finish(LAST_EVENTS_SECONDS))
        raise StoppedError

    # One pass

    async def _handle(self, key: Key) -> None:
        await self.availability.wait()
        await self.overrides.listed()  # without them, a machine that one keeps in service would be drained
        await self.classes.listed()  # without them, hosts that parameters name would seem free
        await self._assignment.handle(key, self._reconcile)

    async def _reconcile(self, key: Key) -> None:
        requeue = await self.reconciler(key)
        if requeue is None:
            self.forget(key)  # again: a pass that ran when the object was deleted may hold a workload cluster
        else:
            self.requeue(key, requeue)

    def _failed(self, key: Key, error: Exception) -> None:
        if isinstance(error, ShardNotHeldError):
            log.info("left to another replica", object=str(key), error=str(error))
            return
        log.error("a bug in handling this object", object=str(key), exc_info=error)
        self.requeue(key, failed(repr(error), None))

    def forget(self, key: Key) -> None:
        """An object is gone, or belongs to another replica now."""
        self.requeue.forget(key)
        self._slots.finished(key, waits=False)
        self.crowds.forget(key)
        self.notifier.forget(key)
        self.observer.forget(key)

    # Shards

    def _may_be_stale(self, key: Key) -> bool:
        """Whether the last holder of the shard may have changed an object, and our watch has not reported that yet."""
        if self.watches.scheduled.error is not None:
            return True
        caught_up = self.watches.scheduled.position(key.namespace) >= self._taken_at.get(
            self.fence.shard(key), math.inf
        )
        return not caught_up and self.fence.held_for(key) < CATCH_UP_SECONDS

    def _acquired(self, shard: Shard) -> None:
        seen = self.leases.store.get(shard) if self.leases else None
        self._taken_at[shard] = seen.version if seen is not None and not seen.deleted else math.inf
        self.crowds.shard_acquired(shard.number)
        self._assignment.acquired(shard)
        self.calendars.shard_acquired()
        self.overrides.look_again()

    # Events that concern more than the queue

    def _drain_changed(self, key: Key) -> None:
        self.queue.retry(key, after=PODS_SETTLE_SECONDS)

    def _clock_set_back(self) -> None:
        self.overrides.look_again()
        self.triggers.clock_set_back()

    def _workload_changed(self, cluster: Key) -> None:
        for key in self.workloads.holders(cluster):
            self.queue.add(key)

    def _definitions_changed(self, group: str) -> None:
        self._scopes.changed(group)
        if group == names.GROUP:
            self.calendars.definitions_changed()
            self.overrides.definitions_changed()
        if group == names.CAPI_GROUP:
            self._capi.definitions_changed()
        self.triggers.definitions_changed()

    def _called(self, call: Call) -> None:
        gauges.count_call(call)
        self.availability.record(call)

    async def _probe(self) -> None:
        """A small request that the API server cannot answer without its storage."""
        namespace = next(iter(self._shared.settings.namespaces), None)
        await self._shared.client.list_page(SCHEDULED_MACHINES, namespace=namespace, limit=1)


def _forced_contract(settings: Settings) -> str | None:
    return None if settings.capi_contract == "auto" else settings.capi_contract


def _workers_per_namespace(settings: Settings) -> int | None:
    """How many workers one namespace may use: some are always left for other namespaces, if there are any."""
    if len(settings.namespaces) == 1:
        return None
    return max(1, settings.workers - max(1, settings.workers // 8))
