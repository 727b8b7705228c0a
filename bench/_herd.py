"""A herd: ScheduledMachines whose window opens at the same instant, against a bare client doing the same writes."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from bench._proc import Spent, Stopwatch
from crds import names
from crds.providers import DEFAULT_POLICY
from crds.status import ScheduledMachineStatus
from local.provider.kinds import BOOTSTRAPS, CLUSTERS, HOSTS, MACHINES
from service.clock import ManualClock
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.decide import manifests
from service.decide.intent import read_intent
from service.decide.world import Cluster, Contract, Identity, World
from service.kube.client import Client
from service.kube.errors import AlreadyExists, Unavailable
from service.kube.resource import EVENTS, NAMESPACES, SCHEDULED_MACHINES, Resource
from service.settings import Settings

Raw = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")
BEFORE = datetime(2026, 3, 6, 8, 0, tzinfo=UTC)
OPENS = datetime(2026, 3, 6, 9, 0, tzinfo=UTC)
CLUSTER = "bench"
WORKERS = 16
PATIENCE = 10


OFFICE_HOURS = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC", "enabled": True}


def scheduled_machine(number: int, schedule: Raw | None = None) -> Raw:
    """One of many, with the finalizer that the defaulting webhook would have added, and a host of its own."""
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": f"m-{number:05d}", "finalizers": [names.FINALIZER]},
        "spec": {
            "schedule": schedule or OFFICE_HOURS,
            "clusterName": CLUSTER,
            "bootstrapSpec": {
                "apiVersion": BOOTSTRAPS.api_version,
                "kind": BOOTSTRAPS.kind,
                "spec": {"version": "v1.30.0+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": HOSTS.api_version,
                "kind": HOSTS.kind,
                "spec": {"address": address, "port": 22, "user": "admin"},
            },
        },
    }


async def prepare(client: Client, namespace: str, objects: int) -> list[Raw]:
    """A namespace with a Cluster and the herd in it."""
    await home(client, namespace)
    return await store(client, namespace, [scheduled_machine(number) for number in range(objects)])


class Margin:
    """Measures how long storing a herd takes: the operator needs about as long to look at it for the first time."""

    START_SECONDS = 30.0

    def __init__(self, at_least: float) -> None:
        self._at_least = at_least
        self._began = time.monotonic()

    def until_opening(self) -> timedelta:
        """How long before its window opens a herd is shown to the operator, so that all of it is at rest by then."""
        spent = time.monotonic() - self._began
        return timedelta(seconds=max(self._at_least, self.START_SECONDS + 2 * spent))


async def home(client: Client, namespace: str) -> None:
    """A namespace with a Cluster."""
    await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": namespace}})
    await client.create(
        CLUSTERS,
        {**CLUSTERS.envelope(), "metadata": {"name": CLUSTER}, "spec": {"controlPlaneRef": CONTROL_PLANE}},
        namespace=namespace,
    )


async def store(
    client: Client, namespace: str, objects: list[Raw], resource: Resource = SCHEDULED_MACHINES
) -> list[Raw]:
    """Creates ScheduledMachines, or others, some at a time."""
    return await gently(objects, lambda raw: _stored(client, resource, namespace, raw))


async def _stored(client: Client, resource: Resource, namespace: str, raw: Raw) -> Raw:
    for attempt in range(PATIENCE):
        try:
            return await client.create(resource, raw, namespace=namespace)
        except AlreadyExists:  # the answer to an earlier attempt was lost
            return await client.get(resource, raw["metadata"]["name"], namespace=namespace)
        except Unavailable:  # on a busy machine a webhook may not answer in time
            await asyncio.sleep(attempt)
    raise SystemExit(f"{raw['metadata']['name']} cannot be stored")


async def gently(given: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """The same for each of many, with as many at once as we have workers."""
    slots = asyncio.Semaphore(WORKERS)

    async def one(each: T) -> R:
        async with slots:
            return await work(each)

    return await asyncio.gather(*(one(each) for each in given))


async def cluster_uid(client: Client, namespace: str) -> str:
    """The uid of the Cluster that a herd belongs to: its Machines name it as an owner."""
    return str((await client.get(CLUSTERS, CLUSTER, namespace=namespace))["metadata"]["uid"])


CONTROL_PLANE = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "SimulatedControlPlane", "name": CLUSTER}


def manifests_of(raw: Raw, cluster_uid: str) -> list[Raw]:
    """The three objects that the operator creates for a ScheduledMachine as stored."""
    intent = read_intent(raw, DEFAULT_POLICY)
    metadata = raw["metadata"]
    me = Identity(metadata["namespace"], metadata["name"], metadata["uid"], 1, None, finalized=True, paused=False)
    cluster = Cluster(CLUSTER, cluster_uid, deleting=False, paused=False)
    world = World(me=me, status=ScheduledMachineStatus(), contract=Contract.V1BETA2, cluster=cluster)
    assert intent.spec is not None
    return [dict(create.manifest) for create in manifests.creations(intent.spec, world)]


def _reference(kind: str) -> Raw:
    return {"apiVersion": "x/v1", "kind": kind, "name": "m-00000-machine", "namespace": "herd", "uid": "0" * 36}


def _condition(kind: str) -> Raw:
    moment = "2026-03-06T09:00:00Z"
    text = "The machine is being provisioned, and this is about as long as such a sentence is."
    return {
        "type": kind,
        "status": "True",
        "reason": "MachineProvisioning",
        "message": text,
        "lastTransitionTime": moment,
        "observedGeneration": 1,
    }


STATUS = {
    "phase": "Active",
    "message": "The machine is being provisioned.",
    "inSchedule": True,
    "conditions": [_condition(kind) for kind in ("Ready", "Scheduled", "MachineReady", "ReferencesValid", "UpToDate")],
    "machinePhase": "Provisioning",
    "machineRef": _reference("Machine"),
    "bootstrapRef": _reference("K0sWorkerConfig"),
    "infrastructureRef": _reference("RemoteMachine"),
    "lastScheduledTime": "2026-03-06T09:00:00Z",
    "nextActivation": "2026-03-09T09:00:00Z",
    "nextCleanup": "2026-03-06T18:00:00Z",
    "observedGeneration": 1,
}
"""As much to store as our own report."""


@asynccontextmanager
async def operating(client: Client, clock: ManualClock, *namespaces: str) -> AsyncIterator[Controller]:
    """The controller, ready, for these namespaces."""
    settings = Settings(namespaces=namespaces, webhooks=False, workers=WORKERS, stop_seconds=1.0)
    shared = Shared(settings=settings, client=client, clock=clock)
    controller = Controller(shared)
    task = asyncio.create_task(controller.run())
    while controller.unready() is not None:
        if task.done():
            await task
        await asyncio.sleep(0.05)
    try:
        yield controller
    finally:
        shared.stopping.set()
        await task


async def operator(client: Client, namespace: str, objects: int, stopwatch: Stopwatch) -> tuple[Spent, Spent]:
    """What it takes from the opening of the window until all say Active, and until the last Event is sent as well."""
    clock = ManualClock(BEFORE)
    async with operating(client, clock, namespace) as controller:
        await settled(controller, "Inactive", objects)
        await controller.events.idle.wait()
        clock.at = OPENS
        stopwatch.start()
        controller.queue.wake_due()
        await settled(controller, "Active", objects)
        took = stopwatch.spent()
        await controller.events.idle.wait()
        return took, stopwatch.spent()


async def settled(controller: Controller, phase: str, objects: int) -> None:
    """Waits until all are in a phase and nothing is in work."""
    while controller.watches.scheduled.count_by("phase", phase) < objects or controller.queue.running:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def check(client: Client, namespace: str, objects: int) -> None:
    """Raises unless all children exist and every status says Active."""
    for resource in (BOOTSTRAPS, HOSTS, MACHINES):
        found = len(await client.list(resource, namespace=namespace))
        if found != objects:
            raise SystemExit(f"{found} {resource.plural} instead of {objects}")
    phases = [raw["status"]["phase"] for raw in await client.list(SCHEDULED_MACHINES, namespace=namespace)]
    if phases.count("Active") != objects:
        raise SystemExit(f"not all Active: {sorted(set(phases))}")


async def check_events(client: Client, namespace: str, objects: int) -> None:
    """Raises unless there is one Event for each Machine: that none waits to be sent does not mean all were stored."""
    found = [raw["reason"] for raw in await client.list(EVENTS, namespace=namespace)].count("MachineCreated")
    if found != objects:
        raise SystemExit(f"{found} Events report a new Machine instead of {objects}")
