"""Node taints (docs/taints.md): the controller keeps its own on the Node and leaves all others alone."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from crds import names
from local.plane import ControlPlane
from service.kube.client import Client, PatchKind
from service.kube.errors import Conflict
from service.kube.resource import NODES, SCHEDULED_MACHINES, SERVICE_ACCOUNTS, Resource
from tests.e2e.kubeconfigs import kubeconfig, store
from tests.e2e.manifests import NINE, condition, machine, says
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

Raw = dict[str, Any]
OURS = "example.com/spot"
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ADMINS = {
    "key": "admin.example/drained",
    "value": "by-hand",
    "effect": "NoExecute",
    "timeAdded": "2026-01-01T00:00:00Z",
}


def taint(value: str | None = "yes", key: str = OURS, effect: str = "NoSchedule") -> Raw:
    return {"key": key, "effect": effect, **({"value": value} if value is not None else {})}


async def in_service(op: Operator, *taints: Raw) -> str:
    """A machine that runs with these taints; returns its Node."""
    await op.apply(machine(nodeTaints=list(taints)))
    return str((await op.ready("worker"))["nodeRef"]["name"])


async def applied(op: Operator, *taints: Raw) -> Raw:
    """Waits until the status says that exactly these are on the Node."""

    def reported(status: Raw) -> bool:
        same = status.get("appliedNodeTaints", []) == list(taints)
        return same and (not taints or says(status, "NodeTainted", "True", "Applied"))

    return await op.until("worker", reported)


async def taints_of(workload: WorkloadSide, node: str) -> list[Raw]:
    return (await workload.node(node))["spec"].get("taints", [])


async def has_taints(workload: WorkloadSide, node: str, *taints: Raw) -> Raw:
    """Waits until the Node has exactly these."""
    wanted = sorted(taints, key=str)
    return await workload.until_node(node, lambda raw: sorted(raw["spec"].get("taints", []), key=str) == wanted)


async def by_hand(workload: WorkloadSide, node: str, *taints: Raw) -> None:
    """An administrator sets the whole list."""
    await workload.client.patch(NODES, node, {"spec": {"taints": list(taints)}}, field_manager="kubectl-taint")


# Add, change, remove


async def test_taints_are_added_changed_and_removed_and_an_admins_stay_as_they_are(
    op: Operator, workload: WorkloadSide
) -> None:
    node = await in_service(op)
    await by_hand(workload, node, ADMINS)

    await op.edit_spec("worker", nodeTaints=[taint("one"), taint(None, "example.com/bare")])
    await has_taints(workload, node, ADMINS, taint("one"), taint(None, "example.com/bare"))
    await applied(op, taint("one"), taint(None, "example.com/bare"))

    await op.edit_spec("worker", nodeTaints=[taint("two")])
    seen = await has_taints(workload, node, ADMINS, taint("two"))
    await applied(op, taint("two"))
    assert [*json.loads(seen["metadata"]["annotations"][names.ANNOTATION_APPLIED_TAINTS]).values()] == [[taint("two")]]
    (manager,) = [one for one in seen["metadata"]["managedFields"] if one["manager"] == names.TAINT_FIELD_MANAGER]
    assert manager["operation"] == "Apply"
    assert "f:taints" in manager["fieldsV1"]["f:spec"]

    await op.edit_spec("worker", nodeTaints=[])
    await has_taints(workload, node, ADMINS)
    status = await applied(op)
    assert not condition(status, "NodeTainted")
    assert (await op.events("worker"))["NodeTaintsApplied"] == 3


async def test_drift_is_repaired_when_the_node_changes(op: Operator, workload: WorkloadSide) -> None:
    node = await in_service(op, taint())
    await applied(op, taint())

    await by_hand(workload, node, ADMINS)
    await has_taints(workload, node, ADMINS, taint())
    assert says((await op.get("worker"))["status"], "NodeTainted", "True", "Applied")


async def test_a_node_that_registers_again_is_tainted_again(op: Operator, workload: WorkloadSide) -> None:
    node = await in_service(op, taint())
    old = await has_taints(workload, node, taint())

    await workload.client.delete(NODES, node)
    await op.until("worker", lambda status: says(status, "NodeTainted", "Unknown", "NoNodeYet"))
    new = await register(workload, old, old["spec"]["providerID"])
    await has_taints(workload, node, taint())
    status = await op.until("worker", lambda status: status["nodeRef"]["uid"] == new["metadata"]["uid"])
    assert status["machineRef"]["name"] == "worker-machine"
    await op.ready("worker")
    await op.until("worker", lambda status: says(status, "NodeTainted", "True", "Applied"))


async def test_a_node_of_another_host_under_the_same_name_is_never_written_to(
    op: Operator, workload: WorkloadSide
) -> None:
    node = await in_service(op, taint())
    old = await has_taints(workload, node, taint())

    await workload.client.delete(NODES, node)
    await register(workload, old, "remote-machine://another-host")
    status = await op.until("worker", lambda status: says(status, "MachineReady", "False", "NodeOfAnotherHost"))
    assert says(status, "Ready", "False")
    assert status["nodeRef"]["uid"] == old["metadata"]["uid"]
    await workload.until_node(node, lambda raw: says(raw["status"], "Ready", "True"))
    await op.edit_spec("worker", nodeTaints=[taint("two")])
    await op.until("worker", lambda status: status["observedGeneration"] == 2)
    seen = await workload.node(node)
    assert OURS not in str(seen["spec"])
    assert not [one for one in seen["metadata"]["managedFields"] if one["manager"].startswith("5spot")]
    assert (await op.events("worker"))["NodeOfAnotherHost"] == 1


async def register(workload: WorkloadSide, old: Raw, provider_id: str) -> Raw:
    """A kubelet starts under a name that was there before."""
    labels = old["metadata"]["labels"]
    metadata = {"name": old["metadata"]["name"], "labels": labels}
    body = {"metadata": metadata, "spec": {"providerID": provider_id}}
    return await workload.client.create(NODES, body, field_manager="kubelet")


# The other reasons of NodeTainted


async def test_no_node_yet(op: Operator) -> None:
    await op.apply(machine(nodeTaints=[taint()], infrastructure={"simulate": {"failure": "NodeNeverJoins"}}))
    await op.until("worker", lambda status: says(status, "NodeTainted", "Unknown", "NoNodeYet"))


async def test_a_taint_with_another_owner_is_a_conflict_and_never_overwritten(
    op: Operator, workload: WorkloadSide
) -> None:
    node = await in_service(op)
    await by_hand(workload, node, taint("theirs"))
    await op.edit_spec("worker", nodeTaints=[taint("ours"), taint("fine", "example.com/other")])

    status = await op.until("worker", lambda status: says(status, "NodeTainted", "False", "TaintOwnershipConflict"))
    assert f"{OURS}=theirs:NoSchedule" in condition(status, "NodeTainted")["message"]
    await has_taints(workload, node, taint("theirs"), taint("fine", "example.com/other"))
    assert (await op.events("worker"))["TaintOwnershipConflict"] == 1

    await by_hand(workload, node, taint("fine", "example.com/other"))
    await has_taints(workload, node, taint("ours"), taint("fine", "example.com/other"))
    await applied(op, taint("ours"), taint("fine", "example.com/other"))


async def test_a_value_that_a_user_changed_is_a_conflict_until_it_is_changed_back(
    op: Operator, workload: WorkloadSide
) -> None:
    node = await in_service(op, taint("ours"))
    await applied(op, taint("ours"))
    await by_hand(workload, node, taint("theirs"))
    await op.until("worker", lambda status: says(status, "NodeTainted", "False", "TaintOwnershipConflict"))
    assert await taints_of(workload, node) == [taint("theirs")]

    await by_hand(workload, node, taint("ours"))
    await applied(op, taint("ours"))
    await op.edit_spec("worker", nodeTaints=[])
    await has_taints(workload, node)


@pytest.fixture
async def onlooker(plane: ControlPlane, namespace: str) -> AsyncIterator[str]:
    """A token that may read the Nodes of the workload cluster and change nothing."""
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    subject = {"kind": "ServiceAccount", "name": namespace, "namespace": "default"}
    role = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": namespace}
    metadata = {"metadata": {"name": namespace}}
    async with plane.workload.client() as client:
        await client.create(SERVICE_ACCOUNTS, metadata, namespace="default")
        await client.create(ROLES, {**metadata, "rules": [rule]})
        await client.create(BINDINGS, {**metadata, "roleRef": role, "subjects": [subject]})
        answer = await client.create_subresource(
            SERVICE_ACCOUNTS, namespace, "token", {"spec": {}}, namespace="default"
        )
        yield answer["status"]["token"]
        await client.delete(BINDINGS, namespace)
        await client.delete(ROLES, namespace)
        await client.delete(SERVICE_ACCOUNTS, namespace, namespace="default")


async def test_a_refused_write_emits_one_event_and_is_made_once_it_is_allowed(
    op: Operator, workload: WorkloadSide, plane: ControlPlane, onlooker: str
) -> None:
    await store(op, kubeconfig(plane.workload, token=onlooker))
    node = await in_service(op)
    await op.edit_spec("worker", nodeTaints=[taint()])
    status = await op.until("worker", lambda status: says(status, "NodeTainted", "False", "PatchFailed"))
    assert "forbidden" in condition(status, "NodeTainted")["message"]
    assert "appliedNodeTaints" not in status
    assert status["phase"] == "Active"
    assert (await op.events("worker"))["PatchFailed"] == 1

    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}]
    await workload.client.patch(ROLES, op.namespace, {"rules": rules})
    # Any change of the Node is reason enough to try again.
    await workload.client.patch(NODES, node, {"metadata": {"labels": {"example.com/seen": "yes"}}})
    await has_taints(workload, node, taint())


# Ownership


@pytest.mark.parametrize("lost", ["status", "note"])
async def test_what_is_ours_is_known_after_a_restart(
    management: Client, namespace: str, workload: WorkloadSide, lost: str
) -> None:
    """As after a crash between the write to the Node and that to the status, or after a user removed our annotation."""
    async with operating(management, namespace, NINE) as op:
        node = await in_service(op, taint("old"), taint("stays", "example.com/other"))
        await applied(op, taint("old"), taint("stays", "example.com/other"))
    if lost == "status":
        wiped = {"status": {"appliedNodeTaints": None, "conditions": None}}
        await op.change(SCHEDULED_MACHINES, "worker", wiped, subresource="status")
    else:
        note = {"metadata": {"annotations": {names.ANNOTATION_APPLIED_TAINTS: None}}}
        await workload.client.patch(NODES, node, note)
    await workload.client.patch(NODES, node, {"spec": {"taints": [*await taints_of(workload, node), ADMINS]}})
    await op.edit_spec("worker", nodeTaints=[taint("stays", "example.com/other")])

    async with operating(management, namespace, NINE) as op:
        seen = await has_taints(workload, node, ADMINS, taint("stays", "example.com/other"))
        await applied(op, taint("stays", "example.com/other"))
        assert "stays" in seen["metadata"]["annotations"][names.ANNOTATION_APPLIED_TAINTS]


def has_observed(edits: int, status: dict[str, Any]) -> bool:
    return bool(status["observedGeneration"] > edits)


async def test_writers_at_the_same_time_lose_nothing(op: Operator, workload: WorkloadSide) -> None:
    node = await in_service(op, taint("0"))
    await applied(op, taint("0"))
    writers = [asyncio.create_task(write(workload, node, f"writer-{n}.example", times=20)) for n in range(8)]
    turn = 0
    while not all(writer.done() for writer in writers):
        turn += 1
        await op.edit_spec("worker", nodeTaints=[taint(str(turn))])
        await op.until("worker", partial(has_observed, turn))
    await asyncio.gather(*writers)

    await applied(op, taint(str(turn)))
    theirs = [taint(None, f"writer-{n}.example/{i}") for n in range(8) for i in range(20)]
    await has_taints(workload, node, *theirs, taint(str(turn)))
    assert turn > 2, "the operator wrote nothing meanwhile"


async def write(workload: WorkloadSide, node: str, name: str, *, times: int) -> None:
    """A client that appends one taint after the other."""
    done = 0
    while done < times:
        append = {"op": "add", "path": "/spec/taints/-", "value": taint(None, f"{name}/{done}")}
        try:
            await workload.client.patch(NODES, node, [append], kind=PatchKind.JSON, field_manager=name)
        except Conflict:
            continue
        done += 1
