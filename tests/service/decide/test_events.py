"""Each event is emitted once, however many passes see its cause."""

from dataclasses import replace

import pytest

from crds.status import MachinePhase, Phase, Remediation
from service.decide import plan as actions
from service.decide.events import new_events
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.plan import Plan
from service.decide.reasons import Reason
from service.decide.report import report
from service.decide.world import Contract, Role
from tests.service.decide.builders import (
    CLOSES,
    DISCONNECTED,
    GRACE,
    MINUTE,
    MORNING,
    OPENS,
    SECOND,
    TOMORROW,
    broken_spec,
    cluster,
    draining_world,
    intent,
    leaving_world,
    legible,
    pod,
    raw_spec,
    running_status,
    situation,
    status,
    taint,
    world,
)
from tests.service.decide.changes import CHANGES
from tests.service.decide.simulation import Simulation, merge, running

TAINTED = {"nodeTaints": [{"key": "workload", "value": "batch", "effect": "NoSchedule"}]}
PLAN = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "It runs.")


def events_after(sim: Simulation, change) -> list[str]:
    """The reasons of the events that a change causes, until passes do nothing more."""
    before = len(sim.events)
    change(sim)
    sim.settle()
    reasons: list[str] = [event.reason for event in sim.events[before:]]
    sim.step()
    sim.step()
    assert len(sim.events) - before == len(reasons), "a second pass emits nothing new"
    return reasons


def at(moment):
    return lambda sim: setattr(sim, "now", moment)


def test_the_events_of_a_whole_day_are_printed_in_order_and_once_each():
    sim = Simulation(now=OPENS - MINUTE, pods=[pod()])
    assert events_after(sim, lambda _: None) == []
    assert events_after(sim, at(OPENS)) == ["ScheduleActivated", "MachineCreated"]
    assert events_after(sim, Simulation.provision) == ["MachineReady"]
    assert events_after(sim, at(CLOSES)) == ["ScheduleDeactivated", "ShutdownStarted"]
    assert events_after(sim, Simulation.let_pods_go) == ["NodeDrained", "MachineDeleted"]
    assert events_after(sim, Simulation.finish_deletion) == ["MachineRemoved"]
    assert events_after(sim, at(TOMORROW)) == ["ScheduleActivated", "MachineCreated"]


def test_a_drain_that_timed_out_is_a_warning_once():
    sim = running(pods=[pod()])
    sim.guarded = {"web"}
    assert events_after(sim, at(CLOSES)) == ["ScheduleDeactivated", "ShutdownStarted"]
    assert events_after(sim, at(CLOSES + GRACE)) == ["DrainTimedOut", "MachineDeleted"]
    assert [event.warning for event in sim.events[-2:]] == [True, False]


def test_a_drain_that_timed_out_emits_an_event_whatever_started_it():
    sim = running(pods=[pod()])
    sim.guarded = {"web"}
    sim.cluster = cluster(deleting=True)
    sim.settle()
    assert events_after(sim, lambda sim: sim.after(GRACE)) == ["DrainTimedOut", "MachineDeleted"]


def shutting_down() -> Simulation:
    sim = running(pods=[pod()])
    sim.now = CLOSES
    sim.settle()
    return sim


def test_a_cancelled_shutdown():
    edited = events_after(shutting_down(), lambda sim: sim.edit(schedule={"hoursOfDay": ["9-20"]}))
    assert edited == ["ScheduleActivated", "ShutdownCancelled", "MachineReady"]


def test_a_shutdown_abandoned_by_disabling():
    emitted = events_after(shutting_down(), lambda sim: sim.edit(schedule={"enabled": False}))
    assert emitted == ["ShutdownCancelled", "ScheduleDisabled"]


def test_a_shutdown_interrupted_by_a_pause_is_not_cancelled():
    sim = shutting_down()
    assert events_after(sim, lambda sim: setattr(sim, "paused", True)) == ["Paused"]
    assert events_after(sim, lambda sim: setattr(sim, "paused", False)) == ["ShutdownStarted"]


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.SHUTTING_DOWN])
def test_a_pause_while_the_machine_is_being_deleted_cancels_nothing(phase):
    seen = leaving_world(cluster=cluster(paused=True))
    seen = replace(seen, status=seen.status.model_copy(update={"phase": phase}))
    plan = decide(intent(), seen, TOMORROW)
    after = report(situation(TOMORROW, seen=seen), plan, Outcome())
    assert after.machine_phase is MachinePhase.DELETING
    assert "ShutdownCancelled" not in [notice.reason for notice in new_events(seen.status, after, plan, Outcome())]


@pytest.mark.parametrize("why", ["killed", "asked back", "unhealthy"])
def test_a_removal_at_once_that_is_held_up_by_a_pause_is_not_cancelled(why):
    sim = running()
    sim.fails = actions.Delete
    {"killed": CHANGES["kill"], "asked back": Simulation.ask_back, "unhealthy": CHANGES["health check"]}[why](sim)
    sim.step()
    sim.step()
    assert sim.status.shutdown_started_at is not None
    assert events_after(sim, lambda sim: setattr(sim, "paused", True)) == ["Paused"]


