from datetime import timedelta

import pytest

from crds import names
from crds.status import Phase
from service.decide import plan as actions
from service.decide.lifecycle import decide
from service.decide.manifests import spec_hash
from service.decide.plan import Plan
from service.decide.taints import write_note
from service.decide.world import HostConflict, Role
from tests.service.decide.builders import (
    DISCONNECTED,
    GRACE,
    MINUTE,
    MORNING,
    OPENS,
    SPEC,
    UID,
    child,
    cordoned_node,
    draining_world,
    identity,
    intent,
    leaving_world,
    machine,
    new_machine,
    node,
    pod,
    running_status,
    running_world,
    spec,
    status,
    taint,
    world,
)

TAINTED = {"nodeTaints": [{"key": "workload", "value": "batch", "effect": "NoSchedule"}]}
EDITED = {"infrastructureSpec": {**SPEC["infrastructureSpec"], "spec": {"address": "192.0.2.8"}}}


def kinds(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


def created(plan: Plan) -> list[Role]:
    return [action.role for action in plan.actions if isinstance(action, actions.Create)]


# Creation


def test_the_finalizer_is_stored_before_the_first_child():
    plan = decide(intent(), world(me=identity(finalized=False)), MORNING)
    assert kinds(plan) == ["AddFinalizer", "Create", "Create", "Create"]


def test_a_finalizer_that_a_user_removed_is_restored():
    assert kinds(decide(intent(), running_world(me=identity(finalized=False)), MORNING)) == ["AddFinalizer"]


def test_a_shutdown_of_an_earlier_machine_is_forgotten_before_a_new_one_is_made():
    plan = decide(intent(), world(status=status(shutdown_started_at=OPENS)), MORNING)
    assert kinds(plan) == ["RecordShutdown", "Create", "Create", "Create"]
    assert plan.actions[0] == actions.RecordShutdown(None)


def test_finalizer_and_shutdown_are_both_stored_before_the_first_child():
    plan = decide(intent(), world(me=identity(finalized=False), status=status(shutdown_started_at=OPENS)), MORNING)
    assert kinds(plan)[:3] == ["AddFinalizer", "RecordShutdown", "Create"]


@pytest.mark.parametrize("there", [(), (Role.BOOTSTRAP,), (Role.BOOTSTRAP, Role.INFRASTRUCTURE)])
def test_only_what_is_missing_is_created(there):
    plan = decide(intent(), world(**{str(role): child(role) for role in there}), MORNING)
    assert created(plan) == [role for role in Role if role not in there]


def test_an_infrastructure_object_that_vanished_before_the_host_was_provisioned_comes_back():
    seen = running_world(machine=new_machine(), node=None, infrastructure=None)
    assert created(decide(intent(), seen, MORNING)) == [Role.INFRASTRUCTURE]


def test_infrastructure_that_vanished_after_providerid_was_set_is_never_recreated():
    plan = decide(intent(), running_world(infrastructure=None), MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.ERROR, "InfrastructureGone", ())


def test_without_capi_nothing_is_created_and_a_warning_says_so():
    plan = decide(intent(), world(contract=None, cluster=None), MORNING)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.PENDING, "CAPINotInstalled", (), True)
    assert plan.message.startswith("Cluster API is not installed")


@pytest.mark.parametrize("role", list(Role))
def test_a_child_of_the_same_name_that_is_not_ours_is_never_adopted(role):
    foreign = {"machine": machine(of={"ours": False})} if role is Role.MACHINE else {str(role): child(role, ours=False)}
    plan = decide(intent(), world(**foreign), MORNING)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.ERROR, "ForeignObject", (), True)
    assert plan.backoff, "no watch reports its deletion"


# Leaving


