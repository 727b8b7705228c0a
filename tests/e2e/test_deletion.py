"""Rule 1 of docs/lifecycle.md: a machine leaves with its ScheduledMachine, however that is deleted; nothing hangs."""

import pytest

from crds import names
from local.provider.kinds import HOSTS, MACHINES
from service.kube.resource import SCHEDULED_MACHINES
from tests.e2e.manifests import EIGHT, MINUTE, NINE, machine, moment
from tests.e2e.operator import Operator
from tests.e2e.workload import WorkloadSide

COLLECTED = {"Foreground": "foregroundDeletion", "Background": None, "Orphan": "orphan"}
"""The finalizer with which the garbage collector marks that it has still to act."""


@pytest.mark.parametrize("cascade", COLLECTED)
async def test_rule_1_deletion_drains_first_and_leaves_nothing(
    op: Operator, workload: WorkloadSide, cascade: str
) -> None:
    await op.apply(machine())
    node = await workload.occupy((await op.ready("worker"))["nodeRef"]["name"])

    await op.delete("worker", cascade)
    await op.phase("worker", "ShuttingDown", "Draining")
    held = await op.until_object(
        SCHEDULED_MACHINES, "worker", lambda raw: COLLECTED[cascade] not in raw["metadata"]["finalizers"]
    )
    assert names.FINALIZER in held["metadata"]["finalizers"]
    leaving = [end for end, raw in (await op.children("worker")).items() if "deletionTimestamp" in raw["metadata"]]
    assert leaving == [], "taken away before the drain"

    await workload.vacate(node)
    await op.gone("worker")
    await op.childless("worker")
    await workload.node_gone(node)
    emitted = await op.events("worker")
    assert (emitted["ShutdownStarted"], emitted["NodeDrained"], emitted["MachineDeleted"]) == (1, 1, 1)


async def test_rule_1_an_object_without_a_machine_goes_at_once(op: Operator) -> None:
    op.clock.move_to(EIGHT)
    await op.apply(machine())
    await op.phase("worker", "Inactive")
    await op.hold(SCHEDULED_MACHINES, "worker", finalizers=(names.FINALIZER,))

    await op.delete("worker")
    await op.gone("worker")


async def test_rule_1_with_the_kill_switch_on_deletion_does_not_drain(op: Operator, workload: WorkloadSide) -> None:
    await op.apply(machine())
    node = await workload.occupy((await op.ready("worker"))["nodeRef"]["name"])
    await op.hold(HOSTS, "worker-infra")
    await op.edit_spec("worker", killSwitch=True)
    await op.phase("worker", "Terminated", "Terminating")

    await op.delete("worker")
    await op.phase("worker", "ShuttingDown")
    assert "deletionTimestamp" not in (await workload.pod(node))["metadata"], "it was evicted"
    await op.let_go(HOSTS, "worker-infra")
    await op.gone("worker")
    await op.childless("worker")


async def test_rule_1_ten_minutes_after_the_grace_it_is_let_go_with_a_warning(op: Operator) -> None:
    await op.apply(machine(gracefulShutdownTimeout="5m"))
    await op.ready("worker")
    await op.hold(HOSTS, "worker-infra")
    await op.delete("worker")
    await op.until_object(HOSTS, "worker-infra", lambda raw: "deletionTimestamp" in raw["metadata"])
    started = moment((await op.phase("worker", "ShuttingDown", "DeletingMachine"))["shutdownStartedAt"])
    assert NINE <= started < NINE + 10 * MINUTE

    op.clock.move_to(started + 12 * MINUTE)
    await op.at_rest()
    held = await op.get("worker")
    assert names.FINALIZER in held["metadata"]["finalizers"]
    assert "Machine worker-machine is being deleted" in held["status"]["message"]
    annotations = (await op.read(MACHINES, "worker-machine"))["metadata"]["annotations"]
    assert names.ANNOTATION_EXCLUDE_DRAIN in annotations, "its grace is up"
    op.clock.move_to(started + 16 * MINUTE)
    await op.gone("worker")
    warnings = [event for event in await op.event_objects("worker") if event["type"] == "Warning"]
    assert [event["reason"] for event in warnings] == ["FinalizerReleased"]
    assert "worker-infra" in warnings[0]["note"]
    await op.let_go(HOSTS, "worker-infra")
    await op.childless("worker")
