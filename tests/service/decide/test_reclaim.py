"""Emergency reclaim as a rule: when it holds, what it does in which order, when it is over, and the way back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crds import names
from crds.status import NodeReference, PastReclaim, Phase, Reclaim
from service.decide import plan as actions
from service.decide.lifecycle import decide
from service.decide.plan import Plan
from service.decide.reclaim import GITOPS_MANAGERS
from service.decide.world import Contract, Role, World
from tests.service.decide import builders
from tests.service.decide.builders import (
    DISCONNECTED,
    EVENING,
    MINUTE,
    MORNING,
    UNLISTED,
    cluster,
    identity,
    intent,
    leaving_world,
    machine,
    node,
    running_status,
    running_world,
    world,
)
from tests.service.decide.invariants import condition
from tests.service.decide.simulation import Crash, Simulation, running

ASKED = dict(zip(names.RECLAIM_ANNOTATIONS, ("true", 'process "idea" matched', "2026-03-02T10:00:00Z"), strict=True))
PERSONS_TOOLS = ("kubectl-patch", "kubectl-client-side-apply", "k9s", "oc", "node-fetch", "Mozilla", "headlamp", "new")
UNDER_WAY = Reclaim(requested_at=MORNING, reason="idea", node="node-7", machine_uid=builders.child(Role.MACHINE).uid)
SEVEN_STEPS = [
    actions.RecordReclaim,
    actions.ForceDrain,
    actions.RecordShutdown,
    actions.Patch,
    actions.Delete,
    actions.DisableSchedule,
    actions.RemoveAgent,
    actions.ClearReclaimRequest,
]


def asking(**seen) -> World:
    """A running machine whose Node asks to be left alone."""
    return running_world(**{"node": node(annotations=ASKED), **seen})


def under_way(**seen) -> World:
    """The request is stored, nothing else is done."""
    return asking(**{"status": running_status(reclaim=UNDER_WAY), **seen})


def kinds(plan: Plan) -> list[type]:
    return [type(action) for action in plan.actions]


def ejected(sim: Simulation) -> None:
    """The owner comes back, and everything runs its course."""
    sim.ask_back()
    sim.settle()
    sim.finish_deletion()
    sim.settle()


# When it holds


def test_the_request_is_stored_before_anything_else_happens():
    plan = decide(intent(), asking(), MORNING)
    (record,) = plan.actions
    assert record == actions.RecordReclaim(
        Reclaim(requested_at=MORNING, reason=ASKED[names.ANNOTATION_RECLAIM_REASON], node="node-7",
                machine_uid=UNDER_WAY.machine_uid)
    )  # fmt: skip
    assert (plan.phase, plan.reason, plan.requeue_after) == (Phase.EMERGENCY_REMOVE, "EmergencyReclaim", timedelta(0))
    assert "idea" in plan.message


def test_a_shutdown_under_way_goes_on_while_the_request_is_stored():
    seen = asking(status=running_status(shutdown_started_at=EVENING - MINUTE))
    assert decide(intent(), seen, EVENING).shutdown == EVENING - MINUTE


@pytest.mark.parametrize("text", ["", "True", "yes", "true ", "false"])
def test_only_the_exact_word_is_a_request(text):
    seen = asking(node=node(annotations={**ASKED, names.ANNOTATION_RECLAIM_REQUESTED: text}))
    assert decide(intent(), seen, MORNING).phase is Phase.ACTIVE


def test_a_reason_of_any_shape_is_made_one_line():
    seen = asking(node=node(annotations={**ASKED, names.ANNOTATION_RECLAIM_REASON: "a\n\x1b" + "b" * 9000}))
    (record,) = decide(intent(), seen, MORNING).actions
    assert isinstance(record, actions.RecordReclaim)
    assert record.reclaim.reason.startswith("a b")
    assert len(record.reclaim.reason) == 512


FOREIGN = [
    pytest.param({"node": node(annotations=ASKED, provider_id="remote://192.0.2.99")}, id="another host"),
    pytest.param({"node": node(annotations=ASKED, provider_id=None)}, id="a host that does not say which"),
    pytest.param({"node": None}, id="no Node"),
]


@pytest.mark.parametrize("seen", FOREIGN)
def test_a_request_counts_only_on_our_own_node(seen):
    assert decide(intent(), asking(**seen), MORNING).actions == ()


@pytest.mark.parametrize("seen", FOREIGN)
def test_a_request_is_cleared_only_from_our_own_node(seen):
    unknown = asking(**seen, status=builders.status())
    assert actions.ClearReclaimRequest not in kinds(decide(intent(), unknown, MORNING))
    stored = decide(intent(), under_way(**seen), MORNING)
    assert not {actions.ClearReclaimRequest, actions.RemoveAgent} & set(kinds(stored))


def test_a_request_on_a_node_that_served_an_earlier_machine_is_not_for_this_one():
    plan = decide(intent(), asking(machine=machine(of={"uid": "new"})), MORNING)
    assert (plan.phase, kinds(plan)) == (Phase.ACTIVE, [actions.ClearReclaimRequest])


@pytest.mark.parametrize(
    ("seen", "now", "spec"),
    [
        (asking(), MORNING, {}),
        (asking(status=running_status(shutdown_started_at=EVENING), node=node(annotations=ASKED)), EVENING, {}),
        (leaving_world(node=node(annotations=ASKED)), MORNING, {}),
        (asking(status=running_status(shutdown_started_at=EVENING), workload=UNLISTED), EVENING, {}),
        (asking(), MORNING, {"schedule": {"enabled": False}}),
        (asking(cluster=None), MORNING, {}),
    ],
    ids=["Active", "ShuttingDown", "Pending", "ShuttingDown, its pods unknown", "Disabled", "without its Cluster"],
)
def test_it_works_from_every_phase(seen, now, spec):
    plan = decide(intent(**spec), seen, now)
    assert (plan.phase, kinds(plan)) == (Phase.EMERGENCY_REMOVE, [actions.RecordReclaim])


def test_it_works_on_a_spec_that_cannot_be_read():
    assert decide(builders.legible(builders.unreadable_spec()), asking(), MORNING).phase is Phase.EMERGENCY_REMOVE


def test_pausing_outranks_it():
    plan = decide(intent(), asking(cluster=cluster(paused=True)), MORNING)
    assert (plan.actions, plan.reason) == ((), "Paused")


@pytest.mark.parametrize("seen", [asking(), under_way()], ids=["requested", "under way"])
def test_the_kill_switch_outranks_it(seen):
    plan = decide(intent(killSwitch=True), seen, MORNING)
    assert plan.phase is Phase.TERMINATED
    assert not {actions.RecordReclaim, actions.ForceDrain, actions.DisableSchedule} & set(kinds(plan))


@pytest.mark.parametrize("seen", [asking(), under_way()], ids=["requested", "under way"])
def test_a_scheduledmachine_that_is_being_deleted_goes_at_once(seen):
    plan = decide(intent(), replace(seen, me=identity(deleting_since=MORNING)), MORNING)
    assert plan.phase is Phase.SHUTTING_DOWN
    assert {actions.Patch, actions.Delete} <= set(kinds(plan))
    assert actions.Cordon not in kinds(plan)


# The seven steps


def test_all_steps_come_in_their_order():
    sim = running()
    sim.edit(killIfCommands=["idea"])
    sim.settle()
    mark = len(sim.log)
    sim.ask_back()
    sim.settle()
    assert [type(action) for _, action in sim.log[mark:]] == SEVEN_STEPS
    assert sim.status.phase is Phase.EMERGENCY_REMOVE
    sim.finish_deletion()
    sim.settle()
    assert (sim.status.phase, sim.status.reclaim) == (Phase.DISABLED, None)


def test_cluster_api_does_not_drain_either():
    plan = decide(intent(), under_way(), MORNING)
    (patch,) = [one for one in plan.actions if isinstance(one, actions.Patch)]
    assert patch.body["metadata"]["annotations"] == {
        names.ANNOTATION_EXCLUDE_DRAIN: "5spot",
        names.ANNOTATION_EXCLUDE_VOLUME_DETACH: "5spot",
    }


def test_an_unreachable_workload_cluster_holds_nothing_up():
    plan = decide(intent(), under_way(workload=DISCONNECTED, node=None), MORNING)
    assert kinds(plan) == [actions.RecordShutdown, actions.Patch, actions.Delete, actions.DisableSchedule]


def test_after_a_restart_the_drain_is_tried_before_the_workload_cluster_is_known():
    plan = decide(intent(), under_way(workload=None, node=None), MORNING)
    assert plan.actions[0] == actions.ForceDrain(node="node-7", provider_id=builders.PROVIDER_ID)


@pytest.mark.parametrize("missing", ["node_name", "provider_id"])
def test_without_a_node_of_its_own_there_is_nothing_to_drain(missing):
    seen = under_way(machine=machine(**{missing: None}), status=builders.status(reclaim=UNDER_WAY), node=None)
    assert actions.ForceDrain not in kinds(decide(intent(), seen, MORNING))


def test_a_node_that_can_be_seen_is_drained_though_its_pods_could_not_be_listed_and_one_that_is_gone_too():
    for seen in (under_way(workload=UNLISTED), under_way(node=None)):
        assert kinds(decide(intent(), seen, MORNING))[0] is actions.ForceDrain


def test_a_machine_that_is_leaving_is_not_drained_again():
    seen = under_way(machine=machine(of={"deleting": True}))
    assert actions.ForceDrain not in kinds(decide(intent(), seen, MORNING))


def test_pods_of_daemonsets_and_mirror_pods_stay():
    sim = running()
    sim.pods = [
        builders.pod("web"),
        builders.pod("log", controller_kind="DaemonSet"),
        builders.pod("static", mirror=True),
    ]
    sim.ask_back()
    sim.settle()
    assert [pod.name for pod in sim.pods] == ["log", "static"]


def test_a_schedule_that_is_disabled_already_is_not_disabled_again():
    plan = decide(intent(schedule={"enabled": False}), under_way(), MORNING)
    assert actions.DisableSchedule not in kinds(plan)


@pytest.mark.parametrize("failing", [actions.RecordReclaim, actions.Patch, actions.Delete, actions.DisableSchedule])
def test_the_request_stays_on_the_node_until_the_schedule_is_disabled(failing):
    sim = running()
    sim.ask_back()
    sim.fails = failing
    sim.step()
    sim.step()
    assert sim.node is not None
    assert names.ANNOTATION_RECLAIM_REQUESTED in sim.node.annotations
    sim.fails = None
    sim.settle()
    assert names.ANNOTATION_RECLAIM_REQUESTED not in sim.node.annotations


def test_a_request_that_cannot_be_taken_off_a_node_that_stays_is_why_the_reclaim_is_not_over():
    sim = running(node_stays=True)
    sim.ask_back()
    sim.fails = actions.ClearReclaimRequest
    for _ in range(3):
        sim.step()
    sim.finish_deletion()
    status = sim.step().status
    assert (status.phase, status.machine_ref) == (Phase.EMERGENCY_REMOVE, None)
    assert status.message == (
        "The owner of Node node-7 claimed it back (idea). All objects are gone; removing the request from the Node."
    )
    sim.fails = None
    sim.settle()
    assert sim.status.phase is Phase.DISABLED


@pytest.mark.parametrize("writes", range(len(SEVEN_STEPS)))
def test_a_crash_after_any_write_comes_to_the_same_end(writes):
    sim = running()
    sim.edit(killIfCommands=["idea"])
    sim.settle()
    sim.ask_back()
    left = writes
    while left >= 0:
        planned = len(sim.plan().actions)
        if left <= planned:
            with pytest.raises(Crash):
                sim.step(crash_after=left)
            break
        sim.step()
        left -= planned
    sim.settle()
    sim.finish_deletion()
    sim.settle()
    assert (sim.status.phase, sim.status.reclaim, sim.intent.enabled) == (Phase.DISABLED, None, False)
    assert not sim.objects
    assert sim.event_reasons().count("EmergencyReclaim") == 1
    assert sim.event_reasons().count("EmergencyReclaimDisabledSchedule") == 1


# The end


def gone(**seen) -> World:
    """Everything of the machine is gone."""
    status = running_status(reclaim=UNDER_WAY, machine_ref=None)
    return world(**{"status": status, "workload": builders.CONNECTED, **seen})


OFF = {"schedule": {"enabled": False}}


def test_it_is_over_when_all_is_gone_and_the_schedule_disabled():
    plan = decide(intent(**OFF), gone(), MORNING)
    assert (plan.phase, plan.reclaimed, plan.actions) == (Phase.DISABLED, True, ())
    assert plan.message.startswith(
        "Disabled by an emergency reclaim: the owner of Node node-7 claimed it back (idea). To return"
    )


def test_it_is_over_although_the_node_outlives_its_machine_without_the_request():
    assert decide(intent(**OFF), gone(node=node()), MORNING).reclaimed


@pytest.mark.parametrize(
    ("seen", "spec"),
    [
        (gone(), {}),
        (gone(workload=None), OFF),
        (gone(infrastructure=builders.child(Role.INFRASTRUCTURE)), OFF),
        (gone(node=node(annotations=ASKED)), OFF),
        (gone(contract=None, status=running_status(reclaim=UNDER_WAY)), OFF),
    ],
    ids=["enabled", "not connected yet", "infrastructure left", "request left", "not known"],
)
def test_it_is_not_over_before(seen, spec):
    plan = decide(intent(**spec), seen, MORNING)
    assert (plan.phase, plan.reclaimed) == (Phase.EMERGENCY_REMOVE, False)


def test_a_node_that_outlives_its_machine_is_freed_of_the_request():
    plan = decide(intent(**OFF), gone(node=node(annotations=ASKED)), MORNING)
    assert plan.actions == (actions.ClearReclaimRequest(node="node-7", uid="uid-of-the-node"),)


def test_a_node_of_that_name_that_is_another_is_left_alone():
    plan = decide(intent(**OFF), gone(node=node(annotations=ASKED, uid="another")), MORNING)
    assert (plan.reclaimed, plan.actions) == (True, ())


def test_an_unreachable_cluster_does_not_keep_it_from_ending():
    assert decide(intent(**OFF), gone(workload=DISCONNECTED), MORNING).reclaimed


def test_the_condition_keeps_saying_why_and_how_to_come_back():
    sim = running()
    ejected(sim)
    for _ in range(3):
        sim.now += 60 * MINUTE
        sim.step()
        found = condition(sim.status, "Scheduled")
        assert (found.status, found.reason) == ("False", "EmergencyReclaim")
        assert "idea" in found.message
        assert "kubectl -n team patch scheduledmachine desk" in found.message
        assert sim.status.message == found.message


def test_nothing_comes_back_by_itself():
    sim = running()
    ejected(sim)
    sim.now += timedelta(days=7)
    sim.settle()
    assert (sim.status.phase, sim.objects) == (Phase.DISABLED, {})


# The way back


def test_the_user_enables_it_and_it_comes_back():
    sim = running()
    ejected(sim)
    sim.edit(schedule={"enabled": True})
    sim.settle()
    sim.provision()
    sim.settle()
    assert (sim.status.phase, sim.status.last_reclaim) == (Phase.ACTIVE, None)
    assert sim.event_reasons().count("ScheduleResumed") == 1
    assert "ReclaimReverted" not in sim.event_reasons()
    sim.edit(schedule={"enabled": False})
    sim.settle()
    assert condition(sim.status, "Scheduled").reason == "ScheduleDisabled"


def test_an_owner_who_still_works_gets_it_back_again():
    sim = running()
    ejected(sim)
    sim.edit(schedule={"enabled": True})
    sim.settle()
    sim.provision()
    sim.settle()
    ejected(sim)
    assert (sim.status.phase, sim.objects) == (Phase.DISABLED, {})
    assert sim.event_reasons().count("EmergencyReclaim") == 2


@pytest.mark.parametrize(
    ("author", "after", "warned"),
    [
        ("argocd-controller", timedelta(0), True),
        ("argocd-controller", 14 * MINUTE, True),
        ("argocd-controller", 15 * MINUTE, False),
        *((manager, timedelta(0), True) for manager in sorted(GITOPS_MANAGERS)),
        *((tool, timedelta(0), False) for tool in PERSONS_TOOLS),
    ],
)
def test_gitops_that_enables_it_soon_is_named_in_a_warning(author, after, warned):
    sim = running()
    ejected(sim)
    sim.now += after
    sim.enabled_by = author
    sim.edit(schedule={"enabled": True})
    sim.settle()
    found = [event for event in sim.events if event.reason == "ReclaimReverted"]
    assert len(found) == int(warned)
    assert all(event.warning and author in event.message for event in found)


def test_gitops_that_enables_it_in_the_middle_is_overruled_and_named():
    sim = running()
    sim.ask_back()
    sim.settle()
    sim.enabled_by = "argocd-controller"
    sim.edit(schedule={"enabled": True})
    sim.settle()
    assert not sim.intent.enabled
    assert sim.event_reasons().count("ReclaimReverted") == 1
    assert sim.event_reasons().count("EmergencyReclaimDisabledSchedule") == 1


def test_a_person_who_enables_it_in_the_middle_learns_that_it_was_too_early():
    sim = running()
    sim.ask_back()
    sim.settle()
    assert "once the phase is Disabled: kubectl" in condition(sim.status, "Scheduled").message
    sim.enabled_by = "kubectl-patch"
    sim.edit(schedule={"enabled": True})
    sim.settle()
    assert not sim.intent.enabled
    found = [event.message for event in sim.events if event.reason == "EmergencyReclaimDisabledSchedule"]
    assert len(found) == 2
    assert "during the reclaim" in found[1]


def test_no_field_manager_is_named_while_it_does_not_matter():
    past = PastReclaim(at=MORNING, reason="idea", node="node-7")
    seen = running_world(status=running_status(last_reclaim=past), enabled_by="argocd-controller")
    assert decide(intent(), seen, MORNING + 14 * MINUTE).reverted_by == "argocd-controller"
    assert decide(intent(), seen, MORNING + 16 * MINUTE).reverted_by is None
    assert decide(intent(**OFF), seen, MORNING).reverted_by is None


# Requests from before


@pytest.mark.parametrize("contract", list(Contract))
def test_a_request_from_before_is_cleared_once_and_never_acted_upon(contract):
    sim = Simulation(contract=contract)
    sim.settle()
    sim.provision()
    sim.ask_back()
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE
    assert sim.node is not None
    assert not set(names.RECLAIM_ANNOTATIONS) & set(sim.node.annotations)
    assert "EmergencyReclaim" not in sim.event_reasons()
    ejected(sim)
    after = sim.status
    assert after.phase is Phase.DISABLED


@pytest.mark.parametrize("obstacle", ["clearing fails", "paused", "a crash"])
def test_a_request_from_before_stays_old_until_it_is_cleared(obstacle):
    sim = Simulation()
    sim.settle()
    sim.provision()
    sim.ask_back()
    sim.fails = actions.ClearReclaimRequest if obstacle == "clearing fails" else None
    sim.paused = obstacle == "paused"
    if obstacle == "a crash":
        with pytest.raises(Crash):
            sim.step(crash_after=0)
    sim.settle()
    sim.fails, sim.paused = None, False
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE
    assert "EmergencyReclaim" not in sim.event_reasons()


def test_a_node_that_registers_again_is_heard():
    sim = running()
    sim.change_node(uid="again")
    sim.ask_back()
    sim.step()
    assert sim.status.phase is Phase.EMERGENCY_REMOVE


def test_the_node_of_an_earlier_machine_does_not_introduce_a_new_one():
    """Seen with another Machine before, and the workload cluster out of reach since."""
    sim = running()
    assert sim.status.machine_ref is not None
    sim.status = sim.status.model_copy(
        update={
            "machine_ref": sim.status.machine_ref.model_copy(update={"uid": "earlier"}),
            "node_ref": NodeReference(name="node-7", uid="seen-then"),
        }
    )
    sim.reachable = False
    sim.step()
    sim.ask_back()
    sim.reachable = True
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE


def test_a_kill_switch_in_the_middle_does_not_repeat_the_event_of_the_same_request():
    sim = running()
    sim.ask_back()
    sim.settle()
    for switch in (True, False):
        sim.edit(killSwitch=switch)
        sim.settle()
    assert sim.status.phase is Phase.EMERGENCY_REMOVE
    assert sim.event_reasons().count("EmergencyReclaim") == 1
    sim.finish_deletion()
    sim.settle()
    assert (sim.status.phase, sim.intent.enabled) == (Phase.DISABLED, False)
