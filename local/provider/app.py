"""Follows the management cluster and runs a pass over every object that changes or is due."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial

from crds.names import LABEL_CLUSTER_NAME
from local.provider import bootstrap, controlplane, infrastructure
from local.provider.kinds import BOOTSTRAPS, CLUSTERS, CONTROL_PLANES, HOSTS, MACHINES, SERVED
from local.provider.view import Management
from local.provider.workloads import ProviderWorkloads
from service.clock import SystemClock
from service.kube.client import Client
from service.kube.decode import Object
from service.kube.errors import Conflict, NotFound
from service.kube.resource import Resource
from service.runtime.backoff import Backoff, Failures
from service.runtime.cache import Cache, Change
from service.runtime.key import Key
from service.runtime.queue import Queue
from service.runtime.watch import ListWatch, Reflector
from service.runtime.worker import WorkerPool

# Short: a test that froze or restarted a server does not want to wait for us.
PATIENCE = Backoff(base=0.1, cap=2.0, jitter=0.5)
WORKERS = 16
BY_CLUSTER = "cluster"

log = logging.getLogger("local.provider")
Reconcile = Callable[[Object], Awaitable[float]]


class Provider:
    """One queue with workers per served kind, fed by watches of those kinds, of Machines and of Clusters."""

    def __init__(self, client: Client, workloads: ProviderWorkloads) -> None:
        self._clock = SystemClock()
        self._client = client
        self._caches = {kind: Cache(indexes={BY_CLUSTER: cluster_of}) for kind in (CLUSTERS, MACHINES, *SERVED)}
        self._queues = {kind: Queue(self._clock, failures=Failures(PATIENCE)) for kind in SERVED}
        management = Management(client, self._look, self._absorb, self._clock.now)
        self._reconcilers: dict[Resource, Reconcile] = {
            BOOTSTRAPS: partial(bootstrap.reconcile, management),
            HOSTS: partial(infrastructure.reconcile, management, workloads),
            CONTROL_PLANES: partial(controlplane.reconcile, management, workloads),
        }

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Works until cancelled; `on_ready` is called when everything that exists has been seen."""
        for kind, cache in self._caches.items():
            cache.listen(partial(self._changed, kind))
        reflectors = [
            Reflector(ListWatch(self._client, kind), cache, backoff=PATIENCE) for kind, cache in self._caches.items()
        ]
        async with asyncio.TaskGroup() as tasks:
            for reflector in reflectors:
                tasks.create_task(reflector.run())
            for reflector in reflectors:
                await reflector.synced.wait()
            for kind in SERVED:
                tasks.create_task(self._workers(kind).run())
            on_ready()

    def _workers(self, kind: Resource) -> WorkerPool:
        return WorkerPool(
            self._queues[kind], partial(self._handle, kind), size=WORKERS, on_error=partial(self._failed, kind)
        )

    async def _handle(self, kind: Resource, key: Key) -> None:
        found = self._caches[kind].get(key)
        if found is None:
            return
        left = await self._reconcilers[kind](found)
        if left:
            self._queues[kind].add(key, due=self._clock.now() + timedelta(seconds=left))

    def _failed(self, kind: Resource, key: Key, error: Exception) -> None:
        if isinstance(error, NotFound):
            return  # deleted while we were at it
        pause = self._queues[kind].retry(key)
        level = logging.INFO if isinstance(error, Conflict) else logging.WARNING
        log.log(level, "%s %s: %s; again in %.1f s", kind.kind, key, error, pause)

    def _changed(self, kind: Resource, change: Change) -> None:
        for concerned, key in self._concerned(kind, change):
            self._queues[concerned].add(key)

    def _concerned(self, kind: Resource, change: Change) -> Iterable[tuple[Resource, Key]]:
        if kind is MACHINES:
            return references(change.object)
        if kind is CLUSTERS:  # it may have been paused or unpaused
            cluster = str(change.key)
            return [(served, key) for served in SERVED for key in self._caches[served].keys_by(BY_CLUSTER, cluster)]
        return [(kind, change.key)]

    def _look(self, kind: Resource, key: Key) -> Object | None:
        return self._caches[kind].get(key)

    def _absorb(self, kind: Resource, answer: Object) -> None:
        self._caches[kind].absorb(answer)


def references(machine: Object) -> list[tuple[Resource, Key]]:
    """The bootstrap and infrastructure objects of a Machine."""
    namespace, spec = machine["metadata"]["namespace"], machine["spec"]
    config = spec["bootstrap"].get("configRef", {}).get("name")
    found = [(HOSTS, Key(namespace, spec["infrastructureRef"]["name"]))]
    return [*found, (BOOTSTRAPS, Key(namespace, config))] if config else found


def cluster_of(resource: Object) -> list[str]:
    """The key of the Cluster that an object belongs to."""
    meta = resource["metadata"]
    name = (meta.get("labels") or {}).get(LABEL_CLUSTER_NAME)
    return [str(Key(meta["namespace"], name))] if name else []
