"""The composition root: servers, certificate loop and controller as siblings in one TaskGroup.

If one of them dies, all end and the process with them, so that Kubernetes restarts it; a task that died quietly would
leave a process that answers 200 and does nothing.
"""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

import structlog
from fastapi import FastAPI

from crds.calendars import CalendarReference
from service import metrics
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.http import health
from service.http.admission import Admission
from service.http.authorization import Authorizer
from service.http.health import Check, Health
from service.http.servers import BoundServer, bound
from service.http.tenancy import class_lookups
from service.kube.client import Client
from service.kube.transport import Limits
from service.observe.classes import ClassStore
from service.settings import Settings
from service.sharding.fence import Fence
from service.sharding.watchdog import Watchdog
from webhooks.calendars import CalendarLookup, CalendarUsers, existence_unknown, users_unknown
from webhooks.classes import ClassLookups
from webhooks.overrides import MachineLookup, OverrideGate
from webhooks.overrides import existence_unknown as machine_existence_unknown
from webhooks.verdict import ClusterLookup, Gate, unknown_cluster

RELEASE_SECONDS: Final = 5.0
"""After its work has ended, a part has this long to release what it holds, such as leases."""

log = structlog.get_logger(__name__)


class EndedEarlyError(RuntimeError):
    """A part of the service returned although the service was not stopping."""


def always_ready() -> str | None:
    """The check of a component that readiness does not wait for."""
    return None


@dataclass(frozen=True, slots=True)
class Component:
    """A part that runs beside the servers and returns once `Shared.stopping` is set and its work is finished.

    `unready` says why the process is not ready because of this part, or None. The part may take `Settings.stop_seconds`
    to finish and `RELEASE_SECONDS` to release what it holds; after that it is cancelled.
    """

    name: str
    run: Callable[[], Awaitable[None]]
    unready: Check = always_ready
    cluster_exists: ClusterLookup = unknown_cluster
    """Answers the webhooks' question whether a Cluster exists."""
    calendar_exists: CalendarLookup = existence_unknown
    calendar_users: CalendarUsers = users_unknown
    machine_exists: MachineLookup = machine_existence_unknown
    classes: ClassLookups | None = None
    """What the webhooks may know of classes and namespaces."""


async def run(settings: Settings) -> None:
    """Runs the service until a signal stops it; raises the error that ended one of its parts."""
    async with await connect(settings) as client:
        shared = Shared(settings=settings, client=client, clock=settings.clock())
        components = [controller(shared)] if settings.controller else [classes(shared)]
        with Signals(shared), Supervisor(shared, components) as service:
            await service.run()
    log.info("stopped")


def controller(shared: Shared) -> Component:
    """The controller as a part of the service."""
    settings = shared.settings
    fence = Fence(settings.instance_count, watchdog=Watchdog()) if settings.leases else None
    made = Controller(shared, fence)
    return Component(
        "controller",
        made.run,
        made.unready,
        made.cluster_exists,
        made.calendars.exists,
        made.calendar_users,
        made.machine_exists,
        class_lookups(shared.client, made.classes.store, made.class_users),
    )


def classes(shared: Shared) -> Component:
    """The watch of classes and namespaces alone, for webhooks without a controller.

    Readiness does not wait for it: a class that is not known yet warns, as a missing one does, and the labels of a
    namespace that is not known yet are asked of the API server.
    """
    store = ClassStore(shared.client, shared.settings.policy)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(store.run(), name="classes and namespaces")
            await shared.stopping.wait()
            watching.cancel()

    lookups = class_lookups(shared.client, store, lambda _name: None)
    return Component("classes", run, classes=lookups)


async def connect(settings: Settings) -> Client:
    """A client for the management cluster: by kubeconfig, or with the service account of this pod."""
    limits = Limits(unacknowledged_seconds=settings.lease_times.in_flight)
    if settings.kubeconfig is not None:
        return await Client.from_kubeconfig(settings.kubeconfig, settings.context, limits=limits)
    return Client.in_cluster(limits=limits)


Tasks = list[asyncio.Task[None]]


class Parts(NamedTuple):
    """The tasks that run, in the order in which they start."""

    servers: Tasks
    webhooks: Tasks
    loops: Tasks
    workers: Tasks


