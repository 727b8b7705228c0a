"""Where others interfere: what is ours is put right, what is theirs is left alone and reported."""

from typing import Any

import pytest

from crds import names
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.client import Client
from tests.e2e.manifests import MINUTE, MONDAY_NINE, NINE, SIX, condition, machine, says
from tests.e2e.operator import CHILDREN, Operator, operating

Raw = dict[str, Any]


def owners(raw: Raw) -> set[tuple[str, bool]]:
    return {(one["kind"], bool(one.get("controller"))) for one in raw["metadata"].get("ownerReferences") or ()}


async def test_a_machine_deleted_inside_the_window_comes_back(op: Operator) -> None:
    await op.apply(machine())
    old = (await op.ready("worker"))["machineRef"]["uid"]

    await op.remove(MACHINES, "worker-machine")
    status = await op.until("worker", lambda status: status.get("machineRef", {}).get("uid") not in (None, old))
    assert (await op.ready("worker"))["machineRef"] == status["machineRef"]
    assert (await op.events("worker"))["MachineCreated"] == 2


async def test_owned_labels_timeouts_and_owner_references_are_put_right(op: Operator) -> None:
    await op.apply(machine(machineTemplate={"labels": {"team": "blue"}}))
    await op.ready("worker")
    spoiled = {
        "metadata": {"labels": {names.LABEL_MANAGED_BY: "another-client", "team": "red"}, "ownerReferences": []},
        "spec": {"deletion": {"nodeDrainTimeoutSeconds": 0}},
    }
    await op.change(MACHINES, "worker-machine", spoiled)
    await op.change(HOSTS, "worker-infra", {"metadata": {"labels": {names.LABEL_MANAGED_BY: None}}})
    await op.change(BOOTSTRAPS, "worker-bootstrap", {"metadata": {"labels": {names.LABEL_OWNER: None}}})

    def mended(raw: Raw) -> bool:
        labels = raw["metadata"]["labels"]
        return labels.get(names.LABEL_MANAGED_BY) == names.MANAGED_BY and labels.get(names.LABEL_OWNER) == "worker"

    seen = await op.until_object(
        MACHINES, "worker-machine", lambda raw: mended(raw) and raw["spec"]["deletion"]["nodeDrainTimeoutSeconds"]
    )
    assert seen["metadata"]["labels"]["team"] == "blue"
    assert seen["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 300
    assert owners(seen) == {("ScheduledMachine", True), ("Cluster", False)}
    await op.until_object(HOSTS, "worker-infra", mended)
    await op.until_object(BOOTSTRAPS, "worker-bootstrap", mended)
    assert (await op.events("worker"))["DriftRepaired"] >= 3
    assert (await op.ready("worker"))["phase"] == "Active"


async def test_a_provider_spec_that_a_user_changed_is_reported_and_left_alone(op: Operator) -> None:
    await op.apply(machine())
    await op.ready("worker")
    await op.change(HOSTS, "worker-infra", {"spec": {"port": 2222}})

    status = await op.until("worker", lambda status: says(status, "UpToDate", "False", "ProviderSpecChanged"))
    assert "spec.port" in condition(status, "UpToDate")["message"]
    assert (await op.read(HOSTS, "worker-infra"))["spec"]["port"] == 2222


async def foreign(op: Operator, end: str) -> Raw:
    """An object of another owner under a name that the controller needs."""
    resource = CHILDREN[end]
    refs = {
        "clusterName": "demo",
        "bootstrap": {"dataSecretName": "none"},
        "infrastructureRef": {"apiGroup": HOSTS.group, "kind": HOSTS.kind, "name": "none"},
    }
    theirs = {**resource.envelope(), "metadata": {"name": f"worker-{end}"}, "spec": refs if end == "machine" else {}}
    return await op.client.create(resource, theirs, namespace=op.namespace, field_manager="another-client")


@pytest.mark.parametrize("end", CHILDREN)
async def test_a_foreign_object_of_the_same_name_is_never_adopted_or_deleted(op: Operator, end: str) -> None:
    theirs = await foreign(op, end)
    await op.apply(machine())
    status = await op.phase("worker", "Error", "ForeignObject")
    assert says(status, "ReferencesValid", "False", "ForeignObject")
    assert f"worker-{end}" in status["message"]
    assert f"{'infrastructure' if end == 'infra' else end}Ref" not in status

    await op.delete("worker")
    await op.gone("worker")
    seen = await op.read(CHILDREN[end], f"worker-{end}")
    assert seen["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert "deletionTimestamp" not in seen["metadata"]
    assert not any(kind == names.KIND for kind, _ in owners(seen))


@pytest.mark.parametrize("end", CHILDREN)
async def test_a_foreign_object_that_goes_makes_way(op: Operator, end: str) -> None:
    await foreign(op, end)
    await op.apply(machine())
    await op.phase("worker", "Error", "ForeignObject")
    await op.edit_spec("worker", priority=60)
    await op.until("worker", lambda status: status["observedGeneration"] == 2)
    await op.at_rest()

    await op.remove(CHILDREN[end], f"worker-{end}")
    await op.absent(CHILDREN[end], f"worker-{end}")
    op.controller.queue.retry_failed(0.1)  # no watch reports its deletion: the back-off would notice it
    await op.ready("worker")
    assert (await op.events("worker"))["ForeignObject"] == 1


async def test_a_failed_machine_is_an_error_with_its_message_and_replaced_when_the_spec_is_edited(op: Operator) -> None:
    await op.apply(machine(infrastructure={"simulate": {"failure": "InvalidConfiguration"}}))
    status = await op.phase("worker", "Error")
    assert status["machinePhase"] == "Failed"
    assert "invalid configuration" in status["message"]
    assert says(status, "MachineReady", "False", condition(status, "Ready")["reason"])
    failed = status["machineRef"]["uid"]

    await op.edit_spec("worker", infrastructureSpec={"spec": {"simulate": None}})
    status = await op.ready("worker")
    assert status["machineRef"]["uid"] != failed


async def test_a_failed_machine_stays_inside_the_window_and_is_removed_at_its_end(op: Operator) -> None:
    await op.apply(machine(infrastructure={"simulate": {"failure": "InvalidConfiguration"}}))
    failed = (await op.phase("worker", "Error"))["machineRef"]["uid"]
    op.clock.advance(60 * MINUTE)
    await op.at_rest()
    assert (await op.read(MACHINES, "worker-machine"))["metadata"]["uid"] == failed

    op.clock.move_to(SIX)
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_infrastructure_that_vanished_is_never_recreated_under_the_same_machine(op: Operator) -> None:
    await op.apply(machine())
    await op.ready("worker")
    await op.remove(HOSTS, "worker-infra")
    await op.absent(HOSTS, "worker-infra")

    status = await op.phase("worker", "Error", "InfrastructureGone")
    assert status["machinePhase"] == "Failed"
    op.calls.clear()
    await op.edit_spec("worker", priority=60)
    await op.until("worker", lambda status: status["observedGeneration"] == 2)
    await op.at_rest()
    assert not [call for call in op.calls if call.verb == "create" and call.resource == HOSTS.plural]
    op.clock.move_to(SIX)
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_one_host_is_never_given_to_two(op: Operator) -> None:
    host = {"address": f"shared.{op.namespace}"}
    await op.apply(machine("first", infrastructure=host))
    await op.ready("first")
    await op.apply(machine("second", infrastructure=host))
    status = await op.phase("second", "Pending", "HostConflict")
    assert says(status, "HostConflict", "True")
    assert "ScheduledMachine first" in condition(status, "HostConflict")["message"]
    assert "machineRef" not in status

    await op.delete("first")
    await op.gone("first")
    status = await op.ready("second")
    assert not condition(status, "HostConflict")


async def test_a_host_is_not_given_away_by_an_edit_while_its_machine_runs(op: Operator) -> None:
    host, other = ({"address": f"{name}.{op.namespace}"} for name in ("old", "new"))
    await op.apply(machine("first", infrastructure=host))
    await op.ready("first")
    await op.edit_spec("first", infrastructureSpec={"spec": other})
    await op.until("first", lambda status: says(status, "UpToDate", "False"))
    await op.apply(machine("second", infrastructure=host))
    status = await op.phase("second", "Pending", "HostConflict")
    assert "ScheduledMachine first" in condition(status, "HostConflict")["message"]

    await op.edit_spec("first", killSwitch=True)
    await op.phase("first", "Terminated", "KillSwitch")
    await op.ready("second")


async def test_an_invalid_spec_blocks_creation_but_its_schedule_still_removes(
    management: Client, namespace: str
) -> None:
    """Stored before a rule existed: the operator comes back with stricter settings."""
    async with operating(management, namespace, NINE) as op:
        await op.apply(machine())
        await op.ready("worker")
    async with operating(management, namespace, NINE, bootstrap_groups=("k0smotron.io",)) as op:
        status = await op.phase("worker", "Error", "InvalidSpec")
        assert "spec.bootstrapSpec.apiVersion" in status["message"]
        assert status["machinePhase"] == "Running"
        op.clock.move_to(SIX)
        await op.childless("worker")
        await op.phase("worker", "Error", "InvalidSpec")
        op.clock.move_to(MONDAY_NINE)
        await op.until("worker", lambda status: status["inSchedule"])
        emitted = await op.events("worker")
        assert (emitted["InvalidSpec"], emitted["MachineCreated"]) == (1, 1)


async def test_a_schedule_that_cannot_be_read_keeps_what_runs_with_a_warning(op: Operator) -> None:
    """Only the webhook knows which time zones exist."""
    await op.apply(machine())
    uid = (await op.ready("worker"))["machineRef"]["uid"]
    await op.edit_spec("worker", schedule={"timezone": "Mars/Olympus"})
    status = await op.phase("worker", "Error", "InvalidSpec")
    assert says(status, "Scheduled", "Unknown")
    op.clock.move_to(SIX)
    await op.at_rest()
    assert (await op.read(MACHINES, "worker-machine"))["metadata"]["uid"] == uid
    warned = [event for event in await op.event_objects("worker") if event["type"] == "Warning"]
    assert [event["reason"] for event in warned] == ["InvalidSpec"]

    await op.edit_spec("worker", schedule={"timezone": "UTC"})
    await op.phase("worker", "Inactive")
