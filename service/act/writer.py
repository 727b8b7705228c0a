"""Writes on behalf of ScheduledMachines. The answer to each write goes into the caches before a watch repeats it.

Used by the performer and the reconciler. The watch event of such a write wakes no object: see `OwnWrites`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from crds import names
from service.act import freshness
from service.decide.world import Node, Pod, Role, World
from service.kube.client import Client
from service.kube.errors import NotFound
from service.kube.resource import SCHEDULED_MACHINES, Resource
from service.objects import views
from service.objects.lookup import get_or_none
from service.objects.subject import Subject
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from service.workload.clusters import WorkloadClusters
from service.workload.connection import WorkloadCluster
from service.workload.pods import pods_on

Raw = dict[str, Any]


class Caches(Protocol):
    """The caches that take in the answers to writes."""

    scheduled: Informer

    def informer_of(self, resource: Resource) -> Informer | None:
        """The cache of that resource, if it is watched."""
        ...

    async def resolve(self, api_version: str, kind: str) -> Resource:
        """The resource behind a kind; `NotFound` if it is not installed."""
        ...


@dataclass(frozen=True, slots=True)
class WriteListener:
    """What is called after our own writes, because their watch events wake no object."""

    scheduled_machine: Callable[[Key], None]
    node: Callable[[Key, str, Key], None]
    """Called with the workload cluster, the Node's name, and the ScheduledMachine on whose behalf it was written."""
    agent_config: Callable[[WorkloadCluster, Raw], None]
    eviction_refused: Callable[[Key, WorkloadCluster, Pod, str, float | None], timedelta]
    """Called with the API server's reason and its Retry-After; returns the real time to wait."""


class Writer:
    """Writes, and updates the caches with the answers."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        workloads: WorkloadClusters,
        own_writes: OwnWrites,
        listener: WriteListener,
    ) -> None:
        self._client = client
        self._caches = caches
        self._workloads = workloads
        self._own_writes = own_writes
        self._listener = listener

    # The ScheduledMachine itself

    async def patch_scheduled_machine(self, subject: Subject, body: Raw) -> None:
        """Patches the ScheduledMachine; `subject` holds the stored object afterwards."""
        namespace = subject.key.namespace
        raw = await self._client.patch(SCHEDULED_MACHINES, subject.key.name, body, namespace=namespace)
        self._stored(subject, raw)

    async def write_status(self, subject: Subject, changes: Raw) -> None:
        """Merges fields into the status; `Conflict` if the ScheduledMachine has changed since it was read.

        The status is replaced whole: a patch costs the API server an eighth more.
        """
        body = subject.with_status(changes)
        raw = await self._client.replace(
            SCHEDULED_MACHINES, subject.key.name, body, namespace=subject.key.namespace, subresource="status"
        )
        self._stored(subject, raw)

    def _stored(self, subject: Subject, raw: Raw) -> None:
        self._caches.scheduled.absorb(raw)
        self._listener.scheduled_machine(subject.key)
        self._wrote(subject.key, raw)
        subject.raw = raw

    async def refresh(self, subject: Subject) -> None:
        """Reads the ScheduledMachine after a conflict: until its watch catches up, every further write conflicts."""
        await self._refresh(self._caches.scheduled, subject.key)

    def is_superseded(self, subject: Subject) -> bool:
        """Whether the cache has a newer ScheduledMachine than `subject`; sends no request."""
        known = self._caches.scheduled.version(subject.key)
        return known is None or known > int(subject.resource_version)

    async def is_current(self, subject: Subject) -> bool:
        """Whether the ScheduledMachine is still as it was read; asks the API server."""
        current = await freshness.is_current(self._client, self._caches.scheduled, subject.key, subject.raw)
        self._listener.scheduled_machine(subject.key)
        return current

    # Its children

    async def resolve(self, api_version: str, kind: str) -> Resource:
        """The resource behind a kind; `NotFound` if it is not installed."""
        return await self._caches.resolve(api_version, kind)

    async def resource_of(self, world: World, role: Role) -> Resource:
        """The resource of an object that was observed."""
        child = world.child(role)
        if child is None:
            raise NotFound(f"there is no {role} object any more")
        return await self.resolve(child.api_version, child.kind)

    def absorb_child(self, subject: Subject, world: World, role: Role, resource: Resource, raw: Raw) -> World:
        """The world after a write to a child.

        An object without our label, such as a foreign one of the same name, is not watched and stays out of the cache:
        nothing would ever remove it there.
        """
        informer = self._caches.informer_of(resource)
        if informer is not None and names.LABEL_OWNER in (raw["metadata"].get("labels") or {}):
            informer.absorb(raw)
        self._wrote(subject.key, raw)
        return views.with_child(world, role, resource, raw)

    def absorb_deletion(self, world: World, role: Role, resource: Resource) -> World:
        """The world after the deletion of an object without finalizers."""
        child = world.child(role)
        informer = self._caches.informer_of(resource)
        if informer is not None and child is not None:
            informer.absorb_deletion(Key(child.namespace, child.name), child.uid)
        gone: dict[str, Any] = {role.value: None}
        return replace(world, **gone)

    async def refresh_child(self, resource: Resource, name: str, namespace: str) -> None:
        """Reads a child after a conflict, as `refresh` does the ScheduledMachine."""
        informer = self._caches.informer_of(resource)
        if informer is not None:
            await self._refresh(informer, Key(namespace, name))

    async def _refresh(self, informer: Informer, key: Key) -> None:
        raw = await get_or_none(self._client, informer.resource, key)
        if raw is not None:
            informer.absorb(raw, notify=True)

    def _wrote(self, key: Key, raw: Raw) -> None:
        self._own_writes.wrote(key, raw["metadata"]["resourceVersion"])

    # Its Node

    def workload_client(self, subject: Subject) -> Client:
        """The client of the workload cluster; raises `WorkloadUnreachable` while that is unreachable."""
        return self._workload(subject).client()

    async def node_now(self, subject: Subject, name: str) -> Node | None:
        """The Node as the cache has it, once the workload cluster has answered for the first time."""
        workload = self._workload(subject)
        await workload.settled.wait()
        raw = workload.nodes.get(Key("", name))
        return views.node(raw) if raw is not None else None

    async def pods_of(self, subject: Subject, node: str) -> tuple[Pod, ...]:
        """Lists the pods on a Node."""
        return await pods_on(partial(self.workload_client, subject), node)

    def absorb_node(self, subject: Subject, raw: Raw) -> None:
        """Takes in the answer to a write to a Node; other ScheduledMachines on that Node are woken."""
        if subject.cluster is not None and self._workload(subject).nodes.absorb(raw):
            self._listener.node(subject.cluster, raw["metadata"]["name"], subject.key)

    def absorb_agent_config(self, subject: Subject, raw: Raw) -> None:
        """Takes in the answer to a write to the ConfigMap of a reclaim agent."""
        self._listener.agent_config(self._workload(subject), raw)

    def eviction_refused(self, subject: Subject, pod: Pod, reason: str, retry_after: float | None) -> timedelta:
        """Records a refused eviction; returns the real time to wait before the next attempt."""
        return self._listener.eviction_refused(subject.key, self._workload(subject), pod, reason, retry_after)

    def _workload(self, subject: Subject) -> WorkloadCluster:
        return self._workloads.held_by(subject.key, subject.cluster)
