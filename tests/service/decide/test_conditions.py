from dataclasses import replace

import pytest

from crds.status import AppliedTaint, Condition, ConditionStatus, Effect, Phase
from service.decide import plan as actions
from service.decide.conditions import conditions
from service.decide.drainrules import DRAIN_LABEL
from service.decide.drift import SpecChange
from service.decide.lifecycle import decide
from service.decide.outcome import Failure, Outcome
from service.decide.reasons import Reason
from service.decide.world import HostConflict, Role
from tests.service.decide.builders import (
    CLOSES,
    DISCONNECTED,
    EVENING,
    FAILURE,
    MINUTE,
    MORNING,
    SECOND,
    SPEC,
    broken_spec,
    child,
    cluster,
    cordoned_node,
    draining_world,
    identity,
    intent,
    legible,
    machine,
    new_machine,
    node,
    pod,
    running_status,
    running_world,
    situation,
    status,
    taint,
    unreadable_spec,
    world,
)

TAINTED = {"nodeTaints": [{"key": "workload", "value": "batch", "effect": "NoSchedule"}]}
EDITED = {"bootstrapSpec": {**SPEC["bootstrapSpec"], "spec": {"version": "v2"}}}


def reported(seen=None, now=MORNING, of=None, outcome=None) -> dict[str, Condition]:
    s = situation(now, of=of, seen=seen)
    plan = decide(s.intent, s.world, now)
    return {one.type: one for one in conditions(s, plan, outcome or Outcome(done=plan.actions))}


def short(condition: Condition) -> tuple[str, str]:
    return condition.status, condition.reason


def failure_of(kind: type, seen=None, of=None, now=MORNING) -> Outcome:
    plan = decide(of or intent(), seen or running_world(), now)
    failed = next(action for action in plan.actions if isinstance(action, kind))
    return Outcome(failure=Failure(failed, Reason.FORBIDDEN, "the API server says no"))


# Ready


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (running_world(), ("True", "MachineRunning")),
        (running_world(node=node(ready=False)), ("False", "NodeNotReady")),
        (running_world(node=None), ("False", "WaitingForNode")),
        (running_world(machine=new_machine(), node=None, status=status()), ("False", "MachineProvisioning")),
        (running_world(machine=machine(provider_id="remote://another")), ("False", "ProviderIDChanged")),
        (running_world(infrastructure=None), ("False", "InfrastructureGone")),
        (world(cluster=None), ("False", "ClusterNotFound")),
    ],
)
def test_ready_is_true_only_when_the_node_is_ready(seen, expected):
    assert short(reported(seen)["Ready"]) == expected


def test_ready_is_false_with_a_ready_node_that_is_being_drained():
    assert short(reported(draining_world(pod()), CLOSES + MINUTE)["Ready"]) == ("False", "Draining")


def test_ready_names_the_failure():
    failed = failure_of(actions.Create, world())
    ready = reported(world(), outcome=failed)["Ready"]
    assert (short(ready), ready.message) == (("False", "Forbidden"), "the API server says no")


def test_ready_is_false_with_a_ready_node_while_something_about_its_machine_fails():
    spoiled = running_world(machine=machine(of={"labels": {}}))
    assert short(reported(spoiled, outcome=failure_of(actions.Patch, spoiled))["Ready"]) == ("False", "Forbidden")


# Scheduled


@pytest.mark.parametrize(
    ("of", "now", "expected"),
    [
        (intent(), MORNING, ("True", "ScheduleActive")),
        (intent(), EVENING, ("False", "OutsideSchedule")),
        (intent(schedule={"enabled": False}), MORNING, ("False", "ScheduleDisabled")),
        (legible(unreadable_spec()), MORNING, ("Unknown", "InvalidSchedule")),
    ],
)
def test_scheduled_says_whether_a_window_is_open(of, now, expected):
    assert short(reported(world(), now, of)["Scheduled"]) == expected


def test_scheduled_spells_the_schedule_out():
    assert reported()["Scheduled"].message == "Current time is within schedule: mon-fri 9-17 UTC"