def test_inside_a_window_the_previous_machine_is_waited_for():
    plan = decide(intent(), leaving_world(since=OPENS), OPENS + MINUTE)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.PENDING, "WaitingForPreviousMachine", ())
    assert plan.shutdown == OPENS
    assert plan.message == "Waiting for the deletion of Machine desk-machine, which belongs to the previous machine."


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_inside_a_window_what_the_previous_machine_left_is_waited_for_too(role):
    seen = world(status=status(shutdown_started_at=OPENS), **{str(role): child(role, deleting=True)})
    plan = decide(intent(), seen, OPENS + MINUTE)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.PENDING, "WaitingForPreviousMachine", ())
    assert plan.shutdown == OPENS


def test_a_previous_machine_that_does_not_go_is_hurried_when_its_grace_is_up():
    plan = decide(intent(), leaving_world(since=OPENS), OPENS + GRACE)
    assert kinds(plan) == ["Patch"]


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_a_single_child_that_is_leaving_is_waited_for_too(role):
    plan = decide(intent(), running_world(**{str(role): child(role, deleting=True)}), MORNING)
    assert (plan.reason, plan.actions) == ("WaitingForPreviousMachine", ())
    assert "previous" not in plan.message, "it is this machine's own"


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
@pytest.mark.parametrize("state", [{"deleting": True}, {"ours": False}], ids=["deleting", "foreign"])
def test_a_shutdown_is_cancelled_although_something_beside_the_machine_keeps_it_from_being_right(role, state):
    seen = draining_world(pod(), since=OPENS - MINUTE, **{str(role): child(role, **state)})
    plan = decide(intent(), seen, OPENS)
    assert (kinds(plan), plan.shutdown) == (["Uncordon"], None)


def test_objects_of_a_machine_that_is_gone_are_cleared_up_before_a_new_one_is_made():
    plan = decide(intent(), running_world(machine=None, node=None), MORNING)
    assert (plan.phase, plan.reason) == (Phase.PENDING, "WaitingForPreviousMachine")
    assert kinds(plan) == ["Delete", "Delete"]


def test_leftovers_are_cleared_up_although_some_of_them_are_leaving_already():
    seen = running_world(machine=None, node=None, infrastructure=child(Role.INFRASTRUCTURE, deleting=True))
    assert kinds(decide(intent(), seen, MORNING)) == ["Delete"]


def test_a_machine_that_cannot_be_seen_is_not_gone():
    plan = decide(intent(), world(status=running_status(), contract=None, cluster=None), MORNING)
    assert (plan.reason, plan.actions) == ("CAPINotInstalled", ())
    assert "cannot see the Machine" in plan.message


def test_that_a_machine_is_gone_is_stored_before_a_new_one_is_made():
    plan = decide(intent(), world(status=running_status()), MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.PENDING, "MachineGone", ())
    assert plan.requeue_after == timedelta(0)


# Edits before there is a Machine

PARTS = (Role.BOOTSTRAP, Role.INFRASTRUCTURE)
OTHER_KIND = {"bootstrapSpec": {**SPEC["bootstrapSpec"], "kind": "KubeadmConfig"}}


@pytest.mark.parametrize(
    ("edit", "old"),
    [(OTHER_KIND, [Role.BOOTSTRAP]), (EDITED, [Role.INFRASTRUCTURE]), ({**OTHER_KIND, **EDITED}, PARTS)],
)
def test_what_was_made_before_an_edit_goes_before_a_machine_can_point_at_it(edit, old):
    plan = decide(intent(**edit), world(**{str(role): child(role) for role in PARTS}), MORNING)
    assert (plan.phase, plan.reason) == (Phase.PENDING, "WaitingForPreviousMachine")
    assert kinds(plan) == ["Delete"] * len(old)
    assert [action.role for action in plan.actions if isinstance(action, actions.Delete)] == list(old)


def test_what_was_made_for_another_host_goes_although_the_new_host_is_taken():
    seen = world(infrastructure=child(Role.INFRASTRUCTURE), host_conflict=HostConflict("team", "other"))
    assert kinds(decide(intent(**EDITED), seen, MORNING)) == ["Delete"]


