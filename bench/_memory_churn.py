"""What keeps one operator busy while its memory is followed: windows, edits, deletions, Nodes, pods, workload clusters.

A program stands in for Cluster API as in the soak, with Nodes: the workload clusters are all the same API server, each
with a kubeconfig Secret of its own, which comes, goes and gets another token.
"""

import asyncio
import base64
import random
from collections import Counter
from contextlib import suppress
from typing import Any

from bench import _herd as herd
from bench._soak_churn import CHILDREN, HOLD, Churn
from crds import names
from local import access
from local.cluster import LocalCluster
from local.provider.hosts import Host
from local.provider.kinds import CLUSTERS, MACHINES
from service.clock import SystemClock
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.kube.resource import NODES, PODS, SCHEDULED_MACHINES, SECRETS

Raw = dict[str, Any]
CLUSTER_COUNT = 20
USERS = (access.CLUSTER_ACCESS, access.PROVIDER)
"""Whose tokens the kubeconfigs hold, in turns: that is what a rotation looks like."""


class NodeChurn(Churn):
    """Users and Cluster API, in workload clusters that have Nodes and pods."""

    def __init__(self, cluster: LocalCluster, client: Client, namespace: str, happened: Counter[str]) -> None:
        super().__init__(client, namespace, happened, SystemClock())
        self._cluster = cluster

    async def prepare(self) -> None:
        """The Clusters and their kubeconfigs."""
        for number in range(CLUSTER_COUNT):
            body = {**CLUSTERS.envelope(), "metadata": {"name": _cluster_name(number)}, "spec": {}}
            body["spec"] = {"controlPlaneRef": herd.CONTROL_PLANE}
            await self._client.create(CLUSTERS, body, namespace=self._namespace)
            await self._client.create(SECRETS, self._secret(number, USERS[0]), namespace=self._namespace)

    async def create(self) -> None:
        number, self._serial = self._serial, self._serial + 1
        raw = herd.scheduled_machine(number, opens_every_third_hour())
        raw["spec"] |= {
            "clusterName": _cluster_name(random.randrange(CLUSTER_COUNT)),
            "nodeTaints": [{"key": "example.org/borrowed", "effect": "NoSchedule"}],
            "machineTemplate": {"labels": {"team": f"team-{number % 7}"}},
        }
        await self._client.create(SCHEDULED_MACHINES, raw, namespace=self._namespace)
        self._happened["objects created"] += 1

    async def turn_over_clusters(self, every: float) -> None:
        """Takes kubeconfigs away, brings them back and changes their tokens."""
        while True:
            await asyncio.sleep(random.expovariate(1 / every))
            number = random.randrange(CLUSTER_COUNT)
            with suppress(KubeError):
                await self._turn_over(number)

    async def _turn_over(self, number: int) -> None:
        name = f"{_cluster_name(number)}-kubeconfig"
        await self._client.delete(SECRETS, name, namespace=self._namespace)
        self._happened["kubeconfigs replaced"] += 1
        if random.random() < 0.3:
            await asyncio.sleep(20)
        await self._client.create(SECRETS, self._secret(number, random.choice(USERS)), namespace=self._namespace)

    def _secret(self, number: int, user: str) -> Raw:
        name, config = _cluster_name(number), self._cluster.access.kubeconfig(user)
        return {
            **SECRETS.envelope(),
            "type": names.KUBECONFIG_SECRET_TYPE,
            "metadata": {"name": f"{name}-kubeconfig", "labels": {names.LABEL_CLUSTER_NAME: name}},
            "data": {names.KUBECONFIG_SECRET_KEY: base64.b64encode(config.encode()).decode()},
        }

    async def _as_cluster_api(self, raw: Raw) -> None:
        meta = raw["metadata"]
        base = meta["name"].removesuffix(names.MACHINE_SUFFIX)
        host = Host.of({"metadata": {"namespace": self._namespace, "name": base}})
        held = HOLD in meta.get("finalizers", ())
        if not held and "deletionTimestamp" not in meta:
            await self._join(meta, host)
        elif held and "deletionTimestamp" in meta:
            await self._leave(meta, base, host)

    async def _join(self, meta: Raw, host: Host) -> None:
        patch = {"metadata": {"uid": meta["uid"], "finalizers": [HOLD]}, "spec": {"providerID": host.provider_id}}
        await self._client.patch(MACHINES, meta["name"], patch, namespace=self._namespace)
        with suppress(KubeError):  # it exists if the last one of the name left in a hurry
            await self._client.create(NODES, host.node())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        await self._client.patch(NODES, host.name, {"status": {"conditions": [ready]}}, subresource="status")
        with suppress(KubeError):
            await self._client.create(PODS, _pod(host.name), namespace=self._namespace)
        status = {"status": {"nodeRef": {"name": host.name}, "phase": "Running"}}
        await self._client.patch(MACHINES, meta["name"], status, namespace=self._namespace, subresource="status")
        self._happened["Nodes joined"] += 1

    async def _leave(self, meta: Raw, base: str, host: Host) -> None:
        await asyncio.sleep(random.random())
        where = self._namespace
        for end in ("infra", "bootstrap"):
            with suppress(NotFound):
                await self._client.delete(CHILDREN[end], f"{base}-{end}", namespace=where)
        with suppress(NotFound):
            await self._client.delete(PODS, f"pod-{host.name}", namespace=where)
        with suppress(NotFound):
            await self._client.delete(NODES, host.name)
        patch = {"metadata": {"uid": meta["uid"], "finalizers": []}}
        await self._client.patch(MACHINES, meta["name"], patch, namespace=where)
        self._happened["Nodes gone"] += 1


def opens_every_third_hour() -> Raw:
    """Half an hour in three: connections to workload clusters fall idle, and are closed."""
    cron = f"{random.randrange(60)} {random.randrange(3)}-23/3 * * *"
    return {"cron": cron, "duration": "30m", "timezone": "UTC", "enabled": True}


def _cluster_name(number: int) -> str:
    return f"cluster-{number}"


def _pod(node: str) -> Raw:
    container = {"name": "main", "image": "none"}
    spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
    tolerations = [{"operator": "Exists"}]
    spec |= {"tolerations": tolerations, "automountServiceAccountToken": False}
    return {**PODS.envelope(), "metadata": {"name": f"pod-{node}"}, "spec": spec}
