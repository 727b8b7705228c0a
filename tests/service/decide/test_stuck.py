from datetime import UTC, datetime, timedelta
from typing import Any

from crds.status import Condition, ObjectReference, Phase, ScheduledMachineStatus
from service.decide.reasons import Reason
from service.decide.report import report_failed_read
from service.decide.world import Problem

NOW = datetime(2026, 3, 6, 9, tzinfo=UTC)
FORBIDDEN = Problem(reason=Reason.FORBIDDEN, message="list remotemachines: not permitted")
MACHINE = ObjectReference(api_version="cluster.x-k8s.io/v1beta2", kind="Machine", name="m", namespace="ns", uid="u")


def test_what_cannot_be_seen_is_an_error_that_says_why() -> None:
    status = report_failed_read(ScheduledMachineStatus(), FORBIDDEN, 3, NOW)
    (ready,) = status.conditions
    assert status.phase is Phase.ERROR
    assert status.message == FORBIDDEN.message
    assert (ready.type, ready.status, ready.reason, ready.observed_generation) == ("Ready", "False", "Forbidden", 3)


def test_a_running_machine_keeps_its_phase_while_it_cannot_be_observed() -> None:
    before = ScheduledMachineStatus(phase=Phase.ACTIVE, machine_ref=MACHINE)
    status = report_failed_read(before, FORBIDDEN, 3, NOW)
    assert status.phase is Phase.ACTIVE
    assert status.machine_ref == MACHINE


def test_ready_changes_when_observing_fails_and_keeps_that_transition_time() -> None:
    since = NOW - timedelta(hours=1)
    fine: dict[str, Any] = {
        "status": "True",
        "reason": "Fine",
        "message": "All is well.",
        "last_transition_time": since,
    }
    before = ScheduledMachineStatus(
        phase=Phase.ACTIVE,
        machine_ref=MACHINE,
        conditions=(Condition(type="Scheduled", **fine), Condition(type="Ready", **fine)),
    )
    first = report_failed_read(before, FORBIDDEN, 3, NOW)
    later = report_failed_read(
        first, Problem(reason=Reason.INVALID, message="cannot be read"), 3, NOW + timedelta(minutes=1)
    )
    for status, reason in ((first, "Forbidden"), (later, "Invalid")):
        conditions = {one.type: one for one in status.conditions}
        assert (conditions["Ready"].reason, conditions["Ready"].message) == (reason, status.message)
        assert (conditions["Ready"].last_transition_time, conditions["Scheduled"].last_transition_time) == (NOW, since)


def test_being_stuck_for_long_changes_nothing_any_more() -> None:
    once = report_failed_read(ScheduledMachineStatus(), FORBIDDEN, 3, NOW)
    assert report_failed_read(once, FORBIDDEN, 3, NOW + timedelta(hours=1)) == once