@pytest.mark.parametrize("ours", [True, False])
def test_once_there_is_a_machine_nothing_beside_it_is_created_again(ours):
    seen = running_world(machine=new_machine(of={"ours": ours}), node=None, status=status())
    assert decide(intent(**{**OTHER_KIND, **EDITED}), seen, MORNING).actions == ()


# One host, two ScheduledMachines


def test_the_later_of_two_on_one_host_creates_nothing_and_names_the_other():
    plan = decide(intent(), world(host_conflict=HostConflict("team", "other")), MORNING)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.PENDING, "HostConflict", (), True)
    assert "other" in plan.message


def test_the_other_on_the_host_is_not_named_across_namespaces():
    plan = decide(intent(), world(host_conflict=HostConflict("secret", "other")), MORNING)
    assert "secret" not in plan.message
    assert "other" not in plan.message.replace("another", "")


def test_a_conflict_does_not_touch_a_machine_that_exists():
    plan = decide(intent(), running_world(host_conflict=HostConflict("team", "other")), MORNING)
    assert (plan.phase, plan.actions) == (Phase.ACTIVE, ())


# Progress


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ({"machine": new_machine(), "node": None, "status": status()}, "MachineProvisioning"),
        ({"node": None}, "WaitingForNode"),
        ({"node": node(provider_id=None)}, "WaitingForNode"),
        ({"node": None, "workload": DISCONNECTED}, "WorkloadClusterUnreachable"),
        ({"node": node(ready=False)}, "NodeNotReady"),
        ({}, "MachineRunning"),
        ({"machine": machine(provider_id="remote://another")}, "ProviderIDChanged"),
    ],
)
def test_a_machine_on_its_way_is_active_and_says_where_it_is(seen, reason):
    plan = decide(intent(), running_world(**seen), MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.ACTIVE, reason, ())


def test_what_is_waited_for_is_named():
    waiting = new_machine(waiting_for="BootstrapReady: no data yet")
    on_its_way = decide(intent(), running_world(machine=waiting, node=None, status=status()), MORNING)
    assert on_its_way.message == "The machine is being provisioned (BootstrapReady: no data yet)."
    without = decide(intent(), running_world(machine=new_machine(), node=None, status=status()), MORNING)
    assert without.message == "The machine is being provisioned."
    unreachable = decide(intent(), running_world(node=None, workload=DISCONNECTED), MORNING)
    assert unreachable.message == "Node node-7 cannot be seen: connection refused"


def test_a_node_that_was_there_is_not_said_to_be_on_its_way():
    seen_before, new = running_world(node=None), running_world(node=None, status=status())
    assert "no longer" in decide(intent(), seen_before, MORNING).message
    assert "not been seen yet" in decide(intent(), new, MORNING).message


# The Node while the window is open


def test_a_cordon_of_ours_left_over_is_undone_when_the_node_comes_back():
    assert kinds(decide(intent(), running_world(node=cordoned_node()), MORNING)) == ["Uncordon"]


def test_a_cordon_on_another_host_under_the_same_name_is_left_alone():
    seen = running_world(node=cordoned_node(provider_id="remote://another"))
    assert decide(intent(), seen, MORNING).actions == ()


def test_a_cordon_of_a_neighbour_on_the_same_node_is_left_to_that_one():
    shared = cordoned_node(annotations={names.ANNOTATION_CORDONED: "uid-of-another"})
    seen = running_world(node=shared, others_on_node=frozenset({"uid-of-another"}))
    assert decide(intent(), seen, MORNING).actions == ()
    assert kinds(decide(intent(), running_world(node=shared), MORNING)) == ["Uncordon"]


