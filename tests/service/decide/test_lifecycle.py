"""One section per row of the table of rules, then the precedence between them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crds.status import Phase
from service.decide import plan as actions
from service.decide.lifecycle import RULES, decide
from service.decide.plan import Plan
from service.decide.removal import RETRY_PAUSE
from service.decide.world import Role
from tests.service.decide.builders import (
    CLOSES,
    EVENING,
    GRACE,
    MINUTE,
    MORNING,
    OPENS,
    SECOND,
    TOMORROW,
    UNLISTED,
    broken_spec,
    child,
    cluster,
    cordoned_node,
    draining_world,
    identity,
    intent,
    leaving_world,
    legible,
    machine,
    pod,
    raw_spec,
    running_status,
    running_world,
    status,
    unreadable_spec,
    world,
)

ENABLED_FALSE = {"schedule": {"enabled": False}}


def kinds(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


def deleted(plan: Plan) -> list[Role]:
    return [action.role for action in plan.actions if isinstance(action, actions.Delete)]


def test_the_rules_are_in_the_order_of_the_table():
    assert [rule.name for rule in RULES] == [
        "paused",
        "being_deleted",
        "kill_switch",
        "reclaim",
        "disabled",
        "cluster_missing",
        "unreadable_schedule",
        "unreadable_objects",
        "inside_window",
        "outside_window",
    ]


AT_REST = [
    pytest.param(intent(), world(), EVENING, TOMORROW, id="nothing there"),
    pytest.param(intent(), running_world(), MORNING, CLOSES, id="in service"),
    pytest.param(intent(**ENABLED_FALSE), running_world(), MORNING, CLOSES, id="disabled"),
    pytest.param(intent(killSwitch=True), world(), MORNING, CLOSES, id="killed"),
    pytest.param(intent(), running_world(me=identity(paused=True)), MORNING, CLOSES, id="paused"),
    pytest.param(legible(broken_spec()), running_world(), MORNING, CLOSES, id="invalid"),
]


@pytest.mark.parametrize(("of", "seen", "now", "boundary"), AT_REST)
def test_at_rest_the_next_pass_is_due_at_the_next_boundary(of, seen, now, boundary):
    plan = decide(of, seen, now)
    assert (plan.requeue_at, plan.requeue_after, plan.backoff) == (boundary, None, False)


# 0: paused


PAUSES = [
    pytest.param({"me": identity(paused=True)}, id="ScheduledMachine"),
    pytest.param({"cluster": cluster(paused=True)}, id="Cluster"),
]


@pytest.mark.parametrize("pause", PAUSES)
def test_paused_says_which_object_is_paused_and_what_waits(pause):
    message = decide(intent(), running_world(**pause), MORNING).message
    assert message.startswith("Paused by Cluster prod; " if "cluster" in pause else "Paused by this ScheduledMachine; ")
    assert message.endswith("nothing is changed.")


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("now", [MORNING, EVENING])
@pytest.mark.parametrize("phase", [Phase.ACTIVE, Phase.SHUTTING_DOWN, Phase.ERROR])
def test_paused_changes_nothing_and_keeps_the_phase_as_it_was(pause, now, phase):
    seen = running_world(status=running_status(phase=phase), **pause)
    plan = decide(intent(killSwitch=True), seen, now)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (phase, "Paused", (), False)


def test_paused_before_anything_happened_is_pending():
    assert decide(intent(), world(me=identity(paused=True)), MORNING).phase is Phase.PENDING


def test_paused_deletion_waits_too_with_a_warning():
    plan = decide(intent(), running_world(me=identity(paused=True, deleting_since=MORNING)), MORNING)
    assert (plan.reason, plan.actions, plan.problem) == ("DeletionPaused", (), True)
    assert plan.message.endswith("deletion waits until it is resumed.")


def test_paused_time_does_not_count_towards_a_shutdown():
    paused = draining_world(pod(), since=CLOSES, me=identity(paused=True))
    assert decide(intent(), paused, CLOSES + MINUTE).shutdown is None


# 1: being deleted


def deleting(at=MORNING, **changes):
    return identity(deleting_since=at, **changes)


def test_being_deleted_removes_as_outside_a_window_even_inside_one():
    plan = decide(intent(), running_world(me=deleting()), MORNING)
    assert (plan.phase, kinds(plan)) == (Phase.SHUTTING_DOWN, ["RecordShutdown", "Cordon"])


def test_being_deleted_with_the_kill_switch_on_removes_at_once():
    plan = decide(intent(killSwitch=True), running_world(me=deleting()), MORNING)
    assert kinds(plan) == ["RecordShutdown", "Patch", "Delete"]
    assert plan.phase is Phase.SHUTTING_DOWN


def test_being_deleted_goes_on_although_the_schedule_is_disabled():
    plan = decide(intent(**ENABLED_FALSE), running_world(me=deleting()), MORNING)
    assert kinds(plan) == ["RecordShutdown", "Cordon"]


def test_being_deleted_releases_the_finalizer_when_all_children_are_gone():
    plan = decide(intent(), world(me=deleting()), MORNING)
    assert (kinds(plan), plan.problem) == (["ReleaseFinalizer"], False)


@pytest.mark.parametrize("role", list(Role))
def test_being_deleted_holds_the_finalizer_while_any_child_is_left(role):
    left = {"machine": machine(of={"deleting": True})} if role is Role.MACHINE else {str(role): child(role)}
    plan = decide(intent(), world(me=deleting(), **left), MORNING)
    assert "ReleaseFinalizer" not in kinds(plan)


def test_being_deleted_gives_up_10_min_after_the_grace_with_a_warning():
    stuck = leaving_world(since=MORNING, me=deleting())
    end = MORNING + GRACE + 10 * MINUTE
    waiting, over = decide(intent(), stuck, end - SECOND), decide(intent(), stuck, end)
    assert waiting.requeue_at == end
    assert "ReleaseFinalizer" not in kinds(waiting)
    assert (kinds(over), over.problem, over.reason) == (["ReleaseFinalizer"], True, "FinalizerReleased")
    assert "Machine desk-machine" in over.message


def test_giving_up_on_a_deletion_is_tried_again_at_once_if_the_finalizer_could_not_be_released():
    stuck = leaving_world(since=MORNING, me=deleting())
    over = decide(intent(), stuck, MORNING + GRACE + 10 * MINUTE)
    assert over.shutdown == MORNING, "else the wait would start again"


def test_being_deleted_long_after_a_shutdown_began_gets_its_own_10_min():
    stuck = leaving_world(since=MORNING - timedelta(hours=3), me=deleting())
    assert "ReleaseFinalizer" not in kinds(decide(intent(), stuck, MORNING + 14 * MINUTE))


def test_being_deleted_with_the_kill_switch_on_gives_up_after_10_min_without_grace():
    stuck = leaving_world(since=MORNING, me=deleting())
    assert kinds(decide(intent(killSwitch=True), stuck, MORNING + 10 * MINUTE)) == ["ReleaseFinalizer"]


def test_being_deleted_while_capi_is_not_served_waits_for_a_machine_that_was_there():
    unseen = world(me=deleting(), contract=None, status=running_status())
    assert kinds(decide(intent(), unseen, MORNING)) == ["RecordShutdown"]
    begun = replace(unseen, status=running_status(shutdown_started_at=MORNING))
    over = decide(intent(), begun, MORNING + GRACE + 10 * MINUTE)
    assert (kinds(over), over.problem) == (["ReleaseFinalizer"], True)
    assert over.message == "Gave up waiting for the Machine; it is left behind."


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_being_deleted_deletes_all_remaining_children_however_long_the_pause_was(role):
    """After a pause, or with no controller running, the ten minutes may be over before the first look."""
    left = world(me=deleting(), **{str(role): child(role)})
    much_later = MORNING + timedelta(hours=3)
    assert kinds(decide(intent(), left, much_later)) == ["RecordShutdown", "Delete"]
    begun = replace(left, status=status(shutdown_started_at=much_later))
    over = decide(intent(), begun, much_later + GRACE + 10 * MINUTE)
    assert (kinds(over), over.reason) == (["ReleaseFinalizer"], "FinalizerReleased")


def test_being_deleted_without_our_finalizer_is_left_to_others():
    assert decide(intent(), running_world(me=deleting(finalized=False)), MORNING).actions == ()


def test_being_deleted_leaves_foreign_objects_alone():
    foreign = world(me=deleting(), bootstrap=child(Role.BOOTSTRAP, ours=False))
    assert kinds(decide(intent(), foreign, MORNING)) == ["ReleaseFinalizer"]


# 2: kill switch


@pytest.mark.parametrize("now", [MORNING, EVENING])
def test_kill_switch_deletes_at_once_without_grace_or_drain(now):
    plan = decide(intent(killSwitch=True), running_world(), now)
    assert (plan.phase, plan.reason) == (Phase.TERMINATED, "Terminating")
    assert kinds(plan) == ["RecordShutdown", "Patch", "Delete"]
    assert deleted(plan) == [Role.MACHINE]


def test_kill_switch_wins_over_a_disabled_schedule():
    assert deleted(decide(intent(killSwitch=True, **ENABLED_FALSE), running_world(), MORNING)) == [Role.MACHINE]


def test_kill_switch_is_terminating_until_all_children_are_gone():
    left = world(status=running_status(), bootstrap=child(Role.BOOTSTRAP, deleting=True))
    assert decide(intent(killSwitch=True), left, MORNING).reason == "Terminating"
    done = decide(intent(killSwitch=True), world(), MORNING)
    assert (done.phase, done.reason, done.actions) == (Phase.TERMINATED, "KillSwitch", ())


def test_kill_switch_does_not_claim_to_have_removed_a_machine_that_cannot_be_seen():
    plan = decide(intent(killSwitch=True), world(contract=None, cluster=None, status=running_status()), MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.TERMINATED, "Terminating", ())
    assert "cannot tell whether the Machine is gone" in plan.message


def test_kill_switch_is_read_from_an_invalid_spec_too():
    plan = decide(legible(unreadable_spec(killSwitch=True)), running_world(), MORNING)
    assert deleted(plan) == [Role.MACHINE]


# 4: disabled


@pytest.mark.parametrize("now", [MORNING, EVENING])
@pytest.mark.parametrize("seen", [world(), running_world()], ids=["nothing", "running"])
def test_disabled_leaves_what_exists_as_it_is(now, seen):
    plan = decide(intent(**ENABLED_FALSE), seen, now)
    assert (plan.phase, plan.actions) == (Phase.DISABLED, ())


def test_disabling_the_schedule_abandons_a_shutdown_and_uncordons():
    plan = decide(intent(**ENABLED_FALSE), draining_world(pod()), CLOSES + MINUTE)
    assert (kinds(plan), plan.shutdown) == (["Uncordon"], None)


def test_disabled_leaves_the_cordon_of_an_administrator():
    cordoned = running_world(node=cordoned_node(annotations={}))
    assert decide(intent(**ENABLED_FALSE), cordoned, EVENING).actions == ()


def test_disabled_finishes_a_deletion_that_has_begun():
    disabled = intent(**ENABLED_FALSE)
    leaving = decide(disabled, leaving_world(), CLOSES + MINUTE)
    assert (leaving.phase, leaving.reason, leaving.shutdown) == (Phase.DISABLED, "Disabled", CLOSES)
    assert leaving.message.startswith("The schedule is disabled. ")
    assert leaving.message.endswith("Machine desk-machine is being deleted; Cluster API waits for its provider.")
    left = world(status=running_status(shutdown_started_at=CLOSES), infrastructure=child(Role.INFRASTRUCTURE))
    assert deleted(decide(disabled, left, CLOSES + MINUTE)) == [Role.INFRASTRUCTURE]


def test_disabled_leaves_a_deletion_that_has_begun_the_rest_of_its_grace():
    within, over = (decide(intent(**ENABLED_FALSE), leaving_world(), CLOSES + past) for past in (MINUTE, GRACE))
    assert (within.actions, within.requeue_at) == ((), CLOSES + GRACE)
    assert kinds(over) == ["Patch"]


def test_disabled_says_that_the_machine_keeps_running_and_how_to_remove_it():
    plan = decide(intent(**ENABLED_FALSE), running_world(), MORNING)
    assert plan.message == (
        "The schedule is disabled, and Machine desk-machine keeps running. Set spec.schedule.enabled to true "
        "to resume, or spec.killSwitch to true to remove it."
    )


def test_disabled_forgets_a_shutdown_when_all_is_gone():
    gone = world(status=running_status(shutdown_started_at=CLOSES))
    plan = decide(intent(**ENABLED_FALSE), gone, CLOSES + MINUTE)
    assert (plan.phase, plan.actions, plan.shutdown) == (Phase.DISABLED, (), None)
    assert plan.message == "The schedule is disabled. Set spec.schedule.enabled to true to resume."


def test_disabled_wakes_at_the_boundary_so_that_in_schedule_stays_true():
    assert decide(intent(**ENABLED_FALSE), world(), MORNING).requeue_at == CLOSES


def test_disabled_comes_before_a_missing_cluster():
    assert decide(intent(**ENABLED_FALSE), running_world(cluster=None), MORNING).actions == ()


# 5: Cluster missing or being deleted

NO_CLUSTER = [
    pytest.param(None, "ClusterNotFound", id="missing"),
    pytest.param(cluster(deleting=True), "ClusterDeleting", id="deleting"),
]


@pytest.mark.parametrize(("seen", "reason"), NO_CLUSTER)
def test_without_its_cluster_nothing_is_created(seen, reason):
    plan = decide(intent(), world(cluster=seen), MORNING)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.INACTIVE, reason, (), True)


@pytest.mark.parametrize(("seen", "reason"), NO_CLUSTER)
def test_without_its_cluster_what_is_ours_is_removed(seen, reason):
    plan = decide(intent(), running_world(cluster=seen), MORNING)
    assert (plan.phase, plan.reason) == (Phase.SHUTTING_DOWN, reason)
    assert kinds(plan) == ["RecordShutdown", "Cordon"]
    assert plan.message.startswith("Cluster prod ")
    assert plan.message.endswith(" Draining Node node-7.")


def test_a_missing_cluster_is_no_problem_outside_a_window():
    assert not decide(intent(), world(cluster=None), EVENING).problem


def test_a_cluster_whose_name_cannot_be_read_is_not_missing():
    unnamed = legible(raw_spec(clusterName=["prod"]))
    inside, outside = (decide(unnamed, running_world(cluster=None), now) for now in (MORNING, CLOSES))
    assert (inside.phase, inside.reason, inside.actions) == (Phase.ERROR, "InvalidSpec", ())
    assert (outside.phase, kinds(outside)) == (Phase.SHUTTING_DOWN, ["RecordShutdown", "Cordon"])


# 6: inside a window


def test_inside_a_window_all_three_are_created_and_the_machine_last():
    plan = decide(intent(), world(), OPENS)
    created = [action.role for action in plan.actions if isinstance(action, actions.Create)]
    assert created == [Role.BOOTSTRAP, Role.INFRASTRUCTURE, Role.MACHINE]
    assert len(plan.actions) == 3
    assert plan.phase is Phase.ACTIVE


def test_inside_a_window_a_machine_that_is_right_is_left_alone():
    plan = decide(intent(), running_world(), MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.ACTIVE, "MachineRunning", ())
    assert plan.requeue_at == CLOSES


def test_a_boundary_is_exact_to_the_second():
    assert decide(intent(), world(), OPENS - SECOND).phase is Phase.INACTIVE
    assert decide(intent(), world(), OPENS).phase is Phase.ACTIVE
    assert decide(intent(), running_world(), CLOSES - SECOND).phase is Phase.ACTIVE
    assert decide(intent(), running_world(), CLOSES).phase is Phase.SHUTTING_DOWN


# 7: outside, a child of ours exists


def test_outside_a_window_the_shutdown_is_stored_before_the_node_is_cordoned():
    plan = decide(intent(), running_world(), CLOSES)
    assert plan.actions == (actions.RecordShutdown(CLOSES), actions.Cordon("node-7", "uid-of-the-node", "100"))
    assert plan.shutdown == CLOSES


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_outside_a_window_any_child_of_ours_is_removed(role):
    plan = decide(intent(), world(**{str(role): child(role)}), EVENING)
    assert (plan.phase, deleted(plan)) == (Phase.SHUTTING_DOWN, [role])


def test_outside_a_window_a_machine_that_cannot_be_seen_is_not_gone():
    plan = decide(intent(), world(contract=None, cluster=None, status=running_status()), EVENING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.SHUTTING_DOWN, "CAPINotInstalled", ())


# 8: outside, nothing exists


def test_outside_a_window_with_nothing_there_the_next_window_is_waited_for():
    plan = decide(intent(), world(), EVENING)
    assert (plan.phase, plan.actions, plan.requeue_at) == (Phase.INACTIVE, (), TOMORROW)
    assert "2026-03-03 09:00 UTC" in plan.message


def test_outside_a_window_a_foreign_object_is_nothing_of_ours():
    foreign = world(machine=machine(of={"ours": False}))
    assert decide(intent(), foreign, EVENING).phase is Phase.INACTIVE


# Invalid spec


@pytest.mark.parametrize("now", [MORNING, EVENING])
def test_an_invalid_spec_blocks_creation_and_says_what_is_wrong(now):
    plan = decide(legible(broken_spec()), world(), now)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.ERROR, "InvalidSpec", (), True)
    assert "spec.priority" in plan.message


def test_an_invalid_spec_with_a_schedule_that_parses_goes_on_removing_by_it():
    plan = decide(legible(broken_spec()), running_world(), CLOSES)
    assert (plan.phase, kinds(plan)) == (Phase.SHUTTING_DOWN, ["RecordShutdown", "Cordon"])


@pytest.mark.parametrize("now", [MORNING, EVENING])
def test_with_a_schedule_that_does_not_parse_what_runs_stays_with_a_warning(now):
    plan = decide(legible(unreadable_spec()), running_world(), now)
    assert (plan.phase, plan.actions, plan.problem) == (Phase.ERROR, (), True)
    assert "keeps running" in plan.message
    assert "keeps running" not in decide(legible(unreadable_spec()), world(), now).message


@pytest.mark.parametrize("spec", [broken_spec(schedule={"hoursOfDay": ["0-23"]}), unreadable_spec()])
def test_an_invalid_spec_gives_a_node_back_that_was_being_drained_and_forgets_the_shutdown(spec):
    plan = decide(legible(spec), draining_world(pod()), CLOSES + MINUTE)
    assert (kinds(plan), plan.shutdown) == (["Uncordon"], None)


def test_an_invalid_spec_remembers_the_shutdown_of_a_machine_that_is_leaving():
    plan = decide(legible(unreadable_spec()), leaving_world(node=cordoned_node()), CLOSES + MINUTE)
    assert (plan.actions, plan.shutdown) == ((), CLOSES)
    gone = world(status=running_status(shutdown_started_at=CLOSES))
    assert decide(legible(unreadable_spec()), gone, CLOSES + MINUTE).shutdown is None


# Cancelled shutdown


def test_a_shutdown_is_cancelled_when_the_schedule_is_edited_before_the_machine_is_deleted():
    edited = intent(schedule={"hoursOfDay": ["9-20"]})
    plan = decide(edited, draining_world(pod()), CLOSES + MINUTE)
    assert (plan.phase, kinds(plan), plan.shutdown) == (Phase.ACTIVE, ["Uncordon"], None)


def test_a_shutdown_is_cancelled_when_a_window_opens():
    plan = decide(intent(), draining_world(pod(), since=OPENS - MINUTE), OPENS)
    assert (plan.phase, kinds(plan)) == (Phase.ACTIVE, ["Uncordon"])


# Pods that could not be listed


CANCELLED = [
    pytest.param(intent(), TOMORROW, Phase.ACTIVE, id="a window opens"),
    pytest.param(intent(**ENABLED_FALSE), EVENING, Phase.DISABLED, id="disabled"),
]


@pytest.mark.parametrize(("edited", "now", "phase"), CANCELLED)
def test_a_cancelled_shutdown_uncordons_although_the_pods_could_not_be_listed(edited, now, phase):
    plan = decide(edited, draining_world(workload=UNLISTED, pods=None), now)
    assert (plan.phase, kinds(plan)) == (phase, ["Uncordon"])


@pytest.mark.parametrize(("edited", "now", "phase"), CANCELLED)
@pytest.mark.parametrize("seen", [cordoned_node(), None], ids=["Node seen", "no Node seen"])
def test_pods_that_could_not_be_listed_requeue_soon_under_every_rule(edited, now, phase, seen):
    plan = decide(edited, draining_world(workload=UNLISTED, node=seen, pods=None), now)
    assert (plan.phase, plan.requeue_after) == (phase, RETRY_PAUSE)


def test_taints_are_kept_although_the_pods_could_not_be_listed():
    tainted = intent(nodeTaints=[{"key": "workload", "value": "batch", "effect": "NoSchedule"}])
    assert "ApplyTaints" in kinds(decide(tainted, draining_world(workload=UNLISTED, pods=None), TOMORROW))


# Clock


def test_a_small_step_back_of_the_clock_does_not_cancel_a_shutdown():
    plan = decide(intent(), draining_world(pod()), CLOSES - 4 * MINUTE)
    assert (plan.phase, plan.shutdown) == (Phase.SHUTTING_DOWN, CLOSES)


def test_a_large_step_back_of_the_clock_does():
    assert decide(intent(), draining_world(pod()), CLOSES - 6 * MINUTE).phase is Phase.ACTIVE


def test_after_a_large_clock_step_back_outside_a_window_the_shutdown_starts_over():
    seen = draining_world(pod(), since=EVENING)
    now = EVENING - 30 * MINUTE
    assert decide(intent(), seen, now).actions[0] == actions.RecordShutdown(now)


def test_status_that_makes_no_sense_does_not_steer():
    lying = world(status=status(phase=Phase.ACTIVE, in_schedule=True, message="all is well"))
    assert decide(intent(), lying, EVENING).phase is Phase.INACTIVE