# MachineReady


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (running_world(), ("True", "MachineReady")),
        (running_world(machine=new_machine(), status=status()), ("False", "MachineProvisioning")),
        (running_world(machine=machine(of={"deleting": True})), ("False", "MachineDeleting")),
        (world(), ("False", "NoMachine")),
        (running_world(machine=new_machine(failure=FAILURE), node=None, status=status()), ("False", FAILURE.reason)),
        (running_world(machine=machine(node_name="node-8")), ("False", "NodeRefChanged")),
    ],
)
def test_machine_ready_follows_the_capi_machine(seen, expected):
    assert short(reported(seen, EVENING)["MachineReady"]) == expected


def test_the_message_of_a_failed_machine_is_bubbled_up():
    failed = running_world(machine=new_machine(failure=FAILURE), node=None, status=status())
    assert reported(failed)["MachineReady"].message == reported(failed)["Ready"].message == FAILURE.message


# ReferencesValid


@pytest.mark.parametrize(
    ("seen", "of", "reason"),
    [
        (world(cluster=None), None, "ClusterNotFound"),
        (world(cluster=cluster(deleting=True)), None, "ClusterDeleting"),
        (running_world(cluster=None), None, "ClusterNotFound"),
        (world(bootstrap=child(Role.BOOTSTRAP, ours=False)), None, "ForeignObject"),
        (world(), legible(unreadable_spec()), "InvalidSpec"),
    ],
)
def test_references_valid_is_false_with_the_reason(seen, of, reason):
    assert short(reported(seen, of=of)["ReferencesValid"]) == ("False", reason)


@pytest.mark.parametrize("edit", [{"schedule": {"enabled": False}}, {"killSwitch": True}], ids=["disabled", "killed"])
def test_references_valid_reports_what_is_wrong_even_if_another_rule_decides(edit):
    gone = reported(running_world(cluster=None), of=intent(**edit))["ReferencesValid"]
    assert short(gone) == ("False", "ClusterNotFound")
    assert gone.message == "Cluster prod does not exist in namespace team; create it, or correct spec.clusterName."
    taken = reported(world(machine=machine(of={"ours": False})), of=intent(**edit))["ReferencesValid"]
    assert short(taken) == ("False", "ForeignObject")


def test_without_cluster_api_it_is_unknown_whether_references_are_valid():
    without = reported(world(contract=None, cluster=None))
    assert short(without["ReferencesValid"]) == ("Unknown", "CAPINotInstalled")


def test_references_valid_is_true_otherwise():
    assert short(reported()["ReferencesValid"])[0] == "True"


def test_references_valid_is_not_judged_again_while_paused():
    """What was wrong with a provider, say, is not known to be right because nothing was tried."""
    bad = reported(world(cluster=None))["ReferencesValid"]
    mended = world(status=status(conditions=(bad,)))
    assert short(reported(mended)["ReferencesValid"])[0] == "True"
    kept = reported(replace(mended, me=identity(paused=True)))["ReferencesValid"]
    assert (short(kept), kept.message) == (("False", "ClusterNotFound"), bad.message)


@pytest.mark.parametrize("reason", ["ProviderNotFound", "ProviderRejected"])
def test_references_valid_is_false_when_a_provider_does_not_take_its_part(reason):
    create = decide(intent(), world(), MORNING).actions[0]
    refused = reported(world(), outcome=Outcome(failure=Failure(create, reason, "no such kind")))["ReferencesValid"]
    assert (short(refused), refused.message) == (("False", reason), "no such kind")


def test_references_valid_is_false_of_an_invalid_spec_though_it_is_disabled():
    disabled = legible(broken_spec(schedule={"enabled": False}))
    assert short(reported(world(), of=disabled)["ReferencesValid"]) == ("False", "InvalidSpec")


@pytest.mark.parametrize(
    "lost", [{"machine": machine(of={"deleting": True})}, {"infrastructure": None}], ids=["deleting", "failed"]
)
def test_a_machine_that_is_lost_while_everything_is_paused_is_not_ready_though_its_phase_stays(lost):
    before = running_status(phase=Phase.ACTIVE)
    fine = running_world(me=identity(paused=True), status=before)
    seen = running_world(me=identity(paused=True), status=before, **lost)
    assert short(reported(fine)["Ready"]) == ("True", "Paused")
    assert short(reported(seen)["Ready"]) == ("False", "Paused")


