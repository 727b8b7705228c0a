"""Fills a chronicle from both clusters, and puts pods on the Nodes that come, as a scheduler would."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from crds import names
from crds.base import rfc3339
from local import examples
from local.demo import describe
from local.demo.expectations import AT_ONCE, EXTENDED, PODS, SATURDAY
from local.demo.observations import Chronicle, Facts, Kind, Observation
from local.examples import WEEKEND, WORKSTATION
from local.plane import DEMO_CLUSTER, DEMO_NAMESPACE
from local.provider.kinds import CLUSTERS
from service.clock import Clock
from service.kube.client import Client
from service.kube.decode import Object
from service.kube.errors import AlreadyExists, NotFound
from service.kube.resource import (
    EVENTS,
    NODES,
    SCHEDULE_CALENDARS,
    SCHEDULE_OVERRIDES,
    SCHEDULED_MACHINE_CLASSES,
    SCHEDULED_MACHINES,
    Resource,
)
from service.kube.resource import PODS as POD
from service.runtime.cache import Cache, Change, EventType
from service.runtime.watch import ListWatch, Reflector

POD_NAMESPACE = "default"
FIELD_MANAGER = "5spot-demo"
FINALIZER = "demo.5spot.finos.org/finishing"
FINISHING_SECONDS = 2.0
"""Pods take some time to terminate, so that the demo shows them leaving."""

Describe = Callable[[Object], Facts]


class Watch:
    """Follows four kinds of objects for as long as it is not cancelled."""

    def __init__(
        self, management: Client, workload: Client, clock: Clock, chronicle: Chronicle, workstation: Object
    ) -> None:
        self.chronicle = chronicle
        self.news = asyncio.Event()
        self.workload = workload
        self._management = management
        self._clock = clock
        self._workstation = workstation
        self._served: set[str] = set()
        self._leaving: dict[str, float] = {}

    async def run(self) -> None:
        """Watches; the demo's objects are created once all watches have begun."""
        async with asyncio.TaskGroup() as group:
            reflectors = [
                self._reflector(self._management, SCHEDULED_MACHINES, Kind.MACHINE, describe.machine),
                self._reflector(self._management, EVENTS, Kind.EVENT, describe.event),
                self._reflector(self.workload, NODES, Kind.NODE, describe.node),
                self._reflector(self.workload, POD, Kind.POD, describe.pod),
            ]
            for reflector in reflectors:
                group.create_task(reflector.run())
            for reflector in reflectors:
                await reflector.synced.wait()
            await self._submit()

    async def tend_pods(self) -> None:
        """Starts pods on new Nodes, and removes those that were evicted and have finished."""
        await self._start_pods()
        await self._finish_pods()

    async def _start_pods(self) -> None:
        machines = {each.name: each.facts["node"] for each in self.chronicle.present(Kind.MACHINE)}
        nodes = {each.name for each in self.chronicle.present(Kind.NODE) if each.says(state="Ready", cordoned="")}
        self._served &= {each.name for each in self.chronicle.present(Kind.NODE)}
        for machine, node in machines.items():
            if node in nodes - self._served:
                self._served.add(node)
                for name in PODS.get(machine, ()):
                    await self._start_pod(name, node)

    async def _start_pod(self, name: str, node: str) -> None:
        spec = {
            "nodeName": node,
            "containers": [{"name": "main", "image": "registry.example/app"}],
            "tolerations": [{"operator": "Exists"}],
        }
        body = {**POD.envelope(), "metadata": {"name": name, "finalizers": [FINALIZER]}, "spec": spec}
        with suppress(AlreadyExists):
            await self.workload.create(POD, body, namespace=POD_NAMESPACE, field_manager=FIELD_MANAGER)

    async def _finish_pods(self) -> None:
        leaving = [pod.name for pod in self.chronicle.present(Kind.POD) if pod.says(state="leaving")]
        self._leaving = {name: self._leaving.get(name, time.monotonic()) for name in leaving}
        for name, since in self._leaving.items():
            if time.monotonic() - since >= FINISHING_SECONDS:
                with suppress(NotFound):
                    await self.workload.patch(POD, name, {"metadata": {"finalizers": None}}, namespace=POD_NAMESPACE)

    async def _submit(self) -> None:
        limit = {"metadata": {"annotations": {names.ANNOTATION_MAX_PROVISIONING: str(AT_ONCE)}}}
        await self._management.patch(CLUSTERS, DEMO_CLUSTER, limit, namespace=DEMO_NAMESPACE)
        await self._management.create(
            SCHEDULED_MACHINE_CLASSES, examples.load(examples.CLASS), field_manager=FIELD_MANAGER
        )
        calendars = [(SCHEDULE_CALENDARS, examples.CALENDAR)]
        for resource, name in (*calendars, *((SCHEDULED_MACHINES, each) for each in examples.ALL)):
            body = self._workstation if name == WORKSTATION else examples.load(name)
            await self._management.create(resource, body, namespace=DEMO_NAMESPACE, field_manager=FIELD_MANAGER)
        await self._management.create(
            SCHEDULE_OVERRIDES, _stay_late(), namespace=DEMO_NAMESPACE, field_manager=FIELD_MANAGER
        )

    def _reflector(self, client: Client, resource: Resource, kind: Kind, words: Describe) -> Reflector:
        cache = Cache()
        cache.listen(partial(self._changed, kind, words))
        namespace = POD_NAMESPACE if kind is Kind.POD else None  # elsewhere are the agent's own
        return Reflector(ListWatch(client, resource, namespace=namespace), cache)

    def _changed(self, kind: Kind, words: Describe, change: Change) -> None:
        facts = {} if change.type is EventType.DELETED else words(change.object)
        self.chronicle.record(Observation(self._clock.now(), kind, change.key.name, facts))
        self.news.set()


def _stay_late() -> Object:
    """What a user stores on Friday: on Saturday the machine of the weekend stays an hour longer than its window."""
    closes = SATURDAY + timedelta(hours=11)
    spec = {"machines": [WEEKEND], "state": "Open", "from": rfc3339(closes), "until": rfc3339(closes + EXTENDED)}
    return {**SCHEDULE_OVERRIDES.envelope(), "metadata": {"name": "stay-late"}, "spec": {**spec, "reason": "not done"}}
