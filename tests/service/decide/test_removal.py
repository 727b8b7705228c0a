from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crds import names
from service.decide import plan as actions
from service.decide.drainrules import DRAIN_LABEL, DrainRules
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome, explain
from service.decide.plan import Plan
from service.decide.removal import RETRY_PAUSE
from service.decide.world import Contract, Refusal, Role
from tests.service.decide.builders import (
    CLOSES,
    DISCONNECTED,
    EVENING,
    GRACE,
    MINUTE,
    SECOND,
    UNLISTED,
    child,
    draining_world,
    intent,
    leaving_world,
    machine,
    node,
    pod,
    running_status,
    running_world,
    world,
)

EXCLUDED = {names.ANNOTATION_EXCLUDE_DRAIN: "5spot", names.ANNOTATION_EXCLUDE_VOLUME_DETACH: "5spot"}
EXCLUDE = {"metadata": {"annotations": EXCLUDED}}
LATER = CLOSES + 2 * MINUTE


def kinds(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


def patches(plan: Plan) -> list[Mapping[str, Any]]:
    return [action.body for action in plan.actions if isinstance(action, actions.Patch)]


def deletes(plan: Plan) -> list[actions.Delete]:
    return [action for action in plan.actions if isinstance(action, actions.Delete)]


# Drain


def test_pods_are_observed_right_after_the_shutdown_is_stored():
    plan = decide(intent(), running_world(), CLOSES)
    assert plan.requeue_after == timedelta(0)


def test_pods_are_evicted_and_asked_again_until_they_are_gone():
    plan = decide(intent(), draining_world(pod()), LATER)
    assert plan.actions == (actions.Evict((pod(),)),)
    assert (plan.reason, plan.requeue_after) == ("Draining", None)
    assert "1 pod(s) left" in plan.message


def test_pods_that_are_terminating_are_waited_for():
    plan = decide(intent(), draining_world(pod(deleting=True)), LATER)
    assert (plan.actions, plan.requeue_after) == ((), None)
    ends = "The Machine is deleted at 18:05:00 UTC anyway."
    assert plan.message == f"Draining Node node-7: 1 pod(s) left, terminating: apps/web. {ends}"


@pytest.mark.parametrize(("count", "named"), [(3, "apps/p0, apps/p1, apps/p2."), (5, "apps/p2 and 2 more.")])
def test_some_of_the_pods_that_are_terminating_are_named_and_the_others_counted(count, named):
    going = [pod(f"p{number}", deleting=True) for number in range(count)]
    assert f"{named} The Machine" in decide(intent(), draining_world(*going), LATER).message


def test_a_drain_is_requeued_for_when_it_counts_as_blocked_and_for_its_deadline():
    third = CLOSES + GRACE / 3
    assert decide(intent(), draining_world(pod()), CLOSES).requeue_at == third
    assert decide(intent(), draining_world(pod()), third).requeue_at == CLOSES + GRACE


def test_a_refused_eviction_is_left_alone_until_its_pause_is_over():
    refused = pod(refusal=Refusal("The disruption budget keep needs 1 healthy pods", 7 * SECOND))
    plan = decide(intent(), draining_world(refused), LATER)
    assert (plan.actions, plan.requeue_after) == ((), 7 * SECOND)
    assert "Held up by apps/web: The disruption budget keep" in explain(plan, Outcome())


def test_pods_and_rules_without_a_watch_are_requeued():
    plan = decide(intent(), draining_world(pod(deleting=True), pods_requeue_after=20 * SECOND), LATER)
    assert plan.requeue_after == 20 * SECOND


def test_rules_that_cannot_be_read_are_named_and_the_machine_goes_at_its_time_all_the_same():
    seen = draining_world(pod(), drain_rules=DrainRules(problem="MachineDrainRule jobs cannot be read: why"))
    plan = decide(intent(), seen, LATER)
    assert plan.actions == ()
    assert "no pod is evicted, because MachineDrainRule jobs cannot be read: why" in plan.message
    assert [delete.undrained for delete in deletes(decide(intent(), seen, CLOSES + GRACE))] == [True]


def test_on_a_node_whose_kubelet_does_not_report_pods_get_a_second_and_are_not_waited_for():
    lost = node(unschedulable=True, ready=False, unreachable=True)
    assert decide(intent(), draining_world(pod(), node=lost), LATER).actions == (actions.Evict((pod(),), 1),)
    going = pod(deleting=True, deleted_at=LATER + SECOND)
    assert decide(intent(), draining_world(going, node=lost), LATER).requeue_at == LATER + 3 * SECOND
    assert deletes(decide(intent(), draining_world(going, node=lost), LATER + 3 * SECOND))


def test_cluster_api_does_not_drain_where_it_would_wait_for_a_pod_that_has_completed():
    job = pod(labels={DRAIN_LABEL: "wait-completed"})
    assert deletes(decide(intent(), draining_world(job), LATER)) == []
    plan = decide(intent(), draining_world(replace(job, finished=True)), LATER)
    (patch,) = patches(plan)
    assert patch["metadata"]["annotations"] == {names.ANNOTATION_EXCLUDE_DRAIN: "5spot"}
    assert "spec" in patch
    assert deletes(plan)


def test_the_machine_is_deleted_as_soon_as_the_node_is_drained():
    plan = decide(intent(), draining_world(pod("log", controller_kind="DaemonSet")), LATER)
    assert [delete.role for delete in deletes(plan)] == [Role.MACHINE]
    assert (plan.reason, plan.message) == ("DeletingMachine", "Deleting Machine desk-machine.")
    assert not deletes(plan)[0].undrained
    assert plan.drain is not None
    assert plan.drain.done


def test_a_cordon_that_a_user_undid_is_restored():
    plan = decide(intent(), draining_world(pod(), node=node()), LATER)
    assert kinds(plan) == ["Cordon", "Evict"]


def test_an_empty_node_is_closed_before_its_machine_is_deleted():
    plan = decide(intent(), draining_world(node=node()), LATER)
    assert (kinds(plan)[0], kinds(plan)[-1]) == ("Cordon", "Delete")


def test_a_node_that_an_administrator_cordoned_is_not_marked_as_ours():
    plan = decide(intent(), running_world(node=node(unschedulable=True)), CLOSES)
    assert kinds(plan) == ["RecordShutdown"]


# Whether there is anything to drain


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param({"machine": machine(node_name=None), "node": None, "workload": None}, id="no Node ever joined"),
        pytest.param({"node": None}, id="the Node is gone"),
        pytest.param({"node": node(provider_id="remote://another")}, id="the name belongs to another host"),
        pytest.param({"node": node(provider_id=None)}, id="a Node without providerID is unowned"),
    ],
)
def test_without_a_node_of_ours_the_machine_is_deleted_right_away(seen):
    plan = decide(intent(), running_world(**seen), CLOSES)
    assert kinds(plan) == ["RecordShutdown", "Delete"]


