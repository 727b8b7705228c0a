"""Reporting: every field of the status, conditions by convention, one Event for each cause, no writes at rest."""

import asyncio
import json
from asyncio.subprocess import PIPE

import pytest

from crds import names
from local.binaries import Assets
from local.plane import ControlPlane
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.resource import SCHEDULED_MACHINES
from service.kube.transport import Call
from service.runtime.key import Key
from tests.e2e.manifests import EIGHT, MINUTE, NINE, SIX, condition, is_soon_after, machine, moment, says
from tests.e2e.operator import Operator
from tests.e2e.workload import WorkloadSide


async def test_rule_6_creates_three_objects_with_the_spec_that_the_user_wrote(op: Operator) -> None:
    exotic = {"list": [1, "1", None, {"deep": 1.5}], "empty": {}, "yes": True, "unicode": "Zürich ☃"}
    await op.apply(machine(infrastructure={"anything": exotic}, machineTemplate={"labels": {"team": "blue"}}))
    status = await op.ready("worker")

    children = await op.children("worker")
    assert children["infra"]["spec"]["anything"] == {**exotic, "list": [1, "1", None, {"deep": 1.5}]}
    assert children["bootstrap"]["spec"] == {"version": "v1.30.0+k0s.0"}
    labels = {names.LABEL_CLUSTER_NAME: "demo", names.LABEL_OWNER: "worker", names.LABEL_MANAGED_BY: "5spot"}
    assert all(labels.items() <= child["metadata"]["labels"].items() for child in children.values())
    me = (await op.get("worker"))["metadata"]["uid"]
    assert {end: owners(child, me) for end, child in children.items()} == {
        "machine": {"ScheduledMachine": True, "Cluster": False},
        "bootstrap": {"ScheduledMachine": False, "Machine": True},
        "infra": {"ScheduledMachine": False, "Machine": True},
    }
    writes = [(call.verb, call.resource) for call in op.calls if call.verb in ("create", "patch")]
    first_child = writes.index(("create", BOOTSTRAPS.plural))
    assert ("patch", SCHEDULED_MACHINES.plural) in writes[:first_child], "the finalizer comes before the first child"
    assert names.FINALIZER in (await op.get("worker"))["metadata"]["finalizers"]
    for ref, end in (("machineRef", "machine"), ("bootstrapRef", "bootstrap"), ("infrastructureRef", "infra")):
        assert status[ref]["uid"] == children[end]["metadata"]["uid"]


def owners(child: dict[str, dict[str, list[dict[str, object]]]], me: str) -> dict[object, bool]:
    found = child["metadata"]["ownerReferences"]
    assert me in [one["uid"] for one in found]
    return {one["kind"]: bool(one.get("controller")) for one in found}


async def test_every_field_of_the_status_is_maintained(op: Operator, workload: WorkloadSide) -> None:
    op.clock.move_to(EIGHT)
    await op.apply(machine())
    status = await op.phase("worker", "Inactive", "OutsideSchedule")
    assert (status["inSchedule"], status["nextActivation"]) == (False, "2026-03-06T09:00:00Z")
    assert not {"nextCleanup", "lastScheduledTime", "machinePhase", "machineRef", "nodeRef"} & status.keys()

    op.clock.move_to(NINE)
    status = await op.ready("worker")
    node = await workload.node(status["nodeRef"]["name"])
    assert is_soon_after(status["lastScheduledTime"], NINE)
    assert (status["inSchedule"], status["nextCleanup"]) == (True, "2026-03-06T18:00:00Z")
    assert status["nextActivation"] == "2026-03-09T09:00:00Z"
    assert status["message"] == f"Machine is running as Node {node['metadata']['name']}."
    assert (status["machinePhase"], status["nodeRef"]["uid"]) == ("Running", node["metadata"]["uid"])
    assert status["providerID"] == node["spec"]["providerID"]
    for kind in ("Ready", "Scheduled", "MachineReady", "ReferencesValid", "UpToDate"):
        assert says(status, kind, "True"), kind

    edited = await op.edit_spec("worker", machineTemplate={"labels": {"team": "blue"}})
    generation = edited["metadata"]["generation"]
    later = await op.until("worker", lambda status: status["observedGeneration"] == generation)
    assert {one["observedGeneration"] for one in later["conditions"]} == {generation}
    flips = [{one["type"]: one["lastTransitionTime"] for one in seen["conditions"]} for seen in (status, later)]
    assert flips[0] == flips[1]

    await op.hold(HOSTS, "worker-infra")
    op.clock.move_to(SIX)
    status = await op.until("worker", lambda status: status["machinePhase"] == "Deleting")
    assert status["phase"] == "ShuttingDown"
    assert is_soon_after(status["shutdownStartedAt"], SIX)
    assert moment(status["nextCleanup"]) == moment(status["shutdownStartedAt"]) + 5 * MINUTE
    assert is_soon_after(condition(status, "Ready")["lastTransitionTime"], SIX)
    await op.let_go(HOSTS, "worker-infra")
    await op.phase("worker", "Inactive")


