"""Order in a crowd, on real servers: no more than the limit on the way, the rest in order, nobody polls."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from crds import names
from local.provider.kinds import CLUSTERS, MACHINES
from service.decide.turns import Queueing
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from tests.e2e.manifests import MINUTE, NINE, SIX, condition, machine
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

Raw = dict[str, Any]
NEVER_JOINS = {"simulate": {"failure": "NodeNeverJoins"}}
CLOSED = {"daysOfWeek": ["mon"], "hoursOfDay": ["9"]}


@pytest.fixture
async def op(management: Client, namespace: str) -> AsyncIterator[Operator]:
    async with operating(management, namespace, NINE, max_provisioning=1, max_draining=1) as operator:
        yield operator


async def names_of_machines(op: Operator) -> set[str]:
    return {one["metadata"]["name"] for one in await op.client.list(MACHINES, namespace=op.namespace)}


async def limit(op: Operator, text: str) -> None:
    body = {"metadata": {"annotations": {names.ANNOTATION_MAX_PROVISIONING: text}}}
    await op.change(CLUSTERS, "demo", body)


async def waits(op: Operator, name: str) -> Raw:
    return await op.until(name, lambda status: condition(status, "Ready").get("reason") == "WaitingForTurn")


async def test_one_after_the_other_by_priority_and_the_next_is_woken_by_the_one_before(op: Operator) -> None:
    await op.apply(machine("stuck", infrastructure=NEVER_JOINS))
    await op.phase("stuck", "Active")
    await op.apply(machine("low", priority=10))
    low = await waits(op, "low")
    await op.apply(machine("high", priority=250))
    high = await waits(op, "high")
    assert (low["phase"], high["phase"]) == ("Pending", "Pending")
    assert "and this one is next" in low["message"], "it was, until the other came"
    assert "and this one is next" in high["message"]
    assert await names_of_machines(op) == {"stuck-machine"}
    assert low["waitingSince"]

    # After provisioningTimeout the machine that never joins does not count any more.
    op.clock.advance(16 * MINUTE)
    first = await op.ready("high")
    second = await op.ready("low")
    assert first["lastScheduledTime"] <= second["lastScheduledTime"]
    assert "waitingSince" not in second
    assert first["firstReadyTime"] <= second["lastScheduledTime"], "the second was created when the first was Ready"


async def test_a_machine_that_waits_makes_no_request(op: Operator) -> None:
    await op.apply(machine("stuck", infrastructure=NEVER_JOINS))
    await op.phase("stuck", "Active")
    for number in range(3):
        await op.apply(machine(f"waits-{number}"))
        await waits(op, f"waits-{number}")
    await op.at_rest()
    for _ in range(3):  # Cluster API may still say something new about the one that is on the way
        op.calls.clear()
        passes = op.controller.queue.depth
        op.clock.advance(4 * MINUTE)
        await op.at_rest()
        written = [call for call in op.calls if call.verb not in ("get", "list", "watch")]
        if not written and passes == 0:
            break
    assert (written, passes) == ([], 0)
    assert op.controller.crowds.waiting(Queueing.PROVISIONING) == 3


async def test_a_raised_limit_on_the_cluster_acts_at_once(op: Operator) -> None:
    await op.apply(machine("stuck", infrastructure=NEVER_JOINS))
    await op.phase("stuck", "Active")
    await op.apply(machine("waiting"))
    await waits(op, "waiting")
    await limit(op, "2")
    await op.ready("waiting")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ({"metadata": {"annotations": {names.ANNOTATION_PAUSED: ""}}}, "Paused"),
        ({"metadata": {"annotations": {names.ANNOTATION_DRY_RUN: "true"}}}, "NothingToDo"),
        ({"spec": {"schedule": {"enabled": False}}}, "Disabled"),
    ],
)
async def test_a_machine_that_is_kept_from_its_service_does_not_keep_its_turn_for_ever(
    op: Operator, edit: Raw, reason: str
) -> None:
    await op.apply(machine("stuck", infrastructure=NEVER_JOINS))
    await op.phase("stuck", "Active")
    await op.apply(machine("waiting"))
    await waits(op, "waiting")
    await op.edit("stuck", edit)
    await op.until("stuck", lambda status: any(one["reason"] == reason for one in status["conditions"]))
    await op.at_rest()
    op.clock.advance(14 * MINUTE)
    await op.at_rest()
    assert await names_of_machines(op) == {"stuck-machine"}
    op.clock.advance(2 * MINUTE)
    await op.ready("waiting")


async def test_a_limit_may_change_in_the_midst_and_what_is_no_number_is_ignored(op: Operator) -> None:
    await limit(op, "many")
    await op.apply(machine("stuck", infrastructure=NEVER_JOINS))
    await op.phase("stuck", "Active")
    await op.apply(machine("other", infrastructure=NEVER_JOINS))
    await waits(op, "other")
    await limit(op, " 2 ")
    await op.phase("other", "Active")
    await limit(op, "1")
    await op.apply(machine("waiting"))
    await waits(op, "waiting")
    await op.delete("stuck")
    await op.gone("stuck")
    await op.at_rest()
    assert await names_of_machines(op) == {"other-machine"}, "one is on the way still, and the limit is one"
    await limit(op, "0")
    await op.ready("waiting")


async def test_a_restart_counts_those_that_are_on_the_way(management: Client, namespace: str) -> None:
    async with operating(management, namespace, NINE, max_provisioning=1) as first:
        await first.apply(machine("stuck", infrastructure=NEVER_JOINS))
        await first.phase("stuck", "Active")
    async with operating(management, namespace, NINE + MINUTE, max_provisioning=1) as second:
        await second.apply(machine("new"))
        await waits(second, "new")
        assert await names_of_machines(second) == {"stuck-machine"}
        await second.delete("stuck")
        await second.ready("new")


async def test_a_machine_that_the_status_does_not_have_counts_after_a_restart(
    management: Client, namespace: str
) -> None:
    async with operating(management, namespace, NINE, max_provisioning=1) as first:
        await first.apply(machine("stuck", infrastructure=NEVER_JOINS))
        await first.phase("stuck", "Active")
    # As if the operator had died between the creation of the Machine and the status.
    raw = await management.get(SCHEDULED_MACHINES, "stuck", namespace=namespace)
    await management.replace(
        SCHEDULED_MACHINES, "stuck", {**raw, "status": {}}, namespace=namespace, subresource="status"
    )
    async with operating(management, namespace, NINE + MINUTE, max_provisioning=1) as second:
        await second.apply(machine("new"))
        await waits(second, "new")
        assert await names_of_machines(second) == {"stuck-machine"}


async def test_closes_wait_for_their_turn_and_their_time_begins_with_it(op: Operator, workload: WorkloadSide) -> None:
    for name in ("one", "two"):
        await op.apply(machine(name, gracefulShutdownTimeout="10m", nodeDrainTimeout="10m"))
        await workload.occupy((await op.ready(name))["nodeRef"]["name"])
    op.clock.move_to(SIX)
    statuses = {name: await op.phase(name, "ShuttingDown") for name in ("one", "two")}
    await op.at_rest()
    statuses = {name: (await op.get(name))["status"] for name in statuses}
    waiting = [name for name, status in statuses.items() if "shutdownStartedAt" not in status]
    assert len(waiting) == 1
    last = waiting[0]
    first = "one" if last == "two" else "two"
    assert condition(statuses[last], "Ready")["reason"] == "WaitingForTurn"
    assert not (await workload.node(statuses[last]["nodeRef"]["name"]))["spec"].get("unschedulable")

    op.clock.advance(2 * MINUTE)
    await workload.vacate(statuses[first]["nodeRef"]["name"])
    started = await op.until(last, lambda status: status.get("shutdownStartedAt"))
    assert started["shutdownStartedAt"] >= (SIX + 2 * MINUTE).isoformat().replace("+00:00", "Z")


async def test_a_close_begins_without_a_turn_when_its_grace_is_over(op: Operator, workload: WorkloadSide) -> None:
    await op.apply(machine("slow", gracefulShutdownTimeout="1h", nodeDrainTimeout="1h"))
    await workload.occupy((await op.ready("slow"))["nodeRef"]["name"])
    await op.apply(machine("next"))
    await op.ready("next")
    await op.edit_spec("slow", schedule=CLOSED)
    await op.phase("slow", "ShuttingDown", "Draining")
    await op.edit_spec("next", schedule=CLOSED)
    await waits(op, "next")
    op.clock.advance(6 * MINUTE)
    await op.childless("next")
    assert (await op.get("slow"))["status"]["phase"] == "ShuttingDown"


async def test_deletion_and_kill_switch_do_not_wait(op: Operator, workload: WorkloadSide) -> None:
    for name in ("slow", "deleted", "killed"):
        await op.apply(machine(name, gracefulShutdownTimeout="1h", nodeDrainTimeout="1h"))
        await op.ready(name)
    await workload.occupy((await op.get("slow"))["status"]["nodeRef"]["name"])
    await op.edit_spec("slow", schedule=CLOSED)
    await op.phase("slow", "ShuttingDown", "Draining")
    await op.delete("deleted")
    await op.gone("deleted")
    await op.edit_spec("killed", killSwitch=True)
    await op.childless("killed")
