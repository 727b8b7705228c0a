"""Proof that the simulated provider is honest: Cluster API's own controller brings Machines up and takes them down.

No operator is involved: every object is applied by hand.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.plane import ControlPlane
from local.provider.hosts import Host
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.client import Client
from service.kube.resource import NODES, SECRETS, Resource
from tests.watching import until, until_gone

V1BETA2 = MACHINES
V1BETA1 = Resource("cluster.x-k8s.io", "v1beta1", "machines", "Machine")
NAME = "worker"


@dataclass(frozen=True)
class Hand:
    """Applies objects to one namespace, as a person with kubectl would."""

    management: Client
    workload: Client
    namespace: str

    async def apply(self, version: Resource, infrastructure: dict[str, Any], bootstrap: dict[str, Any]) -> Host:
        labels = {"cluster.x-k8s.io/cluster-name": "demo"}
        meta = {"name": NAME, "labels": labels}
        remote = {**HOSTS.envelope(), "metadata": meta, "spec": infrastructure}
        stored = await self.management.create(HOSTS, remote, namespace=self.namespace)
        config = {**BOOTSTRAPS.envelope(), "metadata": meta, "spec": bootstrap}
        await self.management.create(BOOTSTRAPS, config, namespace=self.namespace)
        machine = {**version.envelope(), "metadata": meta, "spec": machine_spec(version)}
        await self.management.create(version, machine, namespace=self.namespace)
        return Host.of(stored)

    async def machine(self, version: Resource, true: Any) -> dict[str, Any]:
        return await until(self.management, version, NAME, true, namespace=self.namespace)

    async def gone(self, resource: Resource, name: str = NAME) -> None:
        await until_gone(self.management, resource, name, namespace=self.namespace)


def machine_spec(version: Resource) -> dict[str, Any]:
    def reference(resource: Resource) -> dict[str, str]:
        if version is V1BETA1:
            return {"apiVersion": resource.api_version, "kind": resource.kind, "name": NAME}
        return {"apiGroup": resource.group, "kind": resource.kind, "name": NAME}

    return {
        "clusterName": "demo",
        "bootstrap": {"configRef": reference(BOOTSTRAPS)},
        "infrastructureRef": reference(HOSTS),
    }


def is_running(machine: dict[str, Any]) -> bool:
    return machine.get("status", {}).get("phase") == "Running"


def condition(machine: dict[str, Any], kind: str) -> dict[str, Any]:
    found = [c for c in machine.get("status", {}).get("conditions", ()) if c["type"] == kind]
    return found[0] if found else {}


@pytest.fixture
async def hand(plane: ControlPlane, namespace: str) -> AsyncIterator[Hand]:
    async with plane.management.client() as management, plane.workload.client() as workload:
        yield Hand(management, workload, namespace)


@pytest.mark.parametrize("version", [V1BETA1, V1BETA2], ids=lambda version: version.version)
async def test_cluster_api_takes_a_machine_to_running_and_removes_everything_with_it(
    hand: Hand, version: Resource
) -> None:
    host = await hand.apply(version, {"address": f"{hand.namespace}.example"}, {"version": "v1.34.1+k0s.0"})

    machine = await hand.machine(version, is_running)
    node = await until(hand.workload, NODES, host.name, is_ready)
    assert machine["status"]["nodeRef"]["name"] == host.name
    assert machine["spec"]["providerID"] == node["spec"]["providerID"] == host.provider_id
    assert await hand.management.get(SECRETS, f"{NAME}-data", namespace=hand.namespace)

    await hand.management.delete(version, NAME, namespace=hand.namespace)
    for resource in (version, HOSTS, BOOTSTRAPS):
        await hand.gone(resource)
    await hand.gone(SECRETS, f"{NAME}-data")
    await until_gone(hand.workload, NODES, host.name)


def is_ready(node: dict[str, Any]) -> bool:
    return condition(node, "Ready").get("status") == "True"


async def test_an_invalid_configuration_is_a_terminal_failure_to_cluster_api(hand: Hand) -> None:
    await hand.apply(V1BETA1, {"simulate": {"failure": "InvalidConfiguration"}}, {})

    machine = await hand.machine(V1BETA1, lambda m: m.get("status", {}).get("failureReason"))
    assert machine["status"]["failureReason"] == "InvalidConfiguration"
    assert "invalid configuration" in machine["status"]["failureMessage"]
    assert machine["status"]["phase"] != "Failed"  # Cluster API never says so

    newer = await hand.management.get(V1BETA2, NAME, namespace=hand.namespace)
    assert newer["status"]["deprecated"]["v1beta1"]["failureReason"] == "InvalidConfiguration"


async def test_a_host_that_is_never_ready_leaves_the_machine_provisioning(hand: Hand) -> None:
    await hand.apply(V1BETA2, {"simulate": {"failure": "NeverReady"}}, {})

    machine = await hand.machine(V1BETA2, lambda m: condition(m, "InfrastructureReady").get("reason") == "NeverReady")
    assert machine["status"]["phase"] == "Provisioning"
    assert "providerID" not in machine["spec"]


@pytest.mark.parametrize("at_fault", ["host", "configuration"])
async def test_a_node_that_never_joins_leaves_the_machine_provisioned(hand: Hand, at_fault: str) -> None:
    wrong, right = {"simulate": {"failure": "NodeNeverJoins"}}, dict[str, Any]()
    host = await hand.apply(V1BETA2, *((wrong, right) if at_fault == "host" else (right, wrong)))

    machine = await hand.machine(V1BETA2, lambda m: m.get("status", {}).get("phase") == "Provisioned")
    assert machine["spec"]["providerID"] == host.provider_id
    assert "nodeRef" not in machine["status"]


async def test_a_delay_holds_the_host_back_for_so_long(hand: Hand) -> None:
    await hand.apply(V1BETA2, {"simulate": {"delaySeconds": 2}}, {})

    machine = await hand.machine(V1BETA2, is_running)
    waited = await hand.workload.get(NODES, machine["status"]["nodeRef"]["name"])
    assert waited["metadata"]["creationTimestamp"] > machine["metadata"]["creationTimestamp"]
