"""The objects of a case: a namespace with a Cluster, the machine under test, a neighbour and foreign objects."""

import base64
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crds import names
from crds.base import rfc3339
from local.cluster import LocalCluster
from local.provider.hosts import node_name
from local.provider.kinds import BOOTSTRAPS, CLUSTERS, HOSTS, MACHINES
from service.kube.client import Client
from service.kube.errors import AlreadyExists, NotFound
from service.kube.resource import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    SCHEDULE_OVERRIDES,
    SCHEDULED_MACHINES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from tests.chaos.actor import PREFIX, TENANT, Actor
from tests.chaos.proxy import Proxy
from tests.e2e.kubeconfigs import kubeconfig
from tests.e2e.manifests import machine
from tests.e2e.operator import MovableClock

Raw = dict[str, Any]
NAME, NEIGHBOUR = "worker", "bystander"
CHILDREN = {"machine": MACHINES, "bootstrap": BOOTSTRAPS, "infra": HOSTS}
LONG = {"gracefulShutdownTimeout": "2h", "nodeDrainTimeout": "1h"}
__all__ = ["NAME", "NEIGHBOUR", "PREFIX", "Stage"]


@dataclass
class Stage:
    """Everything around one case; `client` goes to the API server directly."""

    cluster: LocalCluster
    client: Client
    actor: Actor
    proxy: Proxy
    clock: MovableClock
    foreign: dict[tuple[Resource, str], Raw] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.proxy.namespace

    def node_of(self, name: str) -> str:
        return node_name(f"{name}.{self.namespace}")

    @property
    def node(self) -> str:
        return self.node_of(NAME)

    # Before the case

    async def furnish(self) -> None:
        await self.client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": self.namespace}})
        with suppress(AlreadyExists):
            await self.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}})
        await self.create(CLUSTERS, {"metadata": {"name": "demo"}, "spec": {"paused": False}})
        config = kubeconfig(self.cluster, url=self.proxy.url)
        labels = {names.LABEL_CLUSTER_NAME: "demo"}
        data = {"value": base64.b64encode(config.encode()).decode()}
        meta = {"name": "demo-kubeconfig", "labels": labels}
        await self.create(SECRETS, {"metadata": meta, "type": names.KUBECONFIG_SECRET_TYPE, "data": data})
        await self._plant()

    async def _plant(self) -> None:
        """Foreign objects whose names and labels look like ours."""
        look = {names.LABEL_CLUSTER_NAME: "demo", names.LABEL_OWNER: NAME, names.LABEL_MANAGED_BY: names.MANAGED_BY}
        spec = {"clusterName": "demo", "bootstrap": {"dataSecretName": "none"}}
        spec["infrastructureRef"] = {"apiGroup": HOSTS.group, "kind": HOSTS.kind, "name": f"{NAME}-infra-2"}
        for name in (f"{NAME}-machine-2", f"{NAME}-2-machine"):
            await self._theirs(MACHINES, {"metadata": {"name": name, "labels": look}, "spec": spec})
        await self._theirs(HOSTS, {"metadata": {"name": f"{NAME}-infra-2", "labels": look}, "spec": {}})
        await self._theirs(BOOTSTRAPS, {"metadata": {"name": f"{NAME}-bootstrap-2", "labels": look}, "spec": {}})
        node = f"{self.node}-2"
        await self._theirs(NODES, {"metadata": {"name": node}, "spec": {"providerID": f"other://{node}"}})
        await self._theirs(PODS, pod("theirs", node))

    async def _theirs(self, resource: Resource, body: Raw) -> None:
        self.foreign[resource, body["metadata"]["name"]] = await self.create(resource, body)

    async def create(self, resource: Resource, body: Raw) -> Raw:
        body = {**resource.envelope(), **body}
        return await self.client.create(resource, body, namespace=self.namespace, field_manager="another-controller")

    async def apply(self, name: str = NAME, **spec: Any) -> Raw:
        """A ScheduledMachine with a host of its own."""
        address = {"address": f"{name}.{self.namespace}"}
        return await self.create(SCHEDULED_MACHINES, machine(name, infrastructure=address, **{**LONG, **spec}))

    async def occupy(self, *pods: str, name: str = NAME) -> None:
        """Creates pods on the machine's Node."""
        for each in pods:
            await self.create(PODS, pod(each, self.node_of(name)))

    # During and after it

    async def override(self, name: str, state: str, until: datetime, *, begins: datetime | None = None) -> None:
        """An override of the machine, from a moment or from now on."""
        spec = {"machines": [NAME], "state": state, "until": rfc3339(until)}
        if begins is not None:
            spec["from"] = rfc3339(begins)
        await self.create(SCHEDULE_OVERRIDES, {"metadata": {"name": name}, "spec": spec})

    async def edit(self, body: Raw) -> None:
        """As a user would."""
        await self.client.patch(SCHEDULED_MACHINES, NAME, body, namespace=self.namespace, field_manager="kubectl-edit")

    async def find(self, resource: Resource, name: str) -> Raw | None:
        try:
            return await self.client.get(resource, name, namespace=self.namespace)
        except NotFound:
            return None

    async def machine(self, name: str = NAME) -> Raw | None:
        return await self.find(SCHEDULED_MACHINES, name)

    async def children(self, name: str = NAME) -> dict[str, Raw]:
        """Those of the three objects that exist."""
        found = {end: await self.find(kind, f"{name}-{end}") for end, kind in CHILDREN.items()}
        return {end: raw for end, raw in found.items() if raw is not None}

    async def clear(self) -> None:
        """Deletes what other cases would see; the rest ends with the cluster, as deleting a namespace is costly."""
        for each in (self.node, self.node_of(NEIGHBOUR), f"{self.node}-2"):
            await self.actor.remove_node(each)
            with suppress(NotFound):
                await self.client.delete(
                    CONFIG_MAPS, names.RECLAIM_CONFIG_PREFIX + each, namespace=names.RECLAIM_NAMESPACE
                )


def pod(name: str, node: str) -> Raw:
    containers = [{"name": "main", "image": "pause"}]
    spec = {"nodeName": node, "containers": containers, "automountServiceAccountToken": False}
    return {"metadata": {"name": name, "labels": {TENANT: name}}, "spec": spec}
