"""Dry run: reported and not done, by every rule that follows the schedule and by no other."""

import pytest

from crds import names
from crds.status import Phase
from service.decide.dryrun import is_dry_run
from service.decide.events import new_events
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.report import report
from service.decide.situation import Situation
from service.decide.world import Role, Turn, Turns
from tests.service.decide.builders import (
    CLOSES,
    EVENING,
    MORNING,
    child,
    cluster,
    draining_world,
    identity,
    intent,
    leaving_world,
    node,
    pod,
    running_status,
    running_world,
    status,
    world,
)


def dry(of, seen, now):
    plan = decide(of, seen, now)
    return plan, report(Situation.at(of, seen, now), plan, Outcome())


def condition(found, kind):
    return next((one for one in found.conditions if one.type == kind), None)


def test_a_machine_that_is_wanted_would_be_created():
    plan, found = dry(intent(), world(dry_run=True), MORNING)
    assert (plan.actions, found.phase) == ((), Phase.PENDING)
    reported = condition(found, "DryRun")
    assert (reported.status, reported.reason) == ("True", "WouldCreate")
    assert reported.message.startswith(
        "Dry run: the controller would create K0sWorkerConfig desk-bootstrap, RemoteMachine desk-infra, "
        "Machine desk-machine."
    )
    assert condition(found, "Ready").reason == "WouldCreate"


def test_a_machine_that_is_not_wanted_would_be_deleted_and_stays_as_it_is():
    plan, found = dry(intent(), running_world(dry_run=True), EVENING)
    assert (plan.actions, plan.shutdown, plan.requeue_after, found.phase) == ((), None, None, Phase.ACTIVE)
    reported = condition(found, "DryRun")
    assert reported.reason == "WouldDelete"
    assert "would drain the Node and delete Machine desk-machine" in reported.message
    assert condition(found, "Ready").status == "True", "it serves"


def test_without_its_cluster_it_would_be_deleted():
    plan, found = dry(intent(), running_world(dry_run=True, cluster=cluster(deleting=True)), MORNING)
    assert (plan.actions, condition(found, "DryRun").reason) == ((), "WouldDelete")


@pytest.mark.parametrize("left", [pod(), pod(deleting=True)], ids=["to evict", "terminating"])
def test_a_drain_in_progress_stops_and_is_not_remembered(left):
    plan, found = dry(intent(), draining_world(left, dry_run=True), CLOSES)
    assert (plan.actions, found.shutdown_started_at) == ((), None)
    assert condition(found, "DryRun").reason == "WouldDelete"


def test_what_is_left_over_would_be_deleted():
    left = world(dry_run=True, status=running_status(), bootstrap=child(Role.BOOTSTRAP))
    plan, found = dry(intent(), left, EVENING)
    assert plan.actions == ()
    assert "would delete the bootstrap object desk-bootstrap" in condition(found, "DryRun").message


def test_taints_and_finalizer_are_not_written():
    tainted = intent(nodeTaints=[{"key": "batch", "effect": "NoSchedule"}])
    plan, found = dry(tainted, running_world(dry_run=True, me=identity(finalized=False)), MORNING)
    assert plan.actions == ()
    reported = condition(found, "DryRun")
    assert reported.reason == "WouldChange"
    assert "would add the finalizer, write the taints of the Node" in reported.message
    assert condition(found, "Ready").status == "True"


@pytest.mark.parametrize(
    ("seen", "now"), [(world(dry_run=True), EVENING), (running_world(dry_run=True), MORNING)], ids=["out", "in service"]
)
def test_where_nothing_is_to_do_it_says_so(seen, now):
    plan, found = dry(intent(), seen, now)
    assert condition(found, "DryRun").reason == "NothingToDo"
    assert plan == decide(intent(), world(), EVENING) or plan.reason == "MachineRunning"


ACT = [
    pytest.param(intent(killSwitch=True), running_world(dry_run=True), "KillSwitch", id="kill switch"),
    pytest.param(intent(), running_world(dry_run=True, me=identity(deleting_since=MORNING)), None, id="deletion"),
    pytest.param(
        intent(),
        running_world(dry_run=True, node=node(annotations={names.ANNOTATION_RECLAIM_REQUESTED: "true"})),
        None,
        id="reclaim",
    ),
    pytest.param(
        intent(schedule={"enabled": False}),
        leaving_world(dry_run=True, since=MORNING, machine=None, node=None),
        None,
        id="finishing a deletion while disabled",
    ),
]


@pytest.mark.parametrize(("of", "seen", "_reason"), ACT)
def test_what_does_not_follow_the_schedule_acts(of, seen, _reason):
    plan, found = dry(of, seen, MORNING)
    assert plan.actions
    assert condition(found, "DryRun") is None


def test_leaving_it_acts_at_once():
    seen = world(status=dry(intent(), world(dry_run=True), MORNING)[1])
    assert [type(action).__name__ for action in decide(intent(), seen, MORNING).actions] == ["Create"] * 3


def test_it_takes_no_turn_and_waits_for_none():
    full = Turns(provisioning=Turn(granted=True, limit=1))
    plan = decide(intent(), world(dry_run=True, turns=full), MORNING)
    assert plan.reason == "WouldCreate"


def test_one_event_when_it_begins_to_say_so():
    plan, found = dry(intent(), world(dry_run=True), MORNING)
    assert [event.reason for event in new_events(status(), found, plan, Outcome())] == [
        "ScheduleActivated",
        "WouldCreate",
    ]
    assert new_events(found, found, plan, Outcome()) == []


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (None, False, False),
        (None, True, True),
        ("true", False, True),
        ("", False, True),
        ("false", True, False),
        ("False", True, False),
    ],
)
def test_the_annotation_outranks_the_setting(annotation, default, expected):
    annotations = {} if annotation is None else {names.ANNOTATION_DRY_RUN: annotation}
    assert is_dry_run(annotations, default=default) is expected