# NodeTainted: the five reasons


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (running_world(node=None), ("Unknown", "NoNodeYet")),
        (running_world(node=node(provider_id="remote://another")), ("Unknown", "NoNodeYet")),
        (running_world(node=node(ready=False)), ("False", "NodeNotReady")),
        (running_world(node=node(taints=(taint(value="admin"),))), ("False", "TaintOwnershipConflict")),
        (running_world(), ("True", "Applied")),
    ],
)
def test_node_tainted(seen, expected):
    assert short(reported(seen, of=intent(**TAINTED))["NodeTainted"]) == expected


def test_node_tainted_says_when_the_patch_failed():
    tainted = intent(**TAINTED)
    condition = reported(of=tainted, outcome=failure_of(actions.ApplyTaints, of=tainted))["NodeTainted"]
    assert (short(condition), condition.message) == (("False", "PatchFailed"), "the API server says no")


def test_node_tainted_ignores_other_failures():
    spoiled = running_world(machine=machine(of={"labels": {}}))
    failed = failure_of(actions.Patch, spoiled, of=intent(**TAINTED))
    assert "NodeTainted" not in reported(spoiled, of=intent(**TAINTED), outcome=failed)


def test_node_tainted_says_whether_the_node_was_ever_seen():
    gone, new = running_world(node=None), running_world(node=None, status=status())
    first, second = (reported(seen, of=intent(**TAINTED))["NodeTainted"].message for seen in (gone, new))
    assert first == "The Node of this machine cannot be seen at present."
    assert second == "The Node of this machine has not been seen yet."


def test_without_a_machine_nothing_is_said_of_taints():
    assert "NodeTainted" not in reported(world(), EVENING, intent(**TAINTED))


def test_a_taint_that_left_the_spec_and_that_a_user_changed_is_still_a_conflict():
    applied = (AppliedTaint(key="workload", value="batch", effect=Effect.NO_SCHEDULE),)
    changed = node(taints=(taint(value="admin"),))
    seen = running_world(status=running_status(applied_node_taints=applied), node=changed)
    assert short(reported(seen)["NodeTainted"]) == ("False", "TaintOwnershipConflict")


def test_taints_that_could_not_be_written_yet_are_not_called_applied():
    assert "NodeTainted" not in reported(of=intent(**TAINTED), outcome=Outcome(interrupted=True))


def test_a_conflict_names_the_taint_and_what_to_do():
    seen = running_world(node=node(taints=(taint(value="admin"),)))
    message = reported(seen, of=intent(**TAINTED))["NodeTainted"].message
    assert "workload=admin:NoSchedule" in message
    assert "Remove it" in message


@pytest.mark.parametrize("seen", [running_world(), world()])
def test_without_declared_taints_nothing_is_said_of_them(seen):
    assert "NodeTainted" not in reported(seen)


def test_taints_taken_out_of_the_spec_are_forgotten_once_they_are_off_the_node():
    applied = (AppliedTaint(key="workload", value="batch", effect=Effect.NO_SCHEDULE),)
    seen = running_world(status=running_status(applied_node_taints=applied), node=node(taints=(taint(),)))
    assert "NodeTainted" not in reported(seen)


# Outside the rule that keeps taints right: whether they are there is reported, not remembered

DISABLED = {"schedule": {"enabled": False}}
OURS = (AppliedTaint(key="workload", value="batch", effect=Effect.NO_SCHEDULE),)


def remembered(reason: str, status: ConditionStatus) -> Condition:
    return Condition(
        type="NodeTainted", status=status, reason=reason, message="As it was.", last_transition_time=MORNING
    )


def tainted_before(reason="Applied", status="True", **fields):
    return running_status(applied_node_taints=OURS, conditions=(remembered(reason, status),), **fields)


def test_taints_that_are_on_the_node_are_still_called_applied_during_a_shutdown():
    there = cordoned_node(taints=(taint(),))
    seen = draining_world(pod(), status=tainted_before(shutdown_started_at=CLOSES), node=there)
    kept = reported(seen, CLOSES + MINUTE, intent(**TAINTED))["NodeTainted"]
    assert (short(kept), kept.last_transition_time) == (("True", "Applied"), MORNING)


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(("ml",), id="another value"),
        pytest.param((), id="no taint any more"),
    ],
)
def test_taints_edited_while_the_schedule_is_disabled_are_not_called_applied(declared):
    edited = {"nodeTaints": [{"key": "workload", "value": value, "effect": "NoSchedule"} for value in declared]}
    seen = running_world(status=tainted_before(), node=node(taints=(taint(),)))
    assert "NodeTainted" not in reported(seen, of=intent(**edited, **DISABLED))


