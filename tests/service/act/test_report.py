from datetime import UTC, datetime

from crds.status import Condition, ObjectReference, Phase, ScheduledMachineStatus
from service.act.report import status_changes

SIX = datetime(2026, 3, 6, 18, tzinfo=UTC)
READY = Condition(type="Ready", status="True", reason="MachineRunning", message="", last_transition_time=SIX)
BEFORE = ScheduledMachineStatus(phase=Phase.ACTIVE, message="fine", shutdown_started_at=SIX, conditions=(READY,))


def test_nothing_is_written_when_nothing_changed():
    assert status_changes(BEFORE, BEFORE.model_copy()) == {}


def test_only_what_differs_is_written():
    assert status_changes(BEFORE, BEFORE.model_copy(update={"message": "better"})) == {"message": "better"}


def test_a_field_that_does_not_apply_any_more_is_removed_from_the_status():
    assert status_changes(BEFORE, BEFORE.model_copy(update={"shutdown_started_at": None})) == {
        "shutdownStartedAt": None
    }


def test_a_list_is_written_whole():
    after = BEFORE.model_copy(update={"conditions": (READY, READY.model_copy(update={"type": "Scheduled"}))})
    assert [one["type"] for one in status_changes(BEFORE, after)["conditions"]] == ["Ready", "Scheduled"]


def test_a_reference_is_written_whole():
    def reference(uid):
        return ObjectReference(api_version="v1", kind="Machine", name="m", namespace="team", uid=uid)

    changes = status_changes(
        ScheduledMachineStatus(machine_ref=reference("old")), ScheduledMachineStatus(machine_ref=reference("new"))
    )
    assert changes["machineRef"] == reference("new").to_json()
