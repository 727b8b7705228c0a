"""The simulated provider on the real control plane: what the proof of its honesty does not touch."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from crds.names import ANNOTATION_PAUSED, KUBECONFIG_SECRET_TYPE, LABEL_CLUSTER_NAME
from local import clusters
from local.plane import ControlPlane
from local.provider.hosts import Host
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.client import Client
from service.kube.errors import NotFound
from service.kube.resource import NODES, SECRETS
from tests.watching import until, until_gone


@pytest.fixture
async def management(plane: ControlPlane) -> AsyncIterator[Client]:
    async with plane.management.client() as client:
        yield client


@pytest.fixture(scope="module")
def second(plane: ControlPlane) -> Iterator[str]:
    plane.add_workload("second")
    yield "second"
    plane.remove_workload("second")


async def add_machine(client: Client, namespace: str, name: str, cluster: str = "demo", **remote: Any) -> Host:
    meta = {"name": name, "labels": {LABEL_CLUSTER_NAME: cluster}}
    body = {**HOSTS.envelope(), "metadata": {**meta, **remote.pop("metadata", {})}, "spec": remote}
    stored = await client.create(HOSTS, body, namespace=namespace)
    await client.create(BOOTSTRAPS, {**BOOTSTRAPS.envelope(), "metadata": meta, "spec": {}}, namespace=namespace)
    refs = {kind: {"apiGroup": kind.group, "kind": kind.kind, "name": name} for kind in (BOOTSTRAPS, HOSTS)}
    spec = {"clusterName": cluster, "bootstrap": {"configRef": refs[BOOTSTRAPS]}, "infrastructureRef": refs[HOSTS]}
    await client.create(MACHINES, {**MACHINES.envelope(), "metadata": meta, "spec": spec}, namespace=namespace)
    return Host.of(stored)


def is_running(machine: dict[str, Any]) -> bool:
    return machine.get("status", {}).get("phase") == "Running"


async def test_the_kubeconfig_secret_is_as_cluster_api_and_we_expect_it(management: Client, namespace: str) -> None:
    secret = await management.get(SECRETS, "demo-kubeconfig", namespace=namespace)
    assert secret["type"] == KUBECONFIG_SECRET_TYPE
    assert secret["metadata"]["labels"][LABEL_CLUSTER_NAME] == "demo"


async def test_a_paused_remote_machine_is_left_alone_until_it_is_not(management: Client, namespace: str) -> None:
    paused = {"annotations": {ANNOTATION_PAUSED: ""}}
    await add_machine(management, namespace, "held", metadata=paused)
    await add_machine(management, namespace, "free")
    await until(management, MACHINES, "free", is_running, namespace=namespace)
    assert "status" not in await management.get(HOSTS, "held", namespace=namespace)

    await management.patch(HOSTS, "held", {"metadata": {"annotations": {ANNOTATION_PAUSED: None}}}, namespace=namespace)

    await until(management, MACHINES, "held", is_running, namespace=namespace)


async def test_what_happened_while_the_provider_was_dead_is_made_up_for(
    plane: ControlPlane, management: Client, namespace: str
) -> None:
    await add_machine(management, namespace, "old")
    await until(management, MACHINES, "old", is_running, namespace=namespace)
    plane.provider.kill()
    await add_machine(management, namespace, "new")
    await management.delete(HOSTS, "old", namespace=namespace)

    await asyncio.to_thread(plane.provider.restart)

    await until(management, MACHINES, "new", is_running, namespace=namespace)
    await until_gone(management, HOSTS, "old", namespace=namespace)


async def test_the_node_reports_the_machine_id_asked_for(
    plane: ControlPlane, management: Client, namespace: str
) -> None:
    host = await add_machine(management, namespace, "known", simulate={"machineID": "0123abcd"})
    await until(management, MACHINES, "known", is_running, namespace=namespace)
    async with plane.workload.client() as workload:
        node = await until(workload, NODES, host.name, lambda n: n["status"].get("phase") == "Running")
    assert node["status"]["nodeInfo"]["machineID"] == "0123abcd"


async def test_a_cluster_can_stand_for_another_workload_cluster(
    plane: ControlPlane, management: Client, namespace: str, second: str
) -> None:
    await clusters.add(management, namespace, "elsewhere", workload=second)
    host = await add_machine(management, namespace, "afar", cluster="elsewhere")
    await until(management, MACHINES, "afar", is_running, namespace=namespace)
    async with plane.workload.client() as here, plane.workloads[second].client() as there:
        assert await there.get(NODES, host.name)
        with pytest.raises(NotFound):
            await here.get(NODES, host.name)
    await management.delete(MACHINES, "afar", namespace=namespace)
    await until_gone(management, MACHINES, "afar", namespace=namespace)