def test_taints_edited_during_a_shutdown_are_not_called_applied():
    there = cordoned_node(taints=(taint(),))
    seen = draining_world(pod(), status=tainted_before(shutdown_started_at=CLOSES), node=there)
    edited = intent(nodeTaints=[{"key": "workload", "value": "ml", "effect": "NoSchedule"}])
    assert "NodeTainted" not in reported(seen, CLOSES + MINUTE, edited)


def test_taints_that_a_user_removed_during_a_pause_are_not_reported_as_applied():
    assert "NodeTainted" not in reported(running_world(status=tainted_before()), of=intent(**TAINTED, **DISABLED))


def test_taints_of_a_spec_that_cannot_be_read_are_not_called_applied():
    seen = running_world(status=tainted_before(), node=node(taints=(taint(),)))
    assert "NodeTainted" not in reported(seen, of=legible(broken_spec(**TAINTED)))


@pytest.mark.parametrize("reason", ["NoNodeYet", "NodeNotReady", "TaintOwnershipConflict"])
def test_a_taint_conflict_that_is_gone_is_not_reported_for_a_disabled_schedule(reason):
    assert "NodeTainted" not in reported(
        running_world(status=tainted_before(reason, "False")), of=intent(**TAINTED, **DISABLED)
    )


def test_a_taint_conflict_is_reported_for_a_disabled_schedule_too():
    seen = running_world(status=tainted_before(), node=node(taints=(taint(value="admin"),)))
    assert short(reported(seen, of=intent(**TAINTED, **DISABLED))["NodeTainted"]) == ("False", "TaintOwnershipConflict")


def test_that_the_last_patch_of_taints_failed_stays_true_until_there_is_another():
    seen = running_world(status=tainted_before("PatchFailed", "False"))
    kept = reported(seen, of=intent(**TAINTED, **DISABLED))["NodeTainted"]
    assert (short(kept), kept.message) == (("False", "PatchFailed"), "As it was.")


# The others


def test_paused_appears_only_while_paused():
    assert short(reported(running_world(me=identity(paused=True)))["Paused"]) == ("True", "Paused")
    assert "Paused" not in reported()


@pytest.mark.parametrize(
    ("of", "seen", "expected"),
    [
        (intent(), running_world(), ("True", "UpToDate")),
        (intent(**EDITED), running_world(), ("False", "AppliesAtNextCreation")),
        (intent(machineTemplate={"version": "v1.34.2"}), running_world(), ("False", "AppliesAtNextCreation")),
        (intent(machineTemplate={"failureDomain": "b"}), running_world(), ("False", "AppliesAtNextCreation")),
        (intent(machineTemplate={"labels": {"rack": "4"}}), running_world(), ("True", "UpToDate")),
        (
            intent(),
            running_world(spec_changes=(SpecChange("spec.address", "kubectl-edit"),)),
            ("False", "ProviderSpecChanged"),
        ),
    ],
)
def test_up_to_date(of, seen, expected):
    assert short(reported(seen, of=of)["UpToDate"]) == expected


def test_drift_names_the_field_and_who_changed_it():
    seen = running_world(spec_changes=(SpecChange("spec.address", "kubectl-edit"),))
    assert "spec.address (by kubectl-edit)" in reported(seen)["UpToDate"].message


def test_the_condition_stays_if_the_author_of_a_change_is_not_known():
    assert "UpToDate" not in reported(running_world(spec_changes=None))
    known = reported(running_world(spec_changes=(SpecChange("spec.address", "kubectl-edit"),)))["UpToDate"]
    unknown = running_world(spec_changes=None, status=running_status(conditions=(known,)))
    assert short(reported(unknown)["UpToDate"]) == ("False", "ProviderSpecChanged")


@pytest.mark.parametrize("seen", [world(), running_world(machine=machine(of={"deleting": True}))])
def test_up_to_date_is_about_a_machine_that_stays(seen):
    assert "UpToDate" not in reported(seen)