async def test_each_event_of_a_day_is_emitted_once(op: Operator) -> None:
    await op.apply(machine())
    await op.ready("worker")
    for _ in range(3):
        op.controller.queue.add(Key(op.namespace, "worker"))
        await op.at_rest()
    op.clock.move_to(SIX)
    await op.phase("worker", "Inactive")
    await op.childless("worker")
    assert await op.events("worker") == {
        "ScheduleActivated": 1,
        "MachineCreated": 1,
        "MachineReady": 1,
        "ScheduleDeactivated": 1,
        "ShutdownStarted": 1,
        "NodeDrained": 1,
        "MachineDeleted": 1,
        "MachineRemoved": 1,
    }


async def test_at_rest_nothing_is_asked_and_nothing_is_written(op: Operator) -> None:
    await op.apply(machine())
    await op.apply(machine("idle", schedule={"hoursOfDay": ["20"]}))
    await op.ready("worker")
    await op.phase("idle", "Inactive")
    await op.at_rest()
    for _ in range(5):
        before = await versions(op)
        asked = await asked_unasked(op)
        after = await versions(op)
        if before[1:] == after[1:]:
            break  # otherwise Cluster API was not at rest yet
    assert asked == []
    assert before == after


async def versions(op: Operator) -> list[str]:
    """Of the ScheduledMachine and of its three objects."""
    seen = [await op.get("worker"), *(await op.children("worker")).values()]
    return [raw["metadata"]["resourceVersion"] for raw in seen]


async def asked_unasked(op: Operator) -> list[Call]:
    """The calls of passes over all objects while nothing changes."""
    asked = list[Call]()
    # Kinds that were new a moment ago are looked up once more; that ends by itself.
    op.on_call = lambda call: None if call.resource == "discovery" else asked.append(call)
    for name in ("worker", "idle", "worker", "idle"):
        op.controller.queue.add(Key(op.namespace, name))
        await op.at_rest()
    await asyncio.sleep(3)
    return asked


async def kubectl(assets: Assets, plane: ControlPlane, *arguments: str, manifest: object = None) -> str:
    process = await asyncio.create_subprocess_exec(
        str(assets.kubectl), f"--kubeconfig={plane.management.kubeconfig}", *arguments, stdin=PIPE, stdout=PIPE
    )
    given = json.dumps(manifest).encode() if manifest else None
    output, _ = await process.communicate(given)
    assert process.returncode == 0
    return output.decode()


async def test_kubectl_get_sm_fits_a_terminal(op: Operator, assets: Assets, plane: ControlPlane) -> None:
    await op.apply(machine("business-hours-worker"))
    await op.ready("business-hours-worker")
    await op.hold(HOSTS, "business-hours-worker-infra")
    op.clock.move_to(SIX)
    await op.phase("business-hours-worker", "ShuttingDown", "DeletingMachine")

    table = await kubectl(assets, plane, "get", "sm", "-n", op.namespace)
    header, row = table.splitlines()
    assert header.split() == ["NAME", "PHASE", "READY", "REASON", "SCHEDULE", "NEXT", "AGE"]
    assert row.split()[:4] == ["business-hours-worker", "ShuttingDown", "False", "DeletingMachine"]
    assert "mon-fri 9-17 UTC" in row
    assert "opens Mon 09:00" in row
    assert max(len(line) for line in table.splitlines()) <= 120
    await op.let_go(HOSTS, "business-hours-worker-infra")


@pytest.mark.parametrize("how", [("--server-side", "--field-manager=argocd-controller", "--force-conflicts"), ()])
async def test_the_finalizer_survives_repeated_apply(
    op: Operator, assets: Assets, plane: ControlPlane, how: tuple[str, ...]
) -> None:
    body = machine(infrastructure={"address": f"worker.{op.namespace}"})
    apply = ("apply", *how, "-n", op.namespace, "-f", "-")
    await kubectl(assets, plane, *apply, manifest=body)
    uid = (await op.ready("worker"))["machineRef"]["uid"]

    for priority in (60, 70):
        body["spec"]["priority"] = priority
        await kubectl(assets, plane, *apply, manifest=body)
        await kubectl(assets, plane, *apply, manifest=body)
    seen = await op.get("worker")
    assert names.FINALIZER in seen["metadata"]["finalizers"]
    await op.until("worker", lambda status: status["observedGeneration"] == seen["metadata"]["generation"])
    assert (await op.read(MACHINES, "worker-machine"))["metadata"]["uid"] == uid
