from dataclasses import replace
from datetime import timedelta

import pytest

from crds import names
from crds.status import MachinePhase, NodeReference, PastReclaim, Phase, Reclaim, Remediation, ScheduledMachineStatus
from service.decide import plan as actions
from service.decide.hosts import DEFAULT_IDENTITIES
from service.decide.lifecycle import decide
from service.decide.outcome import Blocker, Failure, Outcome
from service.decide.reasons import Reason
from service.decide.report import report, should_defer
from service.decide.taints import write_note
from service.decide.world import Reachability, Role
from tests.service.decide.builders import (
    CLOSES,
    CONNECTED,
    EVENING,
    GRACE,
    MINUTE,
    MORNING,
    PROVIDER_ID,
    SPEC,
    TOMORROW,
    UID,
    child,
    draining_world,
    identity,
    intent,
    leaving_world,
    legible,
    machine,
    new_machine,
    node,
    pod,
    reference,
    running_status,
    running_world,
    situation,
    status,
    taint,
    unreadable_spec,
    world,
)
from tests.service.decide.changes import CHANGES
from tests.service.decide.simulation import Simulation, running

TAINTED = {"nodeTaints": [{"key": "workload", "value": "batch", "effect": "NoSchedule"}]}
OFF = {"schedule": {"enabled": False}}
ALWAYS = {"schedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}}


def reported(seen=None, now=MORNING, of=None, outcome=None) -> ScheduledMachineStatus:
    s = situation(now, of=of, seen=seen)
    plan = decide(s.intent, s.world, now)
    return report(s, plan, outcome or Outcome(done=plan.actions))


def failing(kind: type, seen, of=None, now=MORNING, **fields) -> Outcome:
    """The plan failed at its first action of that class; what came before was done."""
    plan = decide(of or intent(), seen, now)
    index = next(i for i, action in enumerate(plan.actions) if isinstance(action, kind))
    return Outcome(plan.actions[:index], Failure(plan.actions[index], Reason.FORBIDDEN, "no"), **fields)


# What the status remembers of a machine


@pytest.mark.parametrize("now", [MORNING, EVENING])
@pytest.mark.parametrize("edit", [{}, {"killSwitch": True}, {"schedule": {"enabled": False}}])
def test_what_is_known_of_a_machine_stays_while_it_cannot_be_seen(now, edit):
    applied = ({"key": "workload", "value": "batch", "effect": "NoSchedule"},)
    before = running_status(machine_phase=MachinePhase.RUNNING, applied_node_taints=applied)
    after = reported(world(contract=None, cluster=None, status=before), now, of=intent(**edit))
    known = ("machine_ref", "machine_phase", "node_ref", "provider_id", "applied_node_taints")
    assert {name: getattr(after, name) for name in known} == {name: getattr(before, name) for name in known}


def test_the_host_of_a_machine_is_remembered_whatever_the_spec_says_later_until_all_is_gone():
    sim = running()
    assert sim.intent.spec is not None
    provider = sim.intent.spec.infrastructure_spec
    host = DEFAULT_IDENTITIES.of(provider.api_version, provider.kind, provider.spec)
    assert sim.status.host_hash == host
    CHANGES["other host"](sim)
    assert sim.settle().status.host_hash == host
    CHANGES["the boundary"](sim)
    assert sim.settle().status.host_hash == host
    sim.finish_deletion()
    assert sim.settle().status.host_hash is None
    CHANGES["the boundary"](sim)
    assert sim.settle().status.host_hash not in (None, host)


def test_which_host_a_machine_was_made_for_is_not_guessed():
    edited = intent(infrastructureSpec={**SPEC["infrastructureSpec"], "spec": {"port": 22}})
    assert reported(of=edited).host_hash is None


def test_a_hash_that_an_earlier_version_stored_is_replaced_by_what_the_infrastructure_object_names():
    before = running_status(host_hash="0123456789abcdef0123456789abcdef")
    assert reported(running_world(status=before, host="v2-host")).host_hash == "v2-host"
    assert reported(running_world(status=before)).host_hash is None


def test_every_field_of_a_running_machine_is_maintained():
    status_after = running(spec={**Simulation().spec, **TAINTED}).status
    assert (status_after.phase, status_after.message, status_after.in_schedule) == (
        Phase.ACTIVE,
        "Machine is running as Node node-7.",
        True,
    )
    assert (status_after.machine_phase, status_after.provider_id) == (MachinePhase.RUNNING, PROVIDER_ID)
    assert status_after.machine_ref is not None
    assert (status_after.machine_ref.name, status_after.machine_ref.kind, status_after.machine_ref.namespace) == (
        "desk-machine",
        "Machine",
        "team",
    )
    assert status_after.bootstrap_ref is not None
    assert status_after.infrastructure_ref is not None
    assert (status_after.bootstrap_ref.name, status_after.infrastructure_ref.name) == ("desk-bootstrap", "desk-infra")
    assert status_after.node_ref is not None
    assert all(
        ref.uid
        for ref in (
            status_after.machine_ref,
            status_after.bootstrap_ref,
            status_after.infrastructure_ref,
            status_after.node_ref,
        )
    )
    assert (status_after.node_ref.api_version, status_after.node_ref.kind, status_after.node_ref.name) == (
        "v1",
        "Node",
        "node-7",
    )
    assert [one.key for one in status_after.applied_node_taints] == ["workload"]
    assert status_after.last_scheduled_time == MORNING
    assert (status_after.next_activation, status_after.next_cleanup) == (TOMORROW, CLOSES)
    assert status_after.observed_generation == 1
    assert (status_after.shutdown_started_at, status_after.reclaim, status_after.remediation) == (None, None, None)


def test_nothing_is_left_in_the_status_of_a_machine_that_is_gone():
    applied = ({"key": "workload", "value": "batch", "effect": "NoSchedule"},)
    before = running_status(shutdown_started_at=CLOSES, applied_node_taints=applied, host_hash="7")
    status_after = reported(world(status=before), EVENING)
    assert (status_after.phase, status_after.in_schedule, status_after.machine_phase) == (Phase.INACTIVE, False, None)
    assert (status_after.applied_node_taints, status_after.host_hash) == ((), None)
    assert (
        status_after.machine_ref,
        status_after.node_ref,
        status_after.provider_id,
        status_after.shutdown_started_at,
    ) == (None,) * 4
    assert (status_after.next_activation, status_after.next_cleanup) == (TOMORROW, None)


def test_the_observed_generation_is_reported():
    assert reported(running_world(me=identity(generation=9))).observed_generation == 9


@pytest.mark.parametrize(
    ("of", "now", "activation", "cleanup"),
    [
        (intent(), MORNING, TOMORROW, CLOSES),
        (intent(), EVENING, TOMORROW, None),
        (intent(**ALWAYS), MORNING, None, None),
        (intent(schedule={"enabled": False}), MORNING, None, None),
        (intent(killSwitch=True), MORNING, None, None),
        (legible(unreadable_spec()), MORNING, None, None),
    ],
)
def test_when_the_next_window_opens_and_the_current_one_closes(of, now, activation, cleanup):
    status_after = reported(world(), now, of)
    assert (status_after.next_activation, status_after.next_cleanup) == (activation, cleanup)


def test_the_status_has_the_texts_for_the_columns_of_kubectl_get():
    status = reported(running_world(), MORNING)
    assert (status.schedule, status.next_change) == ("mon-fri 9-17 UTC", "closes Mon 18:00")


def test_a_machine_that_does_not_follow_its_schedule_has_no_next_change():
    status = reported(running_world(), MORNING, intent(schedule={"enabled": False}))
    assert (status.schedule, status.next_change) == ("mon-fri 9-17 UTC", None)


def test_next_cleanup_is_the_deadline_of_a_shutdown_under_way():
    assert reported(draining_world(pod()), CLOSES + MINUTE).next_cleanup == CLOSES + GRACE


def test_next_cleanup_of_a_killed_machine_is_at_once():
    assert reported(running_world(), MORNING, intent(killSwitch=True)).next_cleanup == MORNING


def test_an_unreadable_schedule_leaves_open_whether_we_are_in_it():
    assert reported(world(), of=legible(unreadable_spec())).in_schedule is None


# References


def test_the_machine_is_remembered_until_all_children_are_gone():
    left = world(status=running_status(), bootstrap=child(Role.BOOTSTRAP, deleting=True))
    assert reported(left, EVENING).machine_ref == reference(Role.MACHINE)


def test_a_machine_that_only_cannot_be_seen_is_remembered():
    assert reported(world(status=running_status(), contract=None), EVENING).machine_ref == reference(Role.MACHINE)


def test_foreign_objects_are_not_reported_as_ours():
    foreign = world(bootstrap=child(Role.BOOTSTRAP, ours=False), machine=machine(of={"ours": False}))
    status_after = reported(foreign)
    assert (
        status_after.bootstrap_ref,
        status_after.machine_ref,
        status_after.machine_phase,
        status_after.provider_id,
    ) == (None,) * 4


@pytest.mark.parametrize("changed", [{"provider_id": "remote://another"}, {"node_name": "node-8"}, {"node_name": None}])
def test_a_contradiction_is_not_copied(changed):
    status_after = reported(running_world(machine=machine(**changed)))
    assert status_after.node_ref is not None
    assert (status_after.provider_id, status_after.node_ref.name) == (PROVIDER_ID, "node-7")


def test_a_node_that_registered_again_is_taken_over():
    assert reported(running_world(node=node(uid="again"))).node_ref == NodeReference(name="node-7", uid="again")


def test_the_uid_of_a_node_that_cannot_be_seen_is_remembered():
    remembered = reported(running_world(node=None)).node_ref
    assert remembered is not None
    assert remembered.uid == "uid-of-the-node"


def test_a_new_machine_has_no_node_yet():
    seen = running_world(machine=new_machine(of={"uid": "new"}), node=None)
    assert (reported(seen).node_ref, reported(seen).provider_id) == (None, None)


# What was really done


def test_pending_until_all_three_exist_and_error_while_creation_fails():
    undone = reported(world(), outcome=Outcome())
    failed = reported(world(), outcome=failing(actions.Create, world()))
    assert (undone.phase, failed.phase, failed.message) == (Phase.PENDING, Phase.ERROR, "no")


def test_a_finalizer_that_cannot_be_stored_is_no_active_machine():
    seen = world(me=identity(finalized=False))
    assert reported(seen, outcome=failing(actions.AddFinalizer, seen)).phase is Phase.ERROR


def test_other_failures_leave_the_phase_as_it_is():
    seen = running_world(machine=machine(of={"labels": {}}))
    assert reported(seen, outcome=failing(actions.Patch, seen)).phase is Phase.ACTIVE


def test_a_shutdown_that_could_not_be_stored_has_not_begun():
    seen = running_world()
    outcome = failing(actions.RecordShutdown, seen, now=CLOSES)
    assert reported(seen, CLOSES, outcome=outcome).shutdown_started_at is None


def test_a_shutdown_that_was_stored_has_begun_whatever_fails_then():
    seen = running_world()
    outcome = failing(actions.Cordon, seen, now=CLOSES)
    assert reported(seen, CLOSES, outcome=outcome).shutdown_started_at == CLOSES


def test_a_cancelled_shutdown_is_forgotten_although_something_else_fails():
    seen = draining_world(pod(), since=MORNING - MINUTE)
    outcome = failing(actions.Uncordon, seen)
    assert reported(seen, outcome=outcome).shutdown_started_at is None


def test_last_scheduled_time_is_when_a_machine_was_created():
    earlier = MORNING - timedelta(days=1)
    assert reported(running_world(status=status())).last_scheduled_time == MORNING
    assert reported(running_world(status=running_status(last_scheduled_time=earlier))).last_scheduled_time == earlier


def test_a_replacement_is_counted_once_it_is_stored():
    sick = machine(remediation_requested=True)
    seen = running_world(machine=sick)
    assert reported(seen).remediation == Remediation(count=1, at=MORNING, machine_uid=sick.child.uid)
    assert reported(seen, outcome=failing(actions.RecordRemediation, seen)).remediation is None


def test_replacements_are_counted_within_a_window():
    counted = Remediation(count=2, at=MORNING)
    assert reported(running_world(status=running_status(remediation=counted))).remediation == counted
    assert reported(world(status=status(remediation=counted)), EVENING).remediation is None


def test_that_a_replacement_was_just_made_is_remembered_into_the_next_window():
    just_now = Remediation(count=4, at=EVENING - timedelta(minutes=9))
    status_after = reported(world(status=status(remediation=just_now)), EVENING).remediation
    assert status_after == Remediation(count=1, at=just_now.at)


def test_a_reclaim_that_could_not_be_stored_is_no_reclaim_yet():
    asked = node(annotations={names.ANNOTATION_RECLAIM_REQUESTED: "true"})
    seen = running_world(status=running_status(phase=Phase.ACTIVE), node=asked)
    status_after = reported(seen, outcome=failing(actions.RecordReclaim, seen))
    assert (status_after.phase, status_after.reclaim, status_after.message) == (Phase.ACTIVE, None, "no")
    status_after = reported(seen)
    assert (status_after.phase, status_after.reclaim is not None) == (Phase.EMERGENCY_REMOVE, True)


def test_a_reclaim_is_kept():
    kept = Reclaim(requested_at=MORNING, reason="java", node="node-7", machine_uid="x", disabled_at=MORNING)
    assert reported(world(status=status(reclaim=kept)), EVENING).reclaim == kept


def test_the_node_is_remembered_by_its_uid_until_a_reclaim_is_over_and_no_longer():
    asked = Reclaim(requested_at=MORNING, reason="idea", node="node-7", machine_uid="x", disabled_at=MORNING)
    gone = world(status=running_status(reclaim=asked))
    still_enabled = reported(gone)
    over = reported(replace(gone, workload=CONNECTED), MORNING + MINUTE, intent(**OFF))
    assert (still_enabled.node_ref, still_enabled.reclaim) == (gone.status.node_ref, asked)
    past = PastReclaim(at=MORNING, reason="idea", node="node-7")
    assert (over.node_ref, over.reclaim, over.last_reclaim) == (None, None, past)


@pytest.mark.parametrize(
    ("seen", "spec", "kept"),
    [({}, OFF, True), ({}, {}, False), ({"me": identity(paused=True)}, {}, True)],
    ids=["disabled", "enabled again", "enabled again while paused"],
)
def test_a_reclaim_of_before_is_remembered_until_the_schedule_is_in_force_again(seen, spec, kept):
    past = PastReclaim(at=MORNING, reason="idea", node="node-7")
    status_after = reported(world(status=status(last_reclaim=past), **seen), of=intent(**spec))
    assert status_after.last_reclaim == (past if kept else None)


# Taints


def test_applied_taints_are_what_was_written():
    (applied,) = reported(of=intent(**TAINTED)).applied_node_taints
    assert (applied.key, applied.value, applied.effect) == ("workload", "batch", "NoSchedule")


@pytest.mark.parametrize("outcome", [failing(actions.ApplyTaints, running_world(), intent(**TAINTED)), Outcome()])
def test_taints_that_were_not_written_are_not_reported(outcome):
    assert reported(of=intent(**TAINTED), outcome=outcome).applied_node_taints == ()


def test_taints_are_remembered_while_the_node_cannot_be_seen():
    applied = ({"key": "workload", "value": "batch", "effect": "NoSchedule"},)
    seen = running_world(status=running_status(applied_node_taints=applied), node=None)
    assert len(reported(seen, of=intent(**TAINTED)).applied_node_taints) == 1


@pytest.mark.parametrize("now", [MORNING, EVENING])
def test_a_users_annotation_on_the_node_breaks_no_report(now):
    many = [taint(f"t{number}") for number in range(200)]
    for note in (write_note(UID, many, node()), write_note(UID, [taint(effect="Sometimes")], node()), "[" * 5000):
        seen = running_world(node=node(ready=False, annotations={names.ANNOTATION_APPLIED_TAINTS: note}))
        assert len(reported(seen, now).applied_node_taints) <= 64


def test_taints_of_the_node_before_are_forgotten_when_it_registers_again():
    applied = ({"key": "workload", "value": "batch", "effect": "NoSchedule"},)
    again = node(uid="again", ready=False, taints=(taint(),))
    seen = running_world(status=running_status(applied_node_taints=applied), node=again)
    assert reported(seen, of=intent(**TAINTED)).applied_node_taints == ()


# Messages


def test_blocking_pods_and_budgets_are_named():
    pods = [pod(f"web-{i}") for i in range(5)]
    blockers = tuple(Blocker(one, "budget web allows 0 disruptions") for one in pods)
    status_after = reported(draining_world(*pods), CLOSES + MINUTE, outcome=Outcome(blockers=blockers))
    assert status_after.message is not None
    assert "5 pod(s) left" in status_after.message
    assert "apps/web-0: budget web allows 0 disruptions" in status_after.message
    assert "and 2 more" in status_after.message


def test_a_message_has_a_limit():
    plan = decide(intent(), world(), MORNING)
    endless = Outcome(failure=Failure(plan.actions[0], Reason.REJECTED, "x" * 5000))
    message = reported(world(), outcome=endless).message
    assert message is not None
    assert len(message) == 1024


def test_a_deletion_that_has_begun_is_seen_in_the_machine_phase():
    assert reported(leaving_world(), CLOSES + MINUTE).machine_phase is MachinePhase.DELETING


# Before the workload cluster has answered


def just_started(**changes):
    """A machine in service, as an operator sees it that has not reached the workload cluster yet."""
    return running_world(**{"status": running_status(phase=Phase.ACTIVE), "workload": None, "node": None, **changes})


def is_premature(seen, **changes):
    s = situation(of=intent(**changes), seen=seen)
    return should_defer(s, decide(s.intent, seen, MORNING), Outcome())


def test_a_start_takes_nothing_back_that_is_only_not_seen_yet():
    assert is_premature(just_started())


def test_what_a_workload_cluster_answered_is_reported():
    assert not is_premature(running_world())
    assert not is_premature(
        just_started(workload=Reachability(reachable=False, reason=Reason.NO_ANSWER, message="away"))
    )


def test_what_changed_between_passes_is_reported_at_once():
    assert not is_premature(just_started(), schedule={"enabled": False})
    assert not is_premature(just_started(status=ScheduledMachineStatus()))