def test_the_node_of_another_host_is_neither_cordoned_nor_drained_when_the_providerid_changed():
    changed = machine(provider_id="remote://another")
    seen = draining_world(pod(), machine=changed, node=node(provider_id="remote://another"))
    assert not {"Cordon", "Evict"} & set(kinds(decide(intent(), seen, LATER)))


@pytest.mark.parametrize("workload", [None, DISCONNECTED, UNLISTED], ids=["not yet", "unreachable", "unlisted"])
def test_the_node_of_another_host_is_not_cordoned_while_its_cluster_is_out_of_reach(workload):
    seen = running_world(node=node(provider_id="remote://another"), workload=workload)
    assert kinds(decide(intent(), seen, CLOSES)) == ["RecordShutdown"]


# An unreachable workload cluster


def test_pods_that_could_not_be_listed_once_are_asked_for_again_soon():
    seen = running_world(status=running_status(shutdown_started_at=CLOSES), workload=UNLISTED, node=None)
    plan = decide(intent(), seen, LATER)
    assert (plan.reason, plan.requeue_after) == ("WorkloadClusterUnreachable", RETRY_PAUSE)


def test_a_node_whose_pods_could_not_be_listed_is_cordoned_but_never_taken_for_drained():
    seen = draining_world(workload=UNLISTED, node=node(), pods=None)
    waiting, over = decide(intent(), seen, LATER), decide(intent(), seen, CLOSES + GRACE)
    assert (kinds(waiting), waiting.drain, waiting.requeue_at) == (["Cordon"], None, CLOSES + GRACE)
    assert (waiting.reason, waiting.requeue_after) == ("WorkloadClusterUnreachable", RETRY_PAUSE)
    assert [one.undrained for one in deletes(over)] == [True]


