"""Objects that could not be looked at: neither there nor gone, and no reason to stop removing what can be seen."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crds.status import Phase, Reclaim
from service.decide import plan as actions
from service.decide.lifecycle import RELEASE_AFTER, decide
from service.decide.outcome import Outcome
from service.decide.reasons import Reason
from service.decide.report import report, should_defer
from service.decide.situation import Situation
from service.decide.world import Problem, ReadFailure, Role
from tests.service.decide.builders import (
    CLOSES,
    EVENING,
    GRACE,
    MORNING,
    SECOND,
    child,
    identity,
    intent,
    leaving_world,
    machine,
    new_machine,
    reference,
    running_status,
    running_world,
    status,
    world,
)

FORBIDDEN = ReadFailure(Problem(Reason.FORBIDDEN, "may not list remotemachines."))
AWAY = ReadFailure(Problem(Reason.API_UNAVAILABLE, "no answer"), transient=True)
HIDDEN: dict[str, Any] = {"infrastructure": None, "unreadable": {Role.INFRASTRUCTURE: FORBIDDEN}}
REFS = {f"{role}_ref": reference(role) for role in (Role.BOOTSTRAP, Role.INFRASTRUCTURE)}
NEVER_JOINED = machine(node_name=None)
"""Nothing to drain."""
NOTHING_SEEN = {"unreadable": {Role.INFRASTRUCTURE: FORBIDDEN}}


def kinds(plan):
    return [type(action).__name__ for action in plan.actions]


def deleted(plan):
    return [action.role for action in plan.actions if isinstance(action, actions.Delete)]


def reported(of, seen, now, outcome=None):
    return report(Situation.at(of, seen, now), decide(of, seen, now), outcome or Outcome())


# Creation


@pytest.mark.parametrize("seen", [{}, {"bootstrap": child(Role.BOOTSTRAP)}], ids=["nothing", "a part"])
def test_nothing_is_created_beside_what_cannot_be_seen(seen):
    plan = decide(intent(), world(**NOTHING_SEEN, **seen), MORNING)
    assert (plan.phase, plan.reason, plan.problem, plan.actions) == (Phase.ERROR, "Forbidden", True, ())
    assert "infrastructure object" in plan.message
    assert "may not list remotemachines" in plan.message


def test_of_two_obstacles_the_lasting_one_is_reported_and_a_shutdown_is_not_forgotten():
    hidden = {"unreadable": {Role.BOOTSTRAP: AWAY, Role.INFRASTRUCTURE: FORBIDDEN, Role.MACHINE: AWAY}}
    plan = decide(intent(), world(status=status(shutdown_started_at=CLOSES), **hidden), EVENING)
    assert (plan.phase, plan.reason, plan.shutdown) == (Phase.ERROR, "Forbidden", CLOSES)


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_nothing_is_created_for_a_machine_on_its_way_either(role):
    unseen = {str(role): None, "unreadable": {role: FORBIDDEN}}
    plan = decide(intent(), running_world(machine=new_machine(), node=None, status=status(), **unseen), MORNING)
    assert (plan.phase, plan.actions, plan.problem) == (Phase.ACTIVE, (), True)


def test_a_running_machine_stays_active_but_is_not_ready_and_says_why():
    plan = decide(intent(), running_world(**HIDDEN), MORNING)
    after = reported(intent(), running_world(**HIDDEN), MORNING)
    ready = next(one for one in after.conditions if one.type == "Ready")
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.ACTIVE, "Forbidden", (), True)
    assert (ready.status, ready.reason) == ("False", "Forbidden")
    assert after.machine_phase == "Running"


def test_a_hindrance_that_passes_takes_nothing_from_a_running_machine():
    seen = running_world(infrastructure=None, unreadable={Role.INFRASTRUCTURE: AWAY})
    plan = decide(intent(), seen, MORNING)
    assert (plan.phase, plan.reason) == (Phase.ACTIVE, "MachineRunning")
    assert should_defer(Situation.at(intent(), seen, MORNING), plan, Outcome())


def test_a_lasting_obstacle_is_reported_and_so_is_what_was_done_despite_a_passing_one():
    seen = running_world(**HIDDEN)
    assert not should_defer(Situation.at(intent(), seen, MORNING), decide(intent(), seen, MORNING), Outcome())
    seen = running_world(infrastructure=None, unreadable={Role.INFRASTRUCTURE: AWAY})
    plan = decide(intent(), seen, EVENING)
    assert not should_defer(Situation.at(intent(), seen, EVENING), plan, Outcome(done=plan.actions))


# Removal


def test_the_end_of_a_window_removes_the_machine_that_can_be_seen():
    plan = decide(intent(), running_world(machine=NEVER_JOINED, **HIDDEN), EVENING)
    assert deleted(plan) == [Role.MACHINE]


def test_the_kill_switch_removes_the_machine_and_is_not_done_before_all_is_gone_for_certain():
    on = intent(killSwitch=True)
    assert deleted(decide(on, running_world(**HIDDEN), MORNING)) == [Role.MACHINE]
    left = world(status=running_status(**REFS), **NOTHING_SEEN)
    plan = decide(on, left, MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.TERMINATED, "Terminating", ())
    assert "may not list" in plan.message


def test_leftovers_that_can_be_seen_go_and_the_others_are_waited_for():
    left = world(status=running_status(**REFS), bootstrap=child(Role.BOOTSTRAP), **NOTHING_SEEN)
    plan = decide(intent(), left, EVENING)
    assert deleted(plan) == [Role.BOOTSTRAP]
    assert "K0sWorkerConfig desk-bootstrap" in plan.message
    assert "may not list" in plan.message
    after = decide(intent(), replace(left, bootstrap=None), EVENING)
    assert (after.phase, after.reason, after.actions) == (Phase.ERROR, "Forbidden", ())


def test_without_its_cluster_what_cannot_be_seen_is_not_called_gone_either():
    left = world(cluster=None, status=running_status(**REFS), **NOTHING_SEEN)
    plan = decide(intent(), left, EVENING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.ERROR, "Forbidden", ())
    reasons = {one.type: one.reason for one in reported(intent(), left, EVENING).conditions}
    assert reasons["ReferencesValid"] == "ClusterNotFound"


def test_what_is_recorded_of_an_unseen_object_is_kept():
    after = reported(intent(), world(status=running_status(**REFS), **NOTHING_SEEN), EVENING)
    assert after.infrastructure_ref == reference(Role.INFRASTRUCTURE)
    assert after.machine_ref == reference(Role.MACHINE), "or what is seen later would look like something new"
    assert after.bootstrap_ref is None


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_each_unseen_object_keeps_its_own_reference(role):
    after = reported(intent(), world(status=running_status(**REFS), unreadable={role: FORBIDDEN}), EVENING)
    kept = {one: getattr(after, f"{one}_ref") for one in (Role.BOOTSTRAP, Role.INFRASTRUCTURE)}
    assert {one for one, ref in kept.items() if ref} == {role}
    assert kept[role] == reference(role)


def test_an_unseen_machine_keeps_all_that_is_known_of_it():
    before = running_status(**REFS)
    seen = world(status=before, unreadable={Role.MACHINE: FORBIDDEN}, **{role: child(role) for role in list(Role)[:2]})
    after = reported(intent(), seen, MORNING)
    assert (after.machine_ref, after.node_ref, after.provider_id) == (
        before.machine_ref,
        before.node_ref,
        before.provider_id,
    )
    assert not deleted(decide(intent(), seen, EVENING))


def test_a_reclaim_is_not_over_while_something_cannot_be_seen():
    asked = Reclaim(requested_at=MORNING, reason="idea", node="node-7", machine_uid="u")
    off = intent(schedule={"enabled": False})
    seen = leaving_world(status=status(reclaim=asked), machine=None, bootstrap=None, node=None, **HIDDEN)
    assert decide(off, seen, MORNING).phase is Phase.EMERGENCY_REMOVE
    assert decide(off, replace(seen, unreadable={}), MORNING).phase is Phase.DISABLED


# Deletion


def test_deletion_removes_the_machine_then_waits_for_what_is_unseen_and_lets_go_at_the_deadline():
    me = identity(deleting_since=CLOSES)
    assert deleted(decide(intent(), running_world(me=me, machine=NEVER_JOINED, **HIDDEN), CLOSES)) == [Role.MACHINE]
    left = world(me=me, status=status(shutdown_started_at=CLOSES), **NOTHING_SEEN)
    deadline = CLOSES + GRACE + RELEASE_AFTER
    waiting, over = decide(intent(), left, deadline - SECOND), decide(intent(), left, deadline)
    assert (kinds(waiting), waiting.requeue_at) == ([], deadline)
    assert (kinds(over), over.reason, over.problem) == (["ReleaseFinalizer"], "FinalizerReleased", True)
    assert "infrastructure object, which cannot be read" in over.message


def test_with_the_kill_switch_the_deadline_does_not_wait_for_the_grace():
    begun = status(shutdown_started_at=CLOSES)
    left = world(me=identity(deleting_since=CLOSES), status=begun, **NOTHING_SEEN)
    assert kinds(decide(intent(killSwitch=True), left, CLOSES + timedelta(minutes=10))) == ["ReleaseFinalizer"]
