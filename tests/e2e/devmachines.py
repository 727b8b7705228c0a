"""Machines whose infrastructure is Cluster API's own in-memory provider, and a Cluster that they belong to."""

from typing import Any

from local.provider.kinds import CLUSTERS
from service.kube.client import Client
from service.kube.resource import NODES, SCHEDULED_MACHINES, Resource
from tests import watching
from tests.e2e.manifests import machine
from tests.e2e.operator import Operator

Raw = dict[str, Any]
GROUP = "infrastructure.cluster.x-k8s.io"
DEV_CLUSTERS = Resource(GROUP, "v1beta2", "devclusters", "DevCluster")
DEV_MACHINES = Resource(GROUP, "v1beta2", "devmachines", "DevMachine")
IN_MEMORY: Raw = {"backend": {"inMemory": {}}}


def dev_machine(name: str, api: str = "v1beta2", *, backend: Raw | None = None, **spec: Any) -> Raw:
    """Office hours for a DevMachine in memory; `backend` is what its spec says about that."""
    infrastructure = {
        "apiVersion": f"{GROUP}/{api}",
        "kind": "DevMachine",
        "spec": {"backend": {"inMemory": backend or {}}},
    }
    return machine(name, infrastructureSpec=infrastructure, **spec)


async def in_memory(client: Client, namespace: str, name: str = "demo") -> None:
    """Gives a Cluster the infrastructure in memory that DevMachines wait for."""
    meta = {"name": name, "annotations": {"tests.example/any": ""}}  # the provider panics where there are none
    body = {**DEV_CLUSTERS.envelope(), "metadata": meta, "spec": IN_MEMORY}
    await client.create(DEV_CLUSTERS, body, namespace=namespace, field_manager="tests")
    reference = {"apiGroup": GROUP, "kind": DEV_CLUSTERS.kind, "name": name}
    await client.patch(
        CLUSTERS, name, {"spec": {"infrastructureRef": reference}}, namespace=namespace, field_manager="tests"
    )
    await watching.until(client, DEV_CLUSTERS, name, _provisioned, namespace=namespace)


def _provisioned(raw: Raw) -> bool:
    return bool(raw.get("status", {}).get("initialization", {}).get("provisioned"))


async def store(op: Operator, *machines: Raw) -> None:
    for raw in machines:
        await op.client.create(SCHEDULED_MACHINES, raw, namespace=op.namespace, field_manager="kubectl")


async def provisioned(op: Operator, name: str) -> Raw:
    """The DevMachine as soon as the provider has given it an identity."""
    return await op.until_object(DEV_MACHINES, f"{name}-infra", lambda raw: raw["spec"].get("providerID"))


async def join(workload: Client, host: Raw) -> str:
    """The host's kubelet registers itself; the provider's own Nodes are in its memory, where no other client looks."""
    name = str(host["metadata"]["name"])
    node = {**NODES.envelope(), "metadata": {"name": name}, "spec": {"providerID": host["spec"]["providerID"]}}
    await workload.create(NODES, node, field_manager="kubelet")
    return name