@pytest.mark.parametrize("workload", [None, DISCONNECTED], ids=["not connected yet", "unreachable"])
def test_an_unreachable_workload_cluster_is_waited_for_up_to_the_drain_timeout(workload):
    seen = running_world(status=running_status(shutdown_started_at=CLOSES), workload=workload, node=None)
    waiting = decide(intent(), seen, LATER)
    assert (waiting.reason, waiting.actions) == ("WorkloadClusterUnreachable", ())
    assert (waiting.requeue_at, waiting.requeue_after) == (CLOSES + GRACE, None)
    assert f"unreachable ({workload.message if workload else 'not connected yet'})" in waiting.message
    assert "deleted at 18:05:00 UTC" in waiting.message
    assert deletes(decide(intent(), seen, CLOSES + GRACE))


# Timeouts: the shorter wins, both count from shutdownStartedAt


@pytest.mark.parametrize(
    ("grace", "drain", "ends"),
    [("5m", "2m", 2 * MINUTE), ("2m", "5m", 2 * MINUTE), ("5m", "5m", 5 * MINUTE), ("1s", "1s", SECOND)],
)
def test_the_shorter_of_grace_and_drain_timeout_ends_the_drain(grace, drain, ends):
    asked = intent(gracefulShutdownTimeout=grace, nodeDrainTimeout=drain)
    held = draining_world(pod())
    before, after = decide(asked, held, CLOSES + ends - SECOND / 2), decide(asked, held, CLOSES + ends)
    assert (before.reason, before.requeue_at) == ("Draining", CLOSES + ends)
    assert after.reason == "DrainTimedOut"
    assert "not all pods left in time" in after.message
    assert [delete.undrained for delete in deletes(after)] == [True]


def test_a_longer_timeout_given_during_the_shutdown_counts_at_once():
    held = draining_world(pod())
    assert decide(intent(), held, CLOSES + GRACE).reason == "DrainTimedOut"
    longer = intent(gracefulShutdownTimeout="1h", nodeDrainTimeout="1h")
    assert decide(longer, held, CLOSES + GRACE).reason == "Draining"


def test_a_node_that_is_found_empty_after_its_time_was_drained_all_the_same():
    """As after an outage of the operator: the pods left in time, but no pass ran."""
    empty = draining_world(pod("log", controller_kind="DaemonSet"))
    plan = decide(intent(), empty, CLOSES + GRACE)
    assert (plan.reason, [one.undrained for one in deletes(plan)]) == ("DeletingMachine", [False])
    assert patches(plan) == [EXCLUDE]
    assert plan.drain is not None
    assert plan.drain.done
    assert "Cordon" not in kinds(plan), "one that is refused would hold it up for ever"


# Just before the DELETE


@pytest.mark.parametrize("contract", list(Contract))
def test_capis_own_waits_are_bounded_by_what_is_left(contract):
    asked = intent(gracefulShutdownTimeout="5m", nodeDrainTimeout="3m")
    plan = decide(asked, draining_world(contract=contract), LATER)
    spec = {
        Contract.V1BETA1: {
            "nodeDrainTimeout": "60s",
            "nodeVolumeDetachTimeout": "180s",
            "nodeDeletionTimeout": "10s",
        },
        Contract.V1BETA2: {
            "deletion": {
                "nodeDrainTimeoutSeconds": 60,
                "nodeVolumeDetachTimeoutSeconds": 180,
                "nodeDeletionTimeoutSeconds": 10,
            }
        },
    }[contract]
    assert kinds(plan) == ["Patch", "Delete"]
    assert patches(plan) == [{"spec": spec}]


def test_a_drain_that_timed_out_leaves_capi_one_second_and_the_rest_of_the_grace_for_volumes():
    asked = intent(gracefulShutdownTimeout="5m", nodeDrainTimeout="2m")
    plan = decide(asked, draining_world(pod()), CLOSES + 2 * MINUTE)
    bounded = {
        "nodeDrainTimeoutSeconds": 1,
        "nodeVolumeDetachTimeoutSeconds": 180,
        "nodeDeletionTimeoutSeconds": 10,
    }
    assert patches(plan) == [{"spec": {"deletion": bounded}}]
    assert plan.requeue_at == CLOSES + GRACE


@pytest.mark.parametrize("late", [timedelta(0), SECOND / 2, -SECOND / 2, timedelta(hours=9)])
def test_with_nothing_left_of_the_grace_capi_waits_for_neither_pods_nor_volumes(late):
    asked = intent(gracefulShutdownTimeout="5m", nodeDrainTimeout="4m")
    plan = decide(asked, draining_world(pod()), CLOSES + GRACE + late)
    assert patches(plan) == [EXCLUDE]
    assert plan.requeue_at is None or plan.requeue_at > CLOSES + GRACE + late


