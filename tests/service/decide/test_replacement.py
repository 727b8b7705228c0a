from dataclasses import replace
from datetime import timedelta

import pytest

from crds.status import MachinePhase, Phase, Remediation
from service.decide import contracts
from service.decide import plan as actions
from service.decide.lifecycle import decide
from service.decide.plan import Plan
from service.decide.replacement import pause_after
from service.decide.world import Contract, ReclaimAgent, Role
from tests.service.decide.builders import (
    DISCONNECTED,
    FAILURE,
    MINUTE,
    MORNING,
    OPENS,
    SPEC,
    child,
    cordoned_node,
    intent,
    machine,
    new_machine,
    running_status,
    running_world,
    status,
)

EDITED = {"infrastructureSpec": {**SPEC["infrastructureSpec"], "spec": {"address": "192.0.2.8"}}}


def kinds(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


# Failed Machine


def test_a_failed_machine_is_left_alone_inside_its_window_and_its_message_passed_on():
    plan = decide(intent(), running_world(machine=new_machine(failure=FAILURE), node=None), MORNING)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.ERROR, FAILURE.reason, (), True)
    assert plan.message == FAILURE.message


def test_a_failed_machine_is_replaced_on_a_spec_edit():
    plan = decide(intent(**EDITED), running_world(machine=new_machine(failure=FAILURE), node=None), MORNING)
    assert (plan.phase, plan.reason) == (Phase.PENDING, "SpecEdited")
    assert plan.message == "Replacing the failed Machine (InvalidConfiguration): its specs were edited."
    assert kinds(plan)[-1] == "Delete"


def test_a_healthy_machine_is_not_replaced_on_a_spec_edit():
    assert decide(intent(**EDITED), running_world(), MORNING).actions == ()


@pytest.mark.parametrize("workload", [None, DISCONNECTED])
@pytest.mark.parametrize("phase", [MachinePhase.RUNNING, MachinePhase.FAILED])
def test_a_machine_whose_node_cannot_be_read_is_not_replaced_on_a_spec_edit(workload, phase):
    sticky = {"machine": machine(failure=FAILURE), "status": running_status(machine_phase=phase)}
    assert decide(intent(**EDITED), running_world(**sticky, workload=workload, node=None), MORNING).actions == ()


@pytest.mark.parametrize("workload", [None, DISCONNECTED])
def test_a_running_machine_with_a_sticky_failure_stays_active_while_its_node_cannot_be_read(workload):
    sticky = {"machine": machine(failure=FAILURE), "status": running_status(machine_phase=MachinePhase.RUNNING)}
    plan = decide(intent(), running_world(**sticky, workload=workload, node=None), MORNING)
    assert (plan.phase, plan.problem) == (Phase.ACTIVE, False)


def test_a_failed_machine_is_removed_at_the_end_of_the_window():
    failed = running_world(machine=machine(failure=FAILURE, infrastructure_ready=False))
    assert decide(intent(), failed, OPENS + timedelta(hours=9)).phase is Phase.SHUTTING_DOWN


# MachineHealthCheck


UNWELL = child(Role.MACHINE).uid


def sick(**fields):
    return running_world(machine=machine(remediation_requested=True), status=running_status(**fields))


def test_a_machine_that_a_health_check_marked_is_deleted_and_that_is_stored_first():
    plan = decide(intent(), sick(), MORNING)
    assert (plan.phase, plan.reason) == (Phase.PENDING, "Remediating")
    assert plan.actions[:2] == (actions.RecordShutdown(MORNING), actions.RecordRemediation(1, MORNING, UNWELL))
    assert kinds(plan)[-1] == "Delete"


def test_a_machine_goes_only_as_it_was_seen_as_its_health_check_may_have_succeeded_since():
    ill = machine(remediation_requested=True, of={"resource_version": "9"}, drain_seconds=1)
    plan = decide(intent(), running_world(machine=ill), MORNING)
    patch, delete = plan.actions[-2:]
    assert isinstance(patch, actions.Patch)
    assert isinstance(delete, actions.Delete)
    assert (patch.resource_version, delete.unchanged) == ("9", True)


def test_the_stale_mark_of_a_health_check_is_cleared_and_nothing_else_is_done():
    status: dict[str, list[object]] = {"conditions": []}
    well = running_world(machine=machine(unmarked_status=status, of={"resource_version": "9"}))
    plan = decide(intent(), well, MORNING)
    assert (plan.phase, plan.reason, kinds(plan)) == (Phase.ACTIVE, "MachineRunning", ["Patch"])
    (patch,) = plan.actions
    assert isinstance(patch, actions.Patch)
    assert (patch.subresource, patch.resource_version, patch.body) == ("status", "9", {"status": status})


