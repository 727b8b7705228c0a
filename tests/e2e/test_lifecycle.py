"""The rules of docs/lifecycle.md in their order, from creation to removal, on Cluster API's own controllers."""

from collections.abc import Iterable
from typing import Any

import pytest

from crds import names
from local import clusters
from local.crds import apply as install
from local.provider.kinds import CLUSTERS, HOSTS, MACHINES
from service.kube.client import Client
from service.kube.resource import Resource
from tests.e2e.manifests import EIGHT, MONDAY_NINE, NINE, SIX, is_soon_after, machine, says
from tests.e2e.operator import Operator, operating
from tests.e2e.scenes import back_in_service, being_deleted, shutting_down
from tests.e2e.workload import WorkloadSide

Raw = dict[str, Any]


# Rule 2


async def test_rule_2_the_kill_switch_removes_at_once_without_any_drain(op: Operator, workload: WorkloadSide) -> None:
    await op.apply(machine())
    status = await op.ready("worker")
    node = await workload.occupy(status["nodeRef"]["name"])
    await op.hold(HOSTS, "worker-infra")

    await op.edit_spec("worker", killSwitch=True)
    status = await op.phase("worker", "Terminated", "Terminating")
    assert status["machinePhase"] == "Deleting"
    await op.until_object(HOSTS, "worker-infra", lambda raw: "deletionTimestamp" in raw["metadata"])
    annotations = (await op.read(MACHINES, "worker-machine"))["metadata"]["annotations"]
    assert {names.ANNOTATION_EXCLUDE_DRAIN, names.ANNOTATION_EXCLUDE_VOLUME_DETACH} <= annotations.keys()
    assert "deletionTimestamp" not in (await workload.pod(node))["metadata"], "it was evicted"

    await op.let_go(HOSTS, "worker-infra")
    await op.phase("worker", "Terminated", "KillSwitch")
    await op.childless("worker")

    await op.edit_spec("worker", killSwitch=False)
    assert (await op.ready("worker"))["phase"] == "Active"
    emitted = await op.events("worker")
    assert (emitted["KillSwitch"], emitted["ScheduleResumed"], emitted["MachineCreated"]) == (1, 1, 2)


async def test_rule_2_the_kill_switch_hurries_a_machine_that_is_already_leaving(op: Operator) -> None:
    await op.apply(machine())
    await being_deleted(op)

    await op.edit_spec("worker", killSwitch=True)
    await op.phase("worker", "Terminated", "Terminating")
    seen = await op.read(MACHINES, "worker-machine")
    assert names.ANNOTATION_EXCLUDE_DRAIN in seen["metadata"]["annotations"]
    await op.let_go(HOSTS, "worker-infra")
    await op.childless("worker")


# Rule 4


async def test_rule_4_a_disabled_schedule_leaves_everything_as_it_is(op: Operator) -> None:
    await op.apply(machine())
    await op.ready("worker")
    before = await op.children("worker")

    await op.edit_spec("worker", schedule={"enabled": False})
    status = await op.phase("worker", "Disabled")
    assert "nextActivation" not in status
    op.clock.move_to(SIX)
    await op.until("worker", lambda status: status["inSchedule"] is False)
    assert {end: raw["metadata"]["uid"] for end, raw in (await op.children("worker")).items()} == {
        end: raw["metadata"]["uid"] for end, raw in before.items()
    }

    await op.edit_spec("worker", schedule={"enabled": True})
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_rule_4_disabling_abandons_a_shutdown_and_uncordons(op: Operator, workload: WorkloadSide) -> None:
    await op.apply(machine())
    node = await shutting_down(op, workload)

    await op.edit_spec("worker", schedule={"enabled": False})
    status = await op.phase("worker", "Disabled")
    await back_in_service(op, workload, node)
    assert "shutdownStartedAt" not in status
    assert status["machineRef"]["uid"] == (await op.read(MACHINES, "worker-machine"))["metadata"]["uid"]


async def test_rule_4_disabling_finishes_a_deletion_that_has_begun(op: Operator) -> None:
    await op.apply(machine())
    await being_deleted(op)

    await op.edit_spec("worker", schedule={"enabled": False})
    await op.phase("worker", "Disabled")
    await op.let_go(HOSTS, "worker-infra")
    await op.childless("worker")
    assert (await op.until("worker", lambda status: "machineRef" not in status))["phase"] == "Disabled"


# Rule 5


async def test_rule_5_nothing_is_created_without_a_cluster_and_all_leaves_with_it(op: Operator) -> None:
    await op.apply(machine(clusterName="later"))
    status = await op.phase("worker", "Inactive", "ClusterNotFound")
    assert says(status, "ReferencesValid", "False", "ClusterNotFound")

    await clusters.add(op.client, op.namespace, "later")
    status = await op.ready("worker")
    assert says(status, "ReferencesValid", "True")
    await op.hold(HOSTS, "worker-infra")

    await op.remove(CLUSTERS, "later")
    status = await op.phase("worker", "ShuttingDown", "ClusterDeleting")
    assert says(status, "ReferencesValid", "False", "ClusterDeleting")
    await op.let_go(HOSTS, "worker-infra")
    await op.childless("worker")
    await op.absent(CLUSTERS, "later")
    await op.phase("worker", "Inactive", "ClusterNotFound")


# Rule 6


def picky(suffix: str) -> tuple[Resource, Raw]:
    """A provider whose schema wants an address that is a string, and small letters for a token."""
    kind = f"Picky{suffix}Machine"
    resource = Resource(HOSTS.group, "v1beta1", f"{kind.lower()}s", kind)
    spec = {
        "type": "object",
        "required": ["address"],
        "properties": {"address": {"type": "string"}, "token": {"type": "string", "pattern": "^[a-z]+$"}},
        "x-kubernetes-preserve-unknown-fields": True,
    }
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": anything}}},
    }
    words = {"kind": kind, "plural": resource.plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return resource, {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.label, "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"}},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": words, "versions": [version]},
    }


