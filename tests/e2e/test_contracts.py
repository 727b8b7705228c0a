"""DESIGN 1.5: both contracts of Cluster API, by setting and by what is served, and life without Cluster API."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crds import names
from crds.schema import custom_resource_definition
from local.binaries import Assets
from local.capi import load_definitions
from local.cluster import LocalCluster, Options
from local.crds import apply as install
from local.provider.kinds import BOOTSTRAPS, HOSTS, definitions
from service.kube.client import Client
from service.kube.resource import NAMESPACES, SCHEDULED_MACHINES, Resource
from tests.e2e.manifests import NINE, SIX, condition, machine, says
from tests.e2e.operator import operating

Raw = dict[str, Any]
OLD = "v1beta1"
OLD_MACHINES = Resource(names.CAPI_GROUP, OLD, "machines", "Machine")
OLD_CLUSTERS = Resource(names.CAPI_GROUP, OLD, "clusters", "Cluster")
CONTRACTS = ("v1beta1", "v1beta2")


def drain_timeout(contract: str, raw: Raw) -> Any:
    if contract == OLD:
        return raw["spec"]["nodeDrainTimeout"]
    return raw["spec"]["deletion"]["nodeDrainTimeoutSeconds"]


def reference(contract: str, resource: Resource, name: str, namespace: str) -> Raw:
    if contract == OLD:
        return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "namespace": namespace}
    return {"apiGroup": resource.group, "kind": resource.kind, "name": name}


@pytest.mark.parametrize("contract", CONTRACTS)
async def test_a_forced_contract_is_spoken_from_creation_to_removal(
    management: Client, namespace: str, contract: str
) -> None:
    machines = Resource(names.CAPI_GROUP, contract, "machines", "Machine")
    async with operating(management, namespace, NINE, capi_contract=contract) as op:
        await op.apply(machine())
        status = await op.ready("worker")
        assert status["machineRef"]["apiVersion"] == machines.api_version
        seen = await op.read(machines, "worker-machine")
        assert seen["spec"]["infrastructureRef"] == reference(contract, HOSTS, "worker-infra", namespace)
        bootstrap = seen["spec"]["bootstrap"]["configRef"]
        assert bootstrap.items() <= reference(contract, BOOTSTRAPS, "worker-bootstrap", namespace).items()

        await op.edit_spec("worker", nodeDrainTimeout="90s")
        await op.until_object(machines, "worker-machine", lambda raw: drain_timeout(contract, raw) in ("1m30s", 90))
        op.clock.move_to(SIX)
        await op.phase("worker", "Inactive")
        await op.childless("worker")


@pytest.mark.parametrize("contract", CONTRACTS)
async def test_a_failure_is_read_in_either_contract(management: Client, namespace: str, contract: str) -> None:
    async with operating(management, namespace, NINE, capi_contract=contract) as op:
        await op.apply(machine(infrastructure={"simulate": {"failure": "InvalidConfiguration"}}))
        status = await op.phase("worker", "Error")
        assert status["machinePhase"] == "Failed"
        assert "invalid configuration" in status["message"]


def only_old(definition: Raw) -> Raw:
    """A CRD as it was before v1beta2 existed."""
    versions = [{**one, "storage": True} for one in definition["spec"]["versions"] if one["name"] == OLD]
    spec = {key: value for key, value in definition["spec"].items() if key != "conversion"}
    return {**definition, "spec": {**spec, "versions": versions}}


async def test_cluster_api_that_comes_later_and_serves_only_v1beta1(
    new_cluster: Callable[..., LocalCluster], assets: Assets
) -> None:
    """No controller of Cluster API runs here: what it would report is written by hand."""
    cluster = await asyncio.to_thread(new_cluster, Options(definitions=(custom_resource_definition(), *definitions())))
    old = [only_old(crd) for crd in load_definitions(assets.capi_crds)]
    needed = [crd for crd in old if crd["metadata"]["name"] in (OLD_MACHINES.label, OLD_CLUSTERS.label)]
    async with cluster.client() as client:
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": "team"}})
        async with operating(client, "team", NINE) as op:
            await op.apply(machine())
            status = await op.phase("worker", "Pending", "CAPINotInstalled")
            assert says(status, "CAPIAvailable", "False")

            for definition in needed:
                await install(client, definition)
            status = await op.phase("worker", "Inactive", "ClusterNotFound")
            assert not condition(status, "CAPIAvailable")

            body = {**OLD_CLUSTERS.envelope(), "metadata": {"name": "demo"}, "spec": {"paused": False}}
            await client.create(OLD_CLUSTERS, body, namespace="team")
            status = await op.phase("worker", "Active", "MachineProvisioning")
            assert status["machineRef"]["apiVersion"] == OLD_MACHINES.api_version
            await machine_phases_follow(op)

            op.clock.move_to(SIX)
            await op.phase("worker", "Inactive", "OutsideSchedule")
            for resource, end in ((OLD_MACHINES, "machine"), (HOSTS, "infra"), (BOOTSTRAPS, "bootstrap")):
                await op.absent(resource, f"worker-{end}")
            await op.delete("worker")
            await op.absent(SCHEDULED_MACHINES, "worker")


async def machine_phases_follow(op: Any) -> None:
    """DESIGN 1.4, by the fields of v1beta1."""
    assert (await op.get("worker"))["status"]["machinePhase"] == "Provisioning"
    await op.change(OLD_MACHINES, "worker-machine", {"spec": {"providerID": "remote://one"}})
    status = await op.until("worker", lambda status: status["machinePhase"] == "Provisioned")
    assert status["providerID"] == "remote://one"

    failure = {"failureReason": "CreateError", "failureMessage": "no such host"}
    await op.change(OLD_MACHINES, "worker-machine", {"status": failure}, subresource="status")
    status = await op.phase("worker", "Error", "CreateError")
    assert (status["machinePhase"], status["message"]) == ("Failed", "no such host")
    await op.change(OLD_MACHINES, "worker-machine", {"status": dict.fromkeys(failure)}, subresource="status")
    await op.phase("worker", "Active")

    await op.change(OLD_MACHINES, "worker-machine", {"spec": {"providerID": "remote://two"}})
    status = await op.until("worker", lambda status: says(status, "MachineReady", "False", "ProviderIDChanged"))
    assert status["providerID"] == "remote://one"
    assert (await op.events("worker"))["ProviderIDChanged"] == 1
    await op.change(OLD_MACHINES, "worker-machine", {"spec": {"providerID": "remote://one"}})
    await op.until("worker", lambda status: not says(status, "MachineReady", "False", "ProviderIDChanged"))
