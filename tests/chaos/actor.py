"""Plays Cluster API, the provider and the kubelet for all cases at once, without their pauses.

Only what the operator observes of the real ones: finalizers, owners, providerID, a Ready Node, pods that end when they
are deleted; and at the end everything removed in Cluster API's order. It talks to the API server directly.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from crds import names
from local.provider.hosts import Host
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.client import Client
from service.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from service.kube.resource import LEASES, NODES, PODS, Resource
from service.runtime.cache import Change, EventType
from service.runtime.informer import Informer
from tests.waiting import until

Raw = dict[str, Any]
Owned = tuple[str, str]
"""The namespace and name of a ScheduledMachine."""
FINALIZER = "machine.cluster.x-k8s.io"
HOST_FINALIZER = "remotemachine.infrastructure.cluster.x-k8s.io"
TENANT = "tests.example/tenant"
MANAGER = "actor"
NOT_READY = "node.kubernetes.io/not-ready"
PREFIX = "chaos"
AGAIN = 0.05
BEAT_SECONDS = 10.0
NODE_LEASES = "kube-node-lease"
SUFFIXES = (names.MACHINE_SUFFIX, names.BOOTSTRAP_SUFFIX, names.INFRASTRUCTURE_SUFFIX)


class Actor:
    """Creates and removes Nodes as Machines are created and deleted."""

    def __init__(self, client: Client) -> None:
        self.leaves_children: set[str] = set()
        """Namespaces in which it leaves bootstrap and infrastructure behind when a Machine is deleted."""
        self.machines: dict[str, set[str]] = {}
        """The uids of all Machines of ScheduledMachines ever seen, by namespace."""
        self._client = client
        self._group: asyncio.TaskGroup | None = None
        self._dirty: set[Owned] = set()
        self._busy: set[Owned] = set()
        self._nodes: set[str] = set()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            informers = [
                Informer(self._client, kind, labels=names.LABEL_OWNER) for kind in (MACHINES, BOOTSTRAPS, HOSTS)
            ]
            for informer in informers:
                informer.listen(self._changed)
            pods = Informer(self._client, PODS, labels=TENANT)
            pods.listen(self._pod_changed)
            for informer in (*informers, pods):
                group.create_task(informer.run())
            for informer in (*informers, pods):
                await informer.synced()
            self.ready.set()
            await self._beat()

    def is_busy(self, namespace: str) -> bool:
        """Whether it has work to do there."""
        return any(owned[0] == namespace for owned in self._busy | self._dirty)

    async def _beat(self) -> None:
        """Renews the Leases as kubelets do, so that the Nodes do not count as lost."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            for node in list(self._nodes):
                with suppress(KubeError):
                    body = {"spec": {"renewTime": _now()}}
                    await self._client.patch(LEASES, node, body, namespace=NODE_LEASES, field_manager=MANAGER)

    def _changed(self, change: Change) -> None:
        name = change.key.name
        if not change.key.namespace.startswith(PREFIX):
            return  # other tests share the cluster
        self._note(change)
        for suffix in SUFFIXES:
            if name.endswith(suffix):
                self._wake((change.key.namespace, name.removesuffix(suffix)))

    def _note(self, change: Change) -> None:
        raw, key = change.object, change.key
        if key.name.endswith(names.MACHINE_SUFFIX) and _is_operated(raw) and change.type is EventType.ADDED:
            self.machines.setdefault(key.namespace, set()).add(raw["metadata"]["uid"])

    def _wake(self, owned: Owned) -> None:
        self._dirty.add(owned)
        if owned not in self._busy and self._group is not None:
            self._busy.add(owned)
            self._group.create_task(self._follow(owned))

    async def _follow(self, owned: Owned) -> None:
        while owned in self._dirty:
            self._dirty.discard(owned)
            try:
                await self._play(*owned)
            except (Conflict, NotFound, AlreadyExists):
                await asyncio.sleep(AGAIN)
                self._dirty.add(owned)
            except KubeError:
                break  # its namespace is being deleted
        self._busy.discard(owned)

    async def _play(self, namespace: str, owner: str) -> None:
        machine = await self._found(MACHINES, namespace, owner + names.MACHINE_SUFFIX)
        bootstrap = await self._found(BOOTSTRAPS, namespace, owner + names.BOOTSTRAP_SUFFIX)
        host = await self._found(HOSTS, namespace, owner + names.INFRASTRUCTURE_SUFFIX)
        if host is not None and _is_deleting(host):
            await self._drop_finalizer(HOSTS, host, HOST_FINALIZER)
        if machine is None or not _is_operated(machine):
            return
        if _is_deleting(machine):
            await self._bring_down(machine, bootstrap, host)
        elif bootstrap is not None and host is not None:
            await self._bring_up(machine, bootstrap, host)

    async def _bring_up(self, machine: Raw, bootstrap: Raw, host: Raw) -> None:
        if (machine.get("status") or {}).get("nodeRef"):
            return
        if FINALIZER not in (machine["metadata"].get("finalizers") or ()):
            machine = await self._change(MACHINES, machine, {"metadata": {"finalizers": [FINALIZER]}})
        found = Host.of(host)
        await self._own(BOOTSTRAPS, bootstrap, machine, {})
        claim = {"metadata": {"finalizers": [HOST_FINALIZER]}, "spec": {"providerID": found.provider_id}}
        await self._own(HOSTS, host, machine, claim)
        await self._join(found)
        machine = await self._change(MACHINES, machine, {"spec": {"providerID": found.provider_id}})
        status = {"nodeRef": {"name": found.name}, "phase": "Running"}
        await self._change(MACHINES, machine, {"status": status}, "status")

    async def _own(self, kind: Resource, child: Raw, machine: Raw, more: Raw) -> None:
        """Cluster API makes itself the controller of what a Machine points at."""
        meta = machine["metadata"]
        owner = {**MACHINES.envelope(), "name": meta["name"], "uid": meta["uid"], "controller": True}
        others = [one for one in child["metadata"].get("ownerReferences") or () if one["kind"] != MACHINES.kind]
        body = {**more, "metadata": {**more.get("metadata", {}), "ownerReferences": [*others, owner]}}
        await self._change(kind, child, body)

    async def _join(self, host: Host) -> None:
        """The Node appears and is Ready; returns when the node controller has removed its taint for new Nodes."""
        body = host.node()
        body["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        with suppress(AlreadyExists):
            await self._client.create(NODES, body, field_manager=MANAGER)
            lease = {**LEASES.envelope(), "metadata": {"name": host.name}}
            lease["spec"] = {"holderIdentity": host.name, "leaseDurationSeconds": 40, "renewTime": _now()}
            await self._client.create(LEASES, lease, namespace=NODE_LEASES, field_manager=MANAGER)
        self._nodes.add(host.name)
        await until(lambda: self._untainted(host.name))

    async def _untainted(self, node: str) -> bool:
        found = await self._client.get(NODES, node)
        return all(one["key"] != NOT_READY for one in found["spec"].get("taints") or ())

    async def _bring_down(self, machine: Raw, bootstrap: Raw | None, host: Raw | None) -> None:
        namespace = machine["metadata"]["namespace"]
        if FINALIZER not in (machine["metadata"].get("finalizers") or ()):
            return
        if namespace not in self.leaves_children and (host is not None or bootstrap is not None):
            for kind, child in ((HOSTS, host), (BOOTSTRAPS, bootstrap)):
                if child is not None and not _is_deleting(child):
                    await self._client.delete(kind, child["metadata"]["name"], namespace=namespace)
            return  # woken again when they are gone
        node = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
        if node:
            await self.remove_node(node)
        await self._drop_finalizer(MACHINES, machine, FINALIZER)

    async def remove_node(self, node: str) -> None:
        self._nodes.discard(node)
        for kind, namespace in ((NODES, None), (LEASES, NODE_LEASES)):
            with suppress(NotFound):
                await self._client.delete(kind, node, namespace=namespace)

    async def _drop_finalizer(self, kind: Resource, raw: Raw, finalizer: str) -> None:
        held = raw["metadata"].get("finalizers") or []
        if finalizer in held:
            await self._change(kind, raw, {"metadata": {"finalizers": [one for one in held if one != finalizer]}})

    def _pod_changed(self, change: Change) -> None:
        if _is_deleting(change.object) and change.type is not EventType.DELETED and self._group is not None:
            self._group.create_task(self._end(change.object))

    async def _end(self, pod: Raw) -> None:
        """What a kubelet does when the containers have stopped."""
        meta = pod["metadata"]
        with suppress(KubeError):
            await self._client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"], grace_seconds=0)

    async def _found(self, kind: Resource, namespace: str, name: str) -> Raw | None:
        try:
            return await self._client.get(kind, name, namespace=namespace)
        except NotFound:
            return None

    async def _change(self, kind: Resource, raw: Raw, body: Raw, subresource: str | None = None) -> Raw:
        meta = raw["metadata"]
        precondition = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = {**body, "metadata": {**body.get("metadata", {}), **precondition}}
        return await self._client.patch(
            kind, meta["name"], body, namespace=meta["namespace"], subresource=subresource, field_manager=MANAGER
        )


def _is_deleting(raw: Raw) -> bool:
    return "deletionTimestamp" in raw["metadata"]


def _is_operated(raw: Raw) -> bool:
    owners = raw["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] == names.KIND and owner.get("controller") for owner in owners)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
