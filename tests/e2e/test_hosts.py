"""What a host is, and what happens where two ScheduledMachines name the same one or share a Node."""

from typing import Any

import pytest

from local import clusters
from local import crds as definitions
from local.plane import ControlPlane
from local.provider.kinds import CLUSTERS, MACHINES
from service.kube.client import Client
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, SCHEDULED_MACHINES, Resource
from tests.e2e.manifests import NINE, condition, machine, says
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

Raw = dict[str, Any]
CLOUD = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "cloudmachines", "CloudMachine")
PROVIDER = "cloud-manager"


def on(name: str, infrastructure: Raw, **spec: Any) -> Raw:
    """A ScheduledMachine with this infrastructure spec and nothing else in it."""
    raw = machine(name, **spec)
    raw["spec"]["infrastructureSpec"]["spec"] = infrastructure
    return raw


async def store(op: Operator, *machines: Raw, namespace: str = "") -> None:
    for raw in machines:
        await op.client.create(SCHEDULED_MACHINES, raw, namespace=namespace or op.namespace, field_manager="kubectl")


async def test_two_machines_from_a_pool_both_come(op: Operator) -> None:
    await store(op, *(on(name, {"pool": "racks"}) for name in ("one", "two")))
    for name in ("one", "two"):
        assert not condition(await op.ready(name), "HostConflict")


async def test_a_port_that_is_the_default_names_the_same_host(op: Operator) -> None:
    address = f"shared.{op.namespace}"
    await store(op, on("one", {"address": address}))
    await op.ready("one")
    await store(
        op, on("two", {"address": f"{address.upper()}.", "port": 22}), on("three", {"address": address, "port": 2222})
    )
    await op.phase("two", "Pending", "HostConflict")
    await op.until_object(MACHINES, "three-machine", lambda _: True)


async def test_a_scheduled_machine_that_could_not_create_a_machine_claims_no_host(
    plane: ControlPlane, management: Client, namespace: str
) -> None:
    """Neither without a Cluster nor, in another namespace, while its window is closed."""
    elsewhere, host = f"{namespace}-else", {"address": f"wanted.{namespace}"}
    await management.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": elsewhere}})
    await clusters.add(management, elsewhere)
    try:
        async with operating(management, namespace, NINE, also=(elsewhere,)) as op:
            await store(op, on("homeless", host, clusterName="nowhere"))
            night = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["22-23"]}
            await store(op, on("closed", host, schedule=night), namespace=elsewhere)
            await op.until("homeless", lambda status: says(status, "ReferencesValid", "False", "ClusterNotFound"))
            await store(op, on("wanted", host))
            await op.ready("wanted")
            await clusters.add(management, namespace, "nowhere")
            status = await op.phase("homeless", "Pending", "HostConflict")
            assert "ScheduledMachine wanted" in condition(status, "HostConflict")["message"]
    finally:
        body = {"metadata": {"finalizers": None}}
        await management.patch(SCHEDULED_MACHINES, "closed", body, namespace=elsewhere)
        await management.delete(NAMESPACES, elsewhere)


