"""Machines on Cluster API's own infrastructure provider, with its webhooks: DevMachines that live in its memory.

It sets the providerID of a host and keeps the host's Node to itself; where a test needs a Node, the test registers it.
"""

from typing import Any

import pytest

from local.processes import Server
from local.provider.kinds import MACHINES
from service.kube.client import Client
from tests.e2e.devmachines import DEV_MACHINES, dev_machine, join, provisioned, store
from tests.e2e.healthchecks import break_down, watch_over
from tests.e2e.kubeadm import VERSION, kubeadm_configs, kubeadm_machine
from tests.e2e.manifests import NINE, SIX, condition, says
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide
from tests.local.test_loopback import LOOPBACK, listening

Raw = dict[str, Any]
CROWD = [f"one-of-twenty-{number}" for number in range(20)]


@pytest.fixture
def name(namespace: str) -> str:
    """Of its own for each test: the provider makes the providerID of it, and Nodes are found by that."""
    return f"dev-{namespace.removeprefix('test-')}"


async def running(op: Operator, workload: WorkloadSide, name: str) -> str:
    """The machine's Node, as soon as the machine serves."""
    node = await join(workload.client, await provisioned(op, name))
    status = await op.ready(name)
    assert (status["machinePhase"], status["nodeRef"]["name"]) == ("Running", node)
    return node


@pytest.mark.usefixtures("devmachines")
@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
async def test_a_machine_in_memory_serves_and_leaves_when_its_window_closes(
    management: Client, namespace: str, workload: WorkloadSide, name: str, contract: str
) -> None:
    async with operating(management, namespace, NINE, capi_contract=contract) as op:
        await store(op, dev_machine(name, contract))
        node = await running(op, workload, name)
        assert (await workload.node(node))["spec"]["providerID"] == f"in-memory://{name}-infra"
        op.clock.move_to(SIX)
        await op.phase(name, "Inactive")
        await op.absent(DEV_MACHINES, f"{name}-infra")
        await workload.node_gone(node)


@pytest.mark.usefixtures("devmachines")
async def test_the_kill_switch_removes_a_host_that_has_no_node_yet(op: Operator, name: str) -> None:
    await store(op, dev_machine(name))
    await provisioned(op, name)
    assert condition((await op.get(name))["status"], "Ready")["status"] == "False"
    await op.edit_spec(name, killSwitch=True)
    await op.phase(name, "Terminated")
    await op.absent(DEV_MACHINES, f"{name}-infra")


@pytest.mark.usefixtures("devmachines")
async def test_deletion_waits_for_the_provider_and_leaves_nothing(
    op: Operator, workload: WorkloadSide, name: str
) -> None:
    await store(op, dev_machine(name))
    node = await running(op, workload, name)
    await op.delete(name)
    await op.gone(name)
    await op.absent(DEV_MACHINES, f"{name}-infra")
    await workload.node_gone(node)


@pytest.mark.usefixtures("devmachines")
async def test_a_node_that_breaks_down_gets_another_host_by_its_machine_health_check(
    op: Operator, workload: WorkloadSide, name: str
) -> None:
    await store(op, dev_machine(name))
    node = await running(op, workload, name)
    first = await op.read(DEV_MACHINES, f"{name}-infra")
    await watch_over(op, name)
    await break_down(workload.client, node)

    def another(raw: Raw) -> bool:
        return bool(raw["metadata"]["uid"] != first["metadata"]["uid"] and raw["spec"].get("providerID"))

    await op.until_object(DEV_MACHINES, f"{name}-infra", another)
    assert (await op.events(name))["Remediated"] == 1


@pytest.mark.usefixtures("devmachines")
async def test_what_the_provider_and_its_conversion_write_is_no_drift(op: Operator, name: str) -> None:
    vm = {"provisioning": {"startupDuration": "90ms"}}
    await store(
        op, dev_machine(name, "v1beta1", backend={"vm": vm, "node": {"provisioning": {"startupDuration": "60s"}}})
    )
    stored = await provisioned(op, name)
    assert stored["spec"]["backend"]["inMemory"]["node"]["provisioning"]["startupDuration"] == "1m0s"
    await op.at_rest()
    assert says((await op.get(name))["status"], "UpToDate", "True")


@pytest.mark.usefixtures("devmachines")
async def test_twenty_machines_of_one_spec_are_twenty_hosts(op: Operator) -> None:
    await store(op, *map(dev_machine, CROWD))
    hosts = [await provisioned(op, each) for each in CROWD]
    assert len({host["spec"]["providerID"] for host in hosts}) == len(CROWD)
    assert not [each for each in CROWD if condition((await op.get(each))["status"], "HostConflict")]
    for each in CROWD:
        machine = await op.until_object(MACHINES, f"{each}-machine", lambda raw: raw["spec"].get("providerID"))
        assert machine["spec"]["infrastructureRef"]["name"] == f"{each}-infra"
    op.clock.move_to(SIX)
    for each in CROWD:
        await op.phase(each, "Inactive")


@pytest.mark.usefixtures("kubeadm", "devmachines")
async def test_with_kubeadm_both_objects_are_cluster_apis_own(op: Operator, workload: WorkloadSide, name: str) -> None:
    spec = kubeadm_machine()["spec"]
    await store(op, dev_machine(name, bootstrapSpec=spec["bootstrapSpec"], machineTemplate={"version": VERSION}))
    node = await running(op, workload, name)
    op.clock.move_to(SIX)
    await op.phase(name, "Inactive")
    await op.absent(kubeadm_configs("v1beta2"), f"{name}-bootstrap")
    await workload.node_gone(node)


@pytest.mark.usefixtures("kubeadm", "devmachines")
async def test_what_a_providers_webhook_refuses_is_said_and_made_when_it_is_corrected(op: Operator, name: str) -> None:
    twice = {"name": "admin", "passwd": "x", "passwdFrom": {"secret": {"name": "s", "key": "k"}}}
    refused = kubeadm_machine(config={"users": [twice]})["spec"]["bootstrapSpec"]
    await store(op, dev_machine(name, bootstrapSpec=refused, machineTemplate={"version": VERSION}))
    status = await op.phase(name, "Error", "ProviderRejected")
    assert "passwdFrom" in status["message"]
    await op.edit_spec(name, bootstrapSpec={"spec": {"users": None}})
    await provisioned(op, name)


def test_the_providers_ports_are_on_loopback(devmachine_provider: Server) -> None:
    assert devmachine_provider.pid
    assert set(listening(devmachine_provider.pid)) == {LOOPBACK}
