"""Rule 0 of docs/lifecycle.md: while a pause is requested, the controller writes only the status."""

from collections.abc import Awaitable, Callable

import pytest

from crds import names
from local.provider.kinds import CLUSTERS
from service.kube.resource import SCHEDULED_MACHINES
from tests.e2e.manifests import SIX, condition, machine, says
from tests.e2e.operator import Operator

Pause = Callable[[Operator, bool], Awaitable[object]]


async def annotate(op: Operator, paused: bool) -> None:
    await op.edit("worker", {"metadata": {"annotations": {names.ANNOTATION_PAUSED: "" if paused else None}}})


async def pause_cluster(op: Operator, paused: bool) -> None:
    await op.change(CLUSTERS, "demo", {"spec": {"paused": paused}})


@pytest.mark.parametrize("pause", [annotate, pause_cluster])
async def test_rule_0_nothing_is_touched_while_paused(op: Operator, pause: Pause) -> None:
    await op.apply(machine())
    await op.ready("worker")
    await pause(op, True)
    status = await op.until("worker", lambda status: says(status, "Paused", "True"))
    assert status["phase"] == "Active"
    assert says(status, "Ready", "True")
    op.calls.clear()

    op.clock.move_to(SIX)
    status = await op.until("worker", lambda status: status["inSchedule"] is False)
    assert (status["phase"], condition(status, "Paused")["status"]) == ("Active", "True")
    written = {call.resource for call in op.calls if call.verb not in ("get", "list", "watch")}
    assert written <= {SCHEDULED_MACHINES.plural, "events"}

    await pause(op, False)
    status = await op.phase("worker", "Inactive")
    assert not condition(status, "Paused")
    await op.childless("worker")


@pytest.mark.parametrize("pause", [annotate, pause_cluster])
async def test_rule_0_deletion_waits_too_with_a_warning(op: Operator, pause: Pause) -> None:
    await op.apply(machine())
    await op.ready("worker")
    await pause(op, True)
    await op.until("worker", lambda status: says(status, "Paused", "True"))

    await op.delete("worker")
    status = await op.until("worker", lambda status: "deletion waits" in status["message"])
    assert status["phase"] == "Active"
    warnings = [event["reason"] for event in await op.event_objects("worker") if event["type"] == "Warning"]
    assert warnings == ["DeletionPaused"]

    await pause(op, False)
    await op.gone("worker")
    await op.childless("worker")