class Supervisor:
    """All parts of one process; their ports are bound, but nothing runs yet."""

    def __init__(self, shared: Shared, components: Sequence[Component] = ()) -> None:
        self._shared = shared
        self._sockets = ExitStack()
        self._components = components
        self._health = Health()
        settings = shared.settings
        self.health = self._endpoint("health", health.create_app(self._health), settings.health_port)
        self.metrics = self._endpoint("metrics", metrics.create_app(), settings.metrics_port)
        self.admission = self._admission() if settings.webhooks else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sockets.close()

    async def run(self) -> None:
        """Runs everything side by side; returns after an orderly stop, raises if a part dies."""
        async with asyncio.TaskGroup() as group:
            parts = self._start_all(group)
            group.create_task(self._stop_in_order(parts), name="stop")

    def _start_all(self, group: asyncio.TaskGroup) -> Parts:
        servers = [self._start(group, each.name, each.serve) for each in (self.health, self.metrics)]
        webhooks: Tasks = []
        loops: Tasks = []
        if self.admission is not None:
            self._health.checks |= self.admission.checks
            loops = [self._start(group, name, work) for name, work in self.admission.loops.items()]
            webhooks = [self._start(group, "webhooks", self.admission.serve)]
        self._health.checks |= {each.name: each.unready for each in self._components}
        workers = [self._start(group, each.name, each.run) for each in self._components]
        return Parts(servers, webhooks, loops, workers)

    def _start(self, group: asyncio.TaskGroup, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        task = group.create_task(self._supervised(name, work), name=name)
        self._health.tasks[name] = task
        return task

    async def _supervised(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        await work()
        if not self._shared.stopping.is_set():
            raise EndedEarlyError(f"{name} ended although the service was not stopping")

    async def _stop_in_order(self, parts: Parts) -> None:
        settings = self._shared.settings
        await self._shared.stopping.wait()
        self._health.stopping = True
        log.info("stopping", drain_seconds=settings.drain_seconds)
        if self.admission is not None:
            self.admission.endpoint.drain()
        drained = asyncio.create_task(self._wait_for_abort(settings.drain_seconds))
        await self._wait_for(parts.workers, settings.stop_seconds + RELEASE_SECONDS)
        # Not ready any more, but the API server may still send reviews here: a refused one would fail a user's request.
        await drained
        if self.admission is not None:
            self.admission.endpoint.stop()
        await self._wait_for(parts.webhooks, settings.stop_seconds)
        for task in parts.loops:
            task.cancel()
        self.health.stop()
        self.metrics.stop()
        await self._wait_for(parts.servers, settings.stop_seconds)

    async def _wait_for(self, tasks: Tasks, within: float) -> None:
        if not tasks:
            return
        aborted = asyncio.create_task(self._wait_for_abort(within))
        done = asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait((aborted, done), return_when=asyncio.FIRST_COMPLETED)
        aborted.cancel()
        for task in tasks:
            if not task.done():
                log.warning("cancelled a part that did not stop in time", part=task.get_name())
                task.cancel()
        await done

    async def _wait_for_abort(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._shared.abort.wait()
        except TimeoutError:
            return

    def _admission(self) -> Admission:
        shared = self._shared
        policy = replace(shared.settings.policy, cluster_scoped=shared.cluster_scoped)
        overrides = OverrideGate(
            denied=Authorizer(shared.client).denied,
            machine_exists=self._machine_exists,
            now=shared.clock.now,
            longest=shared.settings.max_override,
        )
        known = next((each.classes for each in self._components if each.classes is not None), ClassLookups())
        gate = Gate(policy, self._cluster_exists, self._calendar_exists, self._calendar_users, overrides, known)
        return Admission(shared.settings, shared.client, self._listener(shared.settings.webhook_port), gate)

    def _cluster_exists(self, namespace: str, name: str) -> bool | None:
        """The answer of the component that watches Clusters; None if it is not known."""
        answers = (each.cluster_exists(namespace, name) for each in self._components)
        return next((answer for answer in answers if answer is not None), None)

    def _calendar_exists(self, namespace: str, calendar: CalendarReference) -> bool | None:
        answers = (each.calendar_exists(namespace, calendar) for each in self._components)
        return next((answer for answer in answers if answer is not None), None)

    def _calendar_users(self, namespace: str, calendar: CalendarReference) -> Sequence[str] | None:
        answers = (each.calendar_users(namespace, calendar) for each in self._components)
        return next((answer for answer in answers if answer is not None), None)

    def _machine_exists(self, namespace: str, name: str) -> bool | None:
        answers = (each.machine_exists(namespace, name) for each in self._components)
        return next((answer for answer in answers if answer is not None), None)

    def _endpoint(self, name: str, app: FastAPI, port: int) -> BoundServer:
        return BoundServer(name, app, self._listener(port))

    def _listener(self, port: int) -> socket.socket:
        return self._sockets.enter_context(bound(self._shared.settings.bind_address, port))


class Signals:
    """SIGTERM stops the service in order; a second one, or Ctrl-C, at once."""

    HANDLED: Final = (signal.SIGTERM, signal.SIGINT)

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def __enter__(self) -> Self:
        for number in self.HANDLED:
            asyncio.get_running_loop().add_signal_handler(number, self._take, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self.HANDLED:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _take(self, number: signal.Signals) -> None:
        if self._shared.stopping.is_set() or number == signal.SIGINT:
            self._shared.abort.set()
        self._shared.stopping.set()