def test_a_pause_while_only_leftovers_of_the_machine_are_waited_for_cancels_nothing():
    """Its deletion was asked for and is done: there is no shutdown left to cancel."""
    sim = shutting_down()
    sim.let_pods_go()
    sim.settle()
    sim.ask_deletion_of(Role.INFRASTRUCTURE)
    del sim.objects[Role.MACHINE]
    sim.now = TOMORROW
    sim.settle()
    assert (sim.status.phase, sim.status.machine_phase) == (Phase.PENDING, None)
    assert events_after(sim, lambda sim: setattr(sim, "paused", True)) == ["Paused"]


def test_disable_and_enable():
    sim = running()
    assert events_after(sim, lambda sim: sim.edit(schedule={"enabled": False})) == ["ScheduleDisabled"]
    assert events_after(sim, at(CLOSES)) == []
    assert events_after(sim, at(TOMORROW)) == []
    assert events_after(sim, lambda sim: sim.edit(schedule={"enabled": True})) == ["ScheduleResumed", "MachineReady"]


def test_kill_switch_and_return():
    sim = running()
    killed = events_after(sim, lambda sim: sim.edit(killSwitch=True))
    assert killed == ["MachineDeleted", "KillSwitch"]
    assert sim.events[-1].warning
    assert events_after(sim, Simulation.finish_deletion) == ["MachineRemoved"]
    assert events_after(sim, lambda sim: sim.edit(killSwitch=False)) == ["MachineCreated", "ScheduleResumed"]


def test_a_killed_machine_whose_schedule_was_disabled_is_not_resumed():
    sim = running()
    sim.edit(schedule={"enabled": False})
    sim.settle()
    assert "ScheduleResumed" not in events_after(sim, lambda sim: sim.edit(killSwitch=True))


@pytest.mark.parametrize("switch", [{"schedule": {"enabled": False}}, {"killSwitch": True}])
def test_what_is_deleted_while_a_switch_is_off_is_not_resumed(switch):
    sim = running()
    sim.edit(**switch)
    sim.settle()
    assert "ScheduleResumed" not in events_after(sim, Simulation.delete)


def test_a_machine_that_a_user_deleted_is_created_again():
    sim = running()
    assert events_after(sim, lambda sim: sim.ask_deletion_of(Role.MACHINE)) == []
    assert events_after(sim, Simulation.finish_deletion) == ["MachineRemoved", "MachineCreated"]


def test_a_missing_object_that_is_made_again():
    sim = running()
    assert events_after(sim, lambda sim: sim.objects.pop(Role.BOOTSTRAP)) == ["ObjectCreated"]


def test_drift_that_was_repaired():
    sim = running()
    meddle = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}}
    assert events_after(sim, lambda sim: merge(sim.objects[Role.MACHINE], meddle)) == ["DriftRepaired"]
    assert "labels" in sim.events[-1].message


@pytest.mark.parametrize("contract", list(Contract))
def test_restored_timeouts_emit_an_event_in_both_contracts(contract):
    sim = running(contract=contract)
    forever = {"nodeDrainTimeout": "0s", "deletion": {"nodeDrainTimeoutSeconds": 0}}
    assert events_after(sim, lambda sim: merge(sim.objects[Role.MACHINE], {"spec": forever})) == ["DriftRepaired"]


@pytest.mark.parametrize("contract", list(Contract))
def test_timeouts_that_are_set_for_a_deletion_are_no_drift(contract):
    sim = running(contract=contract)
    sim.now = CLOSES
    sim.settle()
    assert "DriftRepaired" not in sim.event_reasons()


def test_taints_and_conflicts():
    sim = running()
    assert events_after(sim, lambda sim: sim.edit(**TAINTED)) == ["NodeTaintsApplied"]
    assert events_after(sim, lambda sim: sim.change_node(taints=())) == ["NodeTaintsApplied"]
    changed = (taint(value="admin"),)
    assert events_after(sim, lambda sim: sim.change_node(taints=changed)) == ["TaintOwnershipConflict"]
    assert sim.events[-1].warning


def test_taints_that_cannot_be_written_emit_one_warning():
    sim = running()
    sim.fails = actions.ApplyTaints
    assert events_after(sim, lambda sim: sim.edit(**TAINTED)) == ["PatchFailed"]


def test_a_failed_machine():
    failed = {"failureReason": "CreateError", "failureMessage": "no quota"}
    sim = Simulation()
    sim.settle()
    fail = {"status": {"deprecated": {"v1beta1": failed}}}
    assert events_after(sim, lambda sim: merge(sim.objects[Role.MACHINE], fail)) == ["CreateError"]
    assert (sim.events[-1].message, sim.events[-1].warning) == ("no quota", True)


def test_a_contradiction_is_a_warning():
    sim = running()
    moved = {"spec": {"providerID": "remote://another"}}
    assert events_after(sim, lambda sim: merge(sim.objects[Role.MACHINE], moved)) == ["ProviderIDChanged"]
    assert sim.events[-1].warning