def test_two_on_one_node_each_keep_their_own_taints_and_come_to_rest():
    theirs = taint("theirs")
    noted = node(taints=(theirs,), annotations={names.ANNOTATION_APPLIED_TAINTS: write_note("other", [theirs], node())})
    (first,) = decide(
        intent(**TAINTED), running_world(node=noted, others_on_node=frozenset({"other"})), MORNING
    ).actions
    assert isinstance(first, actions.ApplyTaints)
    assert set(first.taints) == {theirs, taint()}
    both = node(taints=first.taints, annotations={names.ANNOTATION_APPLIED_TAINTS: first.note})
    for me, neighbour in ((UID, "other"), ("other", UID)):
        wanted = TAINTED if me == UID else {"nodeTaints": [{"key": "theirs", "value": "batch", "effect": "NoSchedule"}]}
        seen = running_world(me=identity(uid=me), node=both, others_on_node=frozenset({neighbour}))
        assert "ApplyTaints" not in kinds(decide(intent(**wanted), seen, MORNING))


def test_taints_are_applied_to_the_version_of_the_node_that_was_seen():
    plan = decide(intent(**TAINTED), running_world(node=node(taints=(taint("theirs"),))), MORNING)
    both = (taint("theirs"), taint())
    assert plan.actions == (
        actions.ApplyTaints("node-7", "uid-of-the-node", "100", both, write_note(UID, [taint()], node())),
    )


@pytest.mark.parametrize("seen", [node(ready=False), node(provider_id="remote://another"), None])
def test_taints_wait_until_the_node_is_ready_and_ours(seen):
    plan = decide(intent(**TAINTED), running_world(node=seen), MORNING)
    assert (plan.actions, plan.taints) == ((), None)


def test_taints_are_written_before_a_cordon_is_undone_as_that_changes_the_version():
    assert kinds(decide(intent(**TAINTED), running_world(node=cordoned_node()), MORNING)) == ["ApplyTaints", "Uncordon"]


def test_an_annotation_that_a_user_took_off_the_node_is_restored():
    seen = running_world(
        status=running_status(applied_node_taints=({"key": "workload", "value": "batch", "effect": "NoSchedule"},)),
        node=node(taints=(taint(),)),
    )
    assert kinds(decide(intent(**TAINTED), seen, MORNING)) == ["ApplyTaints"]


def test_taints_keep_nothing_else_from_being_put_right():
    spoiled = running_world(machine=machine(of={"labels": {}}))
    assert kinds(decide(intent(**TAINTED), spoiled, MORNING)) == ["Patch", "ApplyTaints"]


def test_taints_that_are_right_are_not_written_again():
    notes = {names.ANNOTATION_APPLIED_TAINTS: write_note(UID, [taint()], node())}
    seen = running_world(
        status=running_status(applied_node_taints=({"key": "workload", "value": "batch", "effect": "NoSchedule"},)),
        node=node(taints=(taint(),), annotations=notes),
    )
    assert decide(intent(**TAINTED), seen, MORNING).actions == ()


# Edits while a Machine exists


@pytest.mark.parametrize(
    "edit",
    [
        {"machineTemplate": {"labels": {"rack": "4"}}},
        {"nodeDrainTimeout": "7m"},
        TAINTED,
    ],
)
def test_template_timeouts_and_taints_are_brought_up_to_date_in_place(edit):
    plan = decide(intent(**edit), running_world(), MORNING)
    assert kinds(plan) in (["Patch"], ["ApplyTaints"])


def test_provider_specs_apply_at_creation_only():
    assert spec_hash(spec(**EDITED)) != spec_hash(spec())
    assert decide(intent(**EDITED), running_world(), MORNING).actions == ()


@pytest.mark.parametrize("template", [{"version": "v1.34.2"}, {"failureDomain": "eu-west-1a"}])
def test_version_and_failure_domain_apply_at_creation_only(template):
    assert decide(intent(machineTemplate=template), running_world(), MORNING).actions == ()


def test_nothing_is_created_beside_a_machine_that_another_operator_made_for_us():
    plan = decide(intent(), world(other_operators_machine="desk"), MORNING)
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.ERROR, "ForeignObject", (), True)
    assert "Machine desk was created for this ScheduledMachine by another operator" in plan.message