def test_the_kill_switch_keeps_capi_from_draining():
    plan = decide(intent(killSwitch=True), running_world(), EVENING)
    assert patches(plan) == [EXCLUDE]
    assert kinds(plan)[-1] == "Delete"


def test_after_a_kill_switch_that_was_called_off_capi_drains_again():
    stale = machine(of={"annotations": EXCLUDED}, node_name=None)
    plan = decide(intent(), running_world(machine=stale, node=None), CLOSES)
    assert patches(plan) == [{"metadata": {"annotations": dict.fromkeys(EXCLUDED)}}]
    assert kinds(plan)[-1] == "Delete"


def test_timeouts_that_are_right_already_are_not_written_again():
    plan = decide(intent(), running_world(machine=machine(node_name=None), node=None), CLOSES)
    assert kinds(plan) == ["RecordShutdown", "Delete"]


# A Machine that is leaving


def test_only_the_machine_is_deleted_and_the_rest_left_to_capi():
    plan = decide(intent(), leaving_world(), LATER)
    assert (plan.actions, plan.reason, plan.requeue_at) == ((), "DeletingMachine", CLOSES + GRACE)


def test_capi_is_hurried_when_the_grace_is_up_also_on_a_machine_that_is_being_deleted():
    plan = decide(intent(), leaving_world(), CLOSES + GRACE)
    assert patches(plan) == [EXCLUDE]
    assert plan.requeue_at != CLOSES + GRACE


def test_capi_is_hurried_at_once_by_the_kill_switch():
    assert patches(decide(intent(killSwitch=True), leaving_world(), LATER)) == [EXCLUDE]


def test_capi_is_hurried_only_once():
    hurried = leaving_world(machine=machine(of={"deleting": True, "annotations": EXCLUDED}))
    assert decide(intent(), hurried, CLOSES + GRACE).actions == ()


def test_a_machine_that_a_user_deleted_gets_a_deadline_too():
    plan = decide(intent(), leaving_world(since=None), EVENING)
    assert plan.actions == (actions.RecordShutdown(EVENING),)
    assert plan.requeue_at == EVENING + GRACE


def test_what_capi_waits_for_is_passed_on():
    waiting = machine(of={"deleting": True}, waiting_for="InfrastructureReady: powering off")
    assert "powering off" in decide(intent(), leaving_world(machine=waiting), LATER).message


# When the Machine is gone


def left_over(**seen):
    status = running_status(shutdown_started_at=CLOSES)
    both = {"bootstrap": child(Role.BOOTSTRAP), "infrastructure": child(Role.INFRASTRUCTURE)}
    return world(**{"status": status, **both, **seen})


def test_when_the_machine_is_gone_whatever_is_left_is_deleted():
    plan = decide(intent(), left_over(), LATER)
    assert [delete.role for delete in deletes(plan)] == [Role.INFRASTRUCTURE, Role.BOOTSTRAP]
    assert plan.message == "Waiting for the deletion of RemoteMachine desk-infra, K0sWorkerConfig desk-bootstrap."


@pytest.mark.parametrize("contract", [None, Contract.V1BETA2], ids=["unseen", "gone"])
def test_when_the_machine_is_gone_the_shutdown_goes_on_until_the_rest_is(contract):
    assert decide(intent(), left_over(contract=contract), LATER).shutdown == CLOSES


def test_what_is_leaving_already_is_not_deleted_twice():
    plan = decide(intent(), left_over(infrastructure=child(Role.INFRASTRUCTURE, deleting=True)), LATER)
    assert [delete.role for delete in deletes(plan)] == [Role.BOOTSTRAP]


def test_foreign_objects_are_never_deleted():
    plan = decide(intent(), left_over(infrastructure=child(Role.INFRASTRUCTURE, ours=False)), LATER)
    assert [delete.role for delete in deletes(plan)] == [Role.BOOTSTRAP]


def test_infrastructure_is_not_taken_from_a_machine_that_only_cannot_be_seen():
    plan = decide(intent(), left_over(contract=None), LATER)
    assert (plan.actions, plan.reason) == ((), "CAPINotInstalled")


def test_every_delete_and_patch_carries_the_uid_that_was_seen():
    plan = decide(intent(killSwitch=True), running_world(), EVENING)
    guarded = [action for action in plan.actions if isinstance(action, actions.Delete | actions.Patch)]
    assert {action.uid for action in guarded} == {"uid-of-desk-machine"}