def test_a_failed_machine_is_replaced_when_a_health_check_marks_it():
    failed = new_machine(failure=FAILURE, remediation_requested=True)
    plan = decide(intent(), running_world(machine=failed, node=None, status=status()), MORNING)
    assert (plan.phase, plan.reason) == (Phase.PENDING, "Remediating")
    assert kinds(plan)[:2] == ["RecordShutdown", "RecordRemediation"]
    assert kinds(plan)[-1] == "Delete"


def test_a_machine_that_a_health_check_marked_is_drained_by_capi_within_the_grace():
    plan = decide(intent(gracefulShutdownTimeout="2m"), sick(), MORNING)
    patch = next(action for action in plan.actions if isinstance(action, actions.Patch))
    bounds = contracts.timeouts(Contract.V1BETA2, 2 * MINUTE, 2 * MINUTE)["deletion"]
    assert patch.body == {"spec": {"deletion": bounds}}


@pytest.mark.parametrize(("count", "minutes"), [(1, 10), (2, 20), (3, 40), (9, 320), (50, 320)])
def test_replacements_grow_rarer(count, minutes):
    assert pause_after(count) == minutes * MINUTE
    recent = sick(remediation=Remediation(count=count, at=MORNING))
    due = MORNING + minutes * MINUTE
    early = decide(intent(schedule={"hoursOfDay": ["0-23"]}), recent, due - MINUTE)
    assert (early.phase, early.reason, early.actions) == (Phase.ERROR, "RemediationPaused", ())
    assert early.problem
    assert early.requeue_at == due
    late = decide(intent(schedule={"hoursOfDay": ["0-23"]}), recent, due)
    assert late.actions[1] == actions.RecordRemediation(count + 1, due, UNWELL)


def test_a_replacement_that_was_stored_but_not_begun_goes_on_without_being_counted_again():
    stored = sick(remediation=Remediation(count=2, at=MORNING, machine_uid=UNWELL), shutdown_started_at=MORNING)
    plan = decide(intent(), stored, MORNING + MINUTE)
    assert plan.reason == "Remediating"
    assert kinds(plan) == ["Patch", "Delete"]


def test_a_replacement_that_was_called_off_begins_again_when_the_same_machine_is_marked_again():
    stored = sick(remediation=Remediation(count=2, at=MORNING, machine_uid=UNWELL))
    later = MORNING + MINUTE
    plan = decide(intent(), stored, later)
    assert plan.actions[:2] == (actions.RecordShutdown(later), actions.RecordRemediation(2, later, UNWELL))


PAUSED = {"remediation": Remediation(count=1, at=MORNING, machine_uid="another")}


def test_while_the_next_replacement_is_not_due_a_cordon_of_ours_is_undone():
    plan = decide(intent(), replace(sick(**PAUSED), node=cordoned_node()), MORNING + MINUTE)
    assert (plan.reason, kinds(plan)) == ("RemediationPaused", ["Uncordon"])


def test_while_the_next_replacement_is_not_due_the_machine_is_kept_as_it_should_be():
    taints = [{"key": "workload", "value": "batch", "effect": "NoSchedule"}]
    spec = {"nodeTaints": taints, "killIfCommands": ["idea"], "machineTemplate": {"labels": {"rack": "4"}}}
    seen = replace(sick(**PAUSED), reclaim_agent=ReclaimAgent(commands=None))
    plan = decide(intent(**spec), seen, MORNING + MINUTE)
    assert (plan.phase, plan.reason, plan.problem) == (Phase.ERROR, "RemediationPaused", True)
    assert kinds(plan) == ["Patch", "ApplyTaints", "InstallAgent"]
    assert plan.taints is not None


def test_a_replacement_made_by_a_clock_that_was_far_ahead_does_not_hold_up_the_next():
    ahead = sick(remediation=Remediation(count=1, at=MORNING + timedelta(days=365), machine_uid="another"))
    assert decide(intent(), ahead, MORNING).actions[1] == actions.RecordRemediation(2, MORNING, UNWELL)
    a_little = sick(remediation=Remediation(count=1, at=MORNING + MINUTE, machine_uid="another"))
    assert decide(intent(), a_little, MORNING).reason == "RemediationPaused"