def test_capi_available_is_false_without_capi():
    assert short(reported(world(contract=None))["CAPIAvailable"]) == ("False", "CAPINotInstalled")


def test_workload_cluster_reachable_once_it_is_needed():
    assert short(reported()["WorkloadClusterReachable"]) == ("True", "Reachable")
    down = reported(running_world(workload=DISCONNECTED, node=None))["WorkloadClusterReachable"]
    assert (short(down), down.message) == (("False", "NoAnswer"), "connection refused")
    assert "WorkloadClusterReachable" not in reported(world())


@pytest.mark.parametrize(("namespace", "named"), [("team", True), ("secret", False)])
def test_host_conflict_names_the_other_only_in_our_own_namespace(namespace, named):
    condition = reported(world(host_conflict=HostConflict(namespace, "Rack-B")))["HostConflict"]
    assert short(condition) == ("True", "HostConflict")
    assert ("ScheduledMachine Rack-B" in condition.message) is named
    assert "secret" not in condition.message


# Bookkeeping


def test_last_transition_time_moves_only_when_the_status_flips():
    first = reported(running_world())
    known = running_status(conditions=tuple(first.values()))
    later = reported(running_world(status=known, node=node(ready=False)), MORNING + MINUTE)
    assert later["Ready"].last_transition_time == MORNING + MINUTE
    assert later["Scheduled"].last_transition_time == MORNING
    other_reason = running_world(status=running_status(conditions=tuple(later.values())), node=None)
    assert reported(other_reason, MORNING + 2 * MINUTE)["Ready"].last_transition_time == MORNING + MINUTE


def test_every_condition_carries_the_generation_and_a_message():
    every_condition = reported(running_world(me=identity(generation=7)), of=intent(**TAINTED)).values()
    assert {condition.observed_generation for condition in every_condition} == {7}
    assert all(condition.message for condition in every_condition)


def test_there_is_one_condition_of_a_type():
    assert len(reported()) == len(conditions(situation(), decide(intent(), running_world(), MORNING), Outcome()))


# A Machine that cannot be seen


def test_nothing_is_claimed_of_a_machine_that_cannot_be_seen():
    applied = AppliedTaint(key="workload", value="batch", effect=Effect.NO_SCHEDULE)
    seen = world(contract=None, cluster=None, status=running_status(applied_node_taints=(applied,)))
    conditions = reported(seen, of=intent(**TAINTED))
    assert short(conditions["MachineReady"]) == ("Unknown", "CAPINotInstalled")
    assert short(conditions["NodeTainted"]) == ("Unknown", "NoNodeYet")


# Drained

THIRD = CLOSES + 100 * SECOND


def drained(seen, now) -> tuple[str, str] | None:
    found = reported(seen, now).get("Drained")
    return short(found) if found else None


def test_how_far_a_drain_is_stands_in_a_condition_of_its_own():
    assert drained(draining_world(pod()), CLOSES + MINUTE) == ("False", "Draining")
    assert drained(draining_world(pod()), THIRD - SECOND) == ("False", "Draining")
    assert drained(draining_world(pod()), THIRD) == ("False", "DrainBlocked")
    assert drained(draining_world(), THIRD) == ("True", "NodeDrained")
    assert drained(draining_world(pod()), CLOSES + 5 * MINUTE) == ("False", "DrainTimedOut")
    assert drained(running_world(), MORNING) is None


def test_the_condition_of_a_drain_stays_while_its_node_cannot_be_read_and_while_the_machine_goes():
    known = reported(draining_world(pod()), THIRD)["Drained"]
    before = running_status(shutdown_started_at=CLOSES, conditions=(known,))
    unseen = running_world(status=before, workload=DISCONNECTED, node=None)
    assert drained(unseen, THIRD + MINUTE) == ("False", "DrainBlocked")
    leaving = running_world(status=before, machine=machine(of={"deleting": True}))
    assert drained(leaving, THIRD + MINUTE) == ("False", "DrainBlocked")


def test_a_blocked_drain_names_its_pods_and_when_waiting_ends():
    message = reported(draining_world(pod(labels={DRAIN_LABEL: "wait-completed"})), THIRD)["Drained"].message
    assert "waiting for completion: apps/web" in message
    assert "The Machine is deleted at 18:05:00 UTC anyway." in message