async def test_rule_6_it_is_an_error_while_creation_fails_and_over_when_the_cause_is(op: Operator) -> None:
    resource, definition = picky(op.namespace.removeprefix("test-"))
    provider = {"apiVersion": resource.api_version, "kind": resource.kind}
    await op.apply(machine(infrastructureSpec={**provider, "spec": {"address": 5}}))
    status = await op.phase("worker", "Error", "ProviderNotFound")
    assert resource.kind in status["message"]
    assert says(status, "ReferencesValid", "False", "ProviderNotFound")

    await install(op.client, definition)
    status = await op.phase("worker", "Error", "ProviderRejected")
    assert "spec.address" in status["message"]

    await op.edit_spec("worker", infrastructureSpec={"spec": {"address": "10.0.0.1"}})
    status = await op.phase("worker", "Active", "MachineProvisioning")
    assert says(status, "ReferencesValid", "True")
    assert status["infrastructureRef"]["kind"] == resource.kind
    warnings = [event["reason"] for event in await op.event_objects("worker") if event["type"] == "Warning"]
    assert warnings == ["ProviderNotFound", "ProviderRejected"]


# Leaving, cancelling


async def test_leaving_a_window_that_reopens_waits_until_the_old_machine_is_gone(op: Operator) -> None:
    await op.apply(machine())
    await being_deleted(op)
    old = (await op.children("worker"))["machine"]["metadata"]["uid"]

    op.clock.move_to(MONDAY_NINE)
    status = await op.phase("worker", "Pending", "WaitingForPreviousMachine")
    assert status["machineRef"]["uid"] == old
    assert "tests.example/hold" in (await op.read(HOSTS, "worker-infra"))["metadata"]["finalizers"]

    await op.let_go(HOSTS, "worker-infra")
    status = await op.ready("worker")
    assert status["machineRef"]["uid"] != old


@pytest.mark.parametrize("cause", ["the next window opens", "the schedule is edited"])
async def test_cancelled_shutdown_uncordons_and_returns_to_active(
    op: Operator, workload: WorkloadSide, cause: str
) -> None:
    await op.apply(machine())
    node = await shutting_down(op, workload)
    assert is_soon_after((await op.get("worker"))["status"]["shutdownStartedAt"], SIX)

    if cause == "the next window opens":
        op.clock.move_to(MONDAY_NINE)
    else:
        await op.edit_spec("worker", schedule={"hoursOfDay": ["9-20"]})
    status = await op.ready("worker")
    assert status["phase"] == "Active"
    assert "shutdownStartedAt" not in status
    await back_in_service(op, workload, node)


# Edits while a Machine exists


async def test_edits_of_the_provider_specs_apply_at_the_next_creation_and_others_in_place(op: Operator) -> None:
    await op.apply(machine(machineTemplate={"labels": {"team": "blue", "rack": "7"}}))
    assert says(await op.ready("worker"), "UpToDate", "True")
    before = await op.read(MACHINES, "worker-machine")

    await op.edit_spec(
        "worker",
        infrastructureSpec={"spec": {"port": 2222}},
        machineTemplate={"labels": {"team": "green", "rack": None}, "annotations": {"example.com/note": "new"}},
        nodeDrainTimeout="90s",
    )
    status = await op.until("worker", lambda status: says(status, "UpToDate", "False", "AppliesAtNextCreation"))
    assert status["phase"] == "Active"
    seen = await op.until_object(MACHINES, "worker-machine", lambda raw: raw["metadata"]["labels"]["team"] == "green")
    assert seen["metadata"]["uid"] == before["metadata"]["uid"]
    assert "rack" not in seen["metadata"]["labels"]
    assert seen["metadata"]["annotations"]["example.com/note"] == "new"
    assert seen["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
    assert (await op.read(HOSTS, "worker-infra"))["spec"]["port"] == 22

    op.clock.move_to(SIX)
    await op.phase("worker", "Inactive")
    op.clock.move_to(MONDAY_NINE)
    assert says(await op.ready("worker"), "UpToDate", "True")
    assert (await op.read(HOSTS, "worker-infra"))["spec"]["port"] == 2222


# Priority


async def test_higher_priorities_come_first_and_lower_ones_leave_first_also_after_a_start(
    management: Client, namespace: str
) -> None:
    """They become due while no operator runs, so that all are due when one starts."""
    priorities = {"usual": 50, "high": 200, "low": 0}
    async with operating(management, namespace, EIGHT) as op:
        for name, priority in priorities.items():
            await op.apply(machine(name, priority=priority))
        for name in priorities:
            await op.phase(name, "Inactive")
    async with operating(management, namespace, NINE, workers=1) as op:
        for name in priorities:
            await op.ready(name)
        assert await in_order(op, priorities, "MachineCreated") == ["high", "usual", "low"]
    async with operating(management, namespace, SIX, workers=1) as op:
        for name in priorities:
            await op.phase(name, "Inactive")
        assert await in_order(op, priorities, "ShutdownStarted") == ["low", "usual", "high"]


async def in_order(op: Operator, those: Iterable[str], reason: str) -> list[str]:
    """When each object got an Event of that reason."""
    emitted = {name: await op.event_objects(name) for name in those}
    times = {name: event["eventTime"] for name in emitted for event in emitted[name] if event["reason"] == reason}
    return sorted(times, key=lambda name: times[name])