async def test_a_machine_that_waits_for_a_host_gets_it_when_the_cluster_of_its_holder_is_deleted(op: Operator) -> None:
    host = {"address": f"wanted.{op.namespace}"}
    await clusters.add(op.client, op.namespace, "second")
    held = {"schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}, "clusterName": "second"}
    await store(op, on("before", host, **held))
    await op.ready("before")
    await store(op, on("after", host))
    await op.phase("after", "Pending", "HostConflict")
    await op.client.delete(CLUSTERS, "second", namespace=op.namespace)
    await op.ready("after")


# A provider of a kind that names no host


def cloud_machines() -> Raw:
    """A kind with defaults, which CAPI takes for infrastructure."""
    properties = {
        "region": {"type": "string"},
        "size": {"type": "string"},
        "timeout": {"type": "string"},
        "tenancy": {"type": "string", "default": "shared"},
        "disks": {"type": "array", "items": {"type": "object", "properties": {
            "size": {"type": "integer"}, "encrypted": {"type": "boolean", "default": True}}}},
    }  # fmt: skip
    spec = {"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": True}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    version = {"name": CLOUD.version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    words = {"kind": CLOUD.kind, "plural": CLOUD.plural, "singular": "cloudmachine", "listKind": "CloudMachineList"}
    return {
        **CUSTOM_RESOURCE_DEFINITIONS.envelope(),
        "metadata": {"name": CLOUD.label, "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"}},
        "spec": {"group": CLOUD.group, "scope": "Namespaced", "names": words, "versions": [version]},
    }


@pytest.fixture
async def cloud(management: Client) -> None:
    """It stays: without it Cluster API cannot convert a Machine that names it, nor a list that holds such a Machine."""
    await definitions.apply(management, cloud_machines())


def in_the_cloud(name: str) -> Raw:
    raw = on(name, {"region": "eu", "size": "1000m", "timeout": "90s", "disks": [{"size": 1}]})
    raw["spec"]["infrastructureSpec"] |= {"apiVersion": CLOUD.api_version, "kind": CLOUD.kind}
    return raw


@pytest.mark.usefixtures("cloud")
async def test_what_a_provider_writes_is_no_drift_and_what_a_person_writes_is(op: Operator) -> None:
    await store(op, in_the_cloud("one"), in_the_cloud("two"))
    for name in ("one", "two"):  # the same spec, and a host each
        status = await op.until(name, lambda status: status.get("phase") == "Active" and status.get("machineRef"))
        assert says(status, "UpToDate", "True")
        assert not condition(status, "HostConflict")
        assert "hostHash" not in status

    written = {"size": "large", "timeout": "1m30s", "providerID": "cloud:///1", "disks": [{"size": 1}, {"size": 9}]}
    await op.change(CLOUD, "one-infra", {"spec": written}, field_manager=PROVIDER)
    await op.change(CLOUD, "one-infra", {"status": {"ready": False}}, field_manager=PROVIDER, subresource="status")
    await op.change(CLOUD, "two-infra", {"spec": {"timeout": "1m30s"}}, field_manager="kubectl-edit")
    await op.edit_spec("one", priority=60)
    status = await op.until("one", lambda status: status.get("observedGeneration") == 2)
    await op.until("one", lambda status: says(status, "UpToDate", "True"))

    await op.change(CLOUD, "one-infra", {"spec": {"region": "us"}}, field_manager="kubectl-edit")
    status = await op.until("one", lambda status: says(status, "UpToDate", "False", "ProviderSpecChanged"))
    message = condition(status, "UpToDate")["message"]
    assert "spec.region (by kubectl-edit)" in message
    assert not [name for name in ("size", "timeout", "disks") if f"spec.{name}" in message]
    assert says((await op.get("two"))["status"], "UpToDate", "True")


# One Node, two ScheduledMachines


async def test_two_on_one_node_see_each_others_taints(
    management: Client, namespace: str, workload: WorkloadSide
) -> None:
    """As long as nothing says what a host is: CAPI gives both Machines the same Node."""
    host = {"address": f"shared.{namespace}"}

    def taint(value: str, key: str = "example.com/use") -> Raw:
        return {"key": key, "value": value, "effect": "NoSchedule"}

    async with operating(management, namespace, NINE, host_identity="") as op:
        await store(op, on("one", host, nodeTaints=[taint("one"), taint("x", "example.com/one")]))
        node = (await op.ready("one"))["nodeRef"]["name"]
        await op.until("one", lambda status: says(status, "NodeTainted", "True"))
        await store(op, on("two", host, nodeTaints=[taint("two"), taint("x", "example.com/two")]))
        status = await op.until("two", lambda status: says(status, "NodeTainted", "False", "TaintOwnershipConflict"))
        assert status["nodeRef"]["name"] == node
        await op.at_rest()
        pair = [(await op.get(name))["status"] for name in ("one", "two")]
        assert [says(status, "HostConflict", "True") for status in pair].count(True) == 1, "the later one says so"

        await op.edit_spec("one", nodeTaints=[taint("x", "example.com/one")])
        await op.until("two", lambda status: says(status, "NodeTainted", "True"))
        seen = await workload.client.get(NODES, node)
        there = {(one["key"], one.get("value")) for one in seen["spec"]["taints"]}
        assert {("example.com/use", "two"), ("example.com/one", "x"), ("example.com/two", "x")} <= there
        await op.at_rest()