def test_an_emergency_reclaim():
    sim = running()
    assert events_after(sim, CHANGES["the owner is back"]) == [
        "EmergencyReclaim",
        "MachineDeleted",
        "EmergencyReclaimDisabledSchedule",
    ]
    warned = [event.reason for event in sim.events if event.warning]
    assert warned == ["EmergencyReclaim", "EmergencyReclaimDisabledSchedule"]
    assert events_after(sim, Simulation.finish_deletion) == ["MachineRemoved"], "that it is disabled was emitted"


def test_a_remediation():
    sim = running()
    assert events_after(sim, CHANGES["health check"]) == ["Remediated", "MachineDeleted"]
    assert events_after(sim, Simulation.finish_deletion) == ["MachineRemoved", "MachineCreated"]


def test_a_health_check_that_succeeds_again():
    sim = running()
    sim.status = sim.status.model_copy(update={"remediation": Remediation(count=1, at=sim.now, machine_uid="another")})
    assert events_after(sim, CHANGES["health check"]) == ["RemediationPaused"]
    assert events_after(sim, CHANGES["health check succeeds"]) == ["RemediationCancelled", "MachineReady"]
    assert events_after(sim, CHANGES["a quarter of an hour"]) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda sim: setattr(sim, "cluster", None), "ClusterNotFound"),
        (lambda sim: setattr(sim, "cluster", cluster(deleting=True)), "ClusterDeleting"),
        (lambda sim: sim.put_foreign(Role.BOOTSTRAP), "ForeignObject"),
        (lambda sim: setattr(sim, "contract", None), "CAPINotInstalled"),
        (lambda sim: sim.edit(priority="high"), "InvalidSpec"),
        (lambda sim: setattr(sim, "fails", actions.Create), "Forbidden"),
    ],
)
def test_what_a_user_must_repair_emits_exactly_one_warning(change, reason):
    sim = Simulation(now=OPENS - SECOND)
    sim.settle()
    change(sim)
    sim.now = OPENS
    sim.step()
    sim.step()
    assert [event.reason for event in sim.events if event.warning] == [reason]


def test_a_workload_cluster_that_cannot_be_reached_emits_one_event():
    assert events_after(running(), lambda sim: setattr(sim, "reachable", False)) == ["NoAnswer"]


def test_a_deletion_that_waits_for_a_pause_is_a_warning():
    sim = running(paused=False)
    sim.paused = True
    assert events_after(sim, Simulation.delete) == ["Paused", "DeletionPaused"]
    assert sim.events[-1].warning


def test_a_finalizer_that_was_released_with_children_left_is_a_warning():
    sim = running()
    sim.delete()
    sim.settle()
    sim.after(GRACE + 10 * MINUTE)
    sim.settle()
    last = sim.events[-1]
    assert (sim.gone, last.reason, last.warning) == (True, "FinalizerReleased", True)


def test_why_a_machine_was_deleted_is_said_without_a_double_stop():
    delete = actions.Delete(Role.MACHINE, "desk-machine", "uid", "the window closed")
    (notice,) = new_events(running_status(), running_status(), PLAN, Outcome(done=(delete,)))
    assert notice.message == "Deleting Machine desk-machine: the window closed."


def test_nothing_changed_no_event():
    assert new_events(status(), status(), PLAN, Outcome()) == []


def test_warnings_are_emitted_with_the_status_and_not_while_it_cannot_be_stored():
    before = status(message="Waiting for the next window.")
    for seen, of in ((world(cluster=None), intent()), (world(), legible(broken_spec()))):
        plan = decide(of, seen, MORNING)
        assert plan.problem
        assert new_events(before, before, plan, Outcome()) == []


def test_a_spec_that_was_invalid_from_the_start_emits_one_event():
    sim = Simulation(spec=raw_spec(priority="high"), now=MORNING)
    assert events_after(sim, lambda _: None) == ["ScheduleActivated", "InvalidSpec"]


# Blocked drains


def pass_over(seen, now):
    """The status after one pass, and the reasons of its Warnings."""
    s = situation(now, seen=seen)
    plan = decide(s.intent, s.world, now)
    after = report(s, plan, Outcome(done=plan.actions))
    emitted = new_events(seen.status, after, plan, Outcome(done=plan.actions))
    return after, [notice.reason for notice in emitted if notice.warning]


def test_a_blocked_drain_warns_once_even_if_its_node_cannot_be_read_for_a_while():
    third = CLOSES + GRACE / 3
    blocked, lost = draining_world(pod()), draining_world(workload=DISCONNECTED, node=None, pods=None)
    passes = [
        (blocked, third - SECOND),
        (blocked, third),
        (blocked, third + SECOND),
        (lost, third + 2 * SECOND),
        (blocked, third + 3 * SECOND),
    ]
    warned, known = [], running_status(shutdown_started_at=CLOSES)
    for seen, now in passes:
        known, reasons = pass_over(replace(seen, status=known), now)
        warned.append([reason for reason in reasons if reason == "DrainBlocked"])
    assert warned == [[], ["DrainBlocked"], [], [], []]
