"""Turns: who waits for whom, for how long, and who waits for nobody."""

from datetime import timedelta

import pytest

from crds import names
from crds.status import Phase
from service import metrics
from service.act.measure import measure
from service.clock import ManualClock
from service.decide import plan as actions
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.report import report
from service.decide.situation import Situation
from service.decide.turns import PRIORITY_WORTH, Queueing, awaited, draining_until, limit_of, provisioning_until, rank
from service.decide.world import Role, Turn, Turns
from tests.service.decide.builders import (
    CLOSES,
    EVENING,
    FAILURE,
    GRACE,
    MINUTE,
    MORNING,
    OPENS,
    SECOND,
    child,
    cluster,
    identity,
    intent,
    leaving_world,
    machine,
    new_machine,
    node,
    running_status,
    running_world,
    status,
    world,
)

FULL = Turn(granted=False, limit=2, ahead=3)
NO_TURN = Turns(provisioning=FULL, draining=FULL)
A_TURN = Turns(provisioning=Turn(granted=True, limit=2), draining=Turn(granted=True, limit=2))


def kinds(plan):
    return [type(action).__name__ for action in plan.actions]


# Creation


def test_a_machine_whose_turn_it_is_not_is_pending_and_says_how_many_go_first():
    plan = decide(intent(), world(turns=NO_TURN), MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.PENDING, "WaitingForTurn", ())
    assert plan.message == (
        "Waiting for a turn: at most 2 machines of Cluster prod are provisioned at once, and 3 others go first."
    )
    assert (plan.requeue_at, plan.requeue_after, plan.backoff) == (CLOSES, None, False), "it does not poll"


@pytest.mark.parametrize(
    ("ahead", "words"), [(0, "this one is next"), (1, "1 other goes first"), (2, "2 others go first")]
)
def test_the_message_counts_in_words(ahead, words):
    plan = decide(intent(), world(turns=Turns(provisioning=Turn(granted=False, limit=2, ahead=ahead))), MORNING)
    assert plan.message.endswith(f", and {words}.")


def test_a_limit_of_one_is_one_machine():
    plan = decide(intent(), world(turns=Turns(provisioning=Turn(granted=False, limit=1))), MORNING)
    assert "at most 1 machine of Cluster prod is provisioned at once" in plan.message


@pytest.mark.parametrize("turns", [A_TURN, Turns()], ids=["granted", "no limit"])
def test_with_a_turn_or_without_a_limit_it_is_created(turns):
    plan = decide(intent(), world(turns=turns), MORNING)
    assert kinds(plan) == ["Create", "Create", "Create"]


def test_what_exists_needs_no_turn():
    assert decide(intent(), running_world(turns=NO_TURN), MORNING).reason == "MachineRunning"


def test_an_object_that_another_one_took_is_restored_without_a_turn():
    seen = running_world(machine=new_machine(), infrastructure=None, node=None, turns=NO_TURN)
    assert kinds(decide(intent(), seen, MORNING)) == ["Create"]


# Removal


def test_a_close_waits_for_its_turn_and_its_time_does_not_begin():
    plan = decide(intent(), running_world(turns=NO_TURN), CLOSES)
    assert (plan.phase, plan.reason, plan.actions, plan.shutdown) == (
        Phase.SHUTTING_DOWN,
        "WaitingForTurn",
        (),
        None,
    )
    assert "3 others go first. It begins at 2026-03-02 18:05:00 UTC at the latest." in plan.message
    assert plan.requeue_at == CLOSES + GRACE


def test_a_close_waits_at_most_for_the_grace_period():
    waits = running_world(status=running_status(waiting_since=CLOSES), turns=NO_TURN)
    assert decide(intent(), waits, CLOSES + GRACE - SECOND).actions == ()
    assert "RecordShutdown" in kinds(decide(intent(), waits, CLOSES + GRACE))


def test_the_shutdown_begins_with_the_turn():
    waits = running_world(status=running_status(waiting_since=CLOSES), turns=A_TURN)
    plan = decide(intent(), waits, CLOSES + 2 * MINUTE)
    assert plan.shutdown == CLOSES + 2 * MINUTE
    assert plan.actions[0] == actions.RecordShutdown(started_at=CLOSES + 2 * MINUTE)


def test_a_shutdown_that_has_begun_goes_on_without_a_turn():
    begun = running_world(status=running_status(shutdown_started_at=CLOSES), turns=NO_TURN)
    assert decide(intent(), begun, CLOSES + MINUTE).reason == "Draining"


def test_a_machine_that_is_being_deleted_already_does_not_wait():
    assert decide(intent(), leaving_world(since=None, turns=NO_TURN), CLOSES).reason == "DeletingMachine"


EXEMPT = [
    pytest.param(intent(killSwitch=True), {}, id="kill switch"),
    pytest.param(intent(), {"me": identity(deleting_since=MORNING)}, id="deletion"),
    pytest.param(intent(), {"cluster": cluster(deleting=True)}, id="the Cluster is deleted"),
    pytest.param(
        intent(),
        {"node": node(annotations={names.ANNOTATION_RECLAIM_REQUESTED: "true"})},
        id="reclaim",
    ),
]


@pytest.mark.parametrize(("of", "seen"), EXEMPT)
def test_exempt_removals_do_not_wait(of, seen):
    plan = decide(of, running_world(turns=NO_TURN, **seen), MORNING)
    assert plan.reason != "WaitingForTurn"
    assert plan.actions


def test_a_window_that_opens_ends_the_wait_for_a_shutdown():
    waits = running_world(status=running_status(waiting_since=CLOSES), turns=NO_TURN)
    assert decide(intent(), waits, OPENS + timedelta(days=1)).phase is Phase.ACTIVE


# What the status says


def reported(of, seen, now):
    return report(Situation.at(of, seen, now), decide(of, seen, now), Outcome())


def test_the_status_says_since_when_it_waits_and_keeps_that():
    first = reported(intent(), world(turns=NO_TURN), MORNING)
    assert first.waiting_since == MORNING
    later = reported(intent(), world(turns=NO_TURN, status=first), MORNING + MINUTE)
    assert later.waiting_since == MORNING


def test_the_status_keeps_when_a_close_that_waits_was_due():
    announced = running_status(next_cleanup=CLOSES)
    assert reported(intent(), running_world(turns=NO_TURN, status=announced), CLOSES + MINUTE).next_cleanup == CLOSES
    edited = running_status(next_cleanup=CLOSES + 2 * MINUTE)
    assert reported(intent(), running_world(turns=NO_TURN, status=edited), EVENING).next_cleanup <= EVENING


def test_a_wait_for_a_turn_is_not_lateness():
    waited = running_status(next_cleanup=CLOSES, waiting_since=CLOSES)
    begun = Outcome(done=(actions.RecordShutdown(started_at=CLOSES + MINUTE),))
    plan = decide(intent(), running_world(status=waited, turns=A_TURN), CLOSES + MINUTE)
    count = metrics.REMOVAL_LATENESS._sum.get()
    measure(waited, waited, plan, begun, ManualClock(CLOSES + MINUTE))
    assert metrics.REMOVAL_LATENESS._sum.get() == count


def test_with_a_turn_the_wait_is_over():
    waited = status(waiting_since=OPENS)
    assert reported(intent(), world(status=waited, turns=A_TURN), MORNING).waiting_since is None


def test_a_wait_that_is_ahead_comes_from_a_wrong_clock_and_counts_from_now():
    seen = running_world(status=running_status(waiting_since=CLOSES + timedelta(days=1)), turns=NO_TURN)
    assert reported(intent(), seen, CLOSES).waiting_since == CLOSES


# The order


def placed(of, seen, now, queueing=Queueing.PROVISIONING):
    return rank(Situation.at(of, seen, now), queueing)


def test_higher_priorities_are_created_first_and_removed_last():
    high, low = intent(priority=200), intent(priority=100)
    assert placed(high, world(), MORNING) < placed(low, world(), MORNING)
    drains = Queueing.DRAINING
    assert placed(high, running_world(), CLOSES, drains) > placed(low, running_world(), CLOSES, drains)


def test_of_equal_priorities_the_one_that_was_due_first_goes_first():
    later = intent(schedule={"hoursOfDay": ["10-17"]})
    assert placed(intent(), world(), MORNING) < placed(later, world(), MORNING)


def test_the_place_does_not_depend_on_when_one_looks():
    assert placed(intent(), world(), MORNING) == placed(intent(), world(), MORNING + MINUTE)


def test_nothing_starves_the_highest_priority_is_worth_an_hour():
    lowest = intent(priority=0)
    highest = intent(priority=255, schedule={"daysOfWeek": [], "hoursOfDay": ["10-17"]})
    assert timedelta(hours=1) == PRIORITY_WORTH
    assert placed(lowest, world(), MORNING) == placed(highest, world(), MORNING)


def test_a_window_that_has_always_been_open_is_due_since_the_wait_began():
    always = intent(schedule={"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]})
    waited = world(status=status(waiting_since=OPENS))
    assert placed(always, waited, MORNING) == placed(intent(), world(), MORNING)


# What counts


def at(seen, now=MORNING, **spec):
    return Situation.at(intent(**spec), seen, now)


CREATED = {"last_scheduled_time": OPENS}
PROVISIONING = {"machine": new_machine(), "node": None}


def test_a_machine_counts_from_its_creation_until_its_time_is_up():
    seen = running_world(status=running_status(**CREATED), **PROVISIONING)
    assert provisioning_until(at(seen, OPENS + MINUTE)) == OPENS + 15 * MINUTE
    assert provisioning_until(at(seen, OPENS + 15 * MINUTE)) is None
    assert provisioning_until(at(seen, OPENS + MINUTE, provisioningTimeout="2m")) == OPENS + 2 * MINUTE


def test_a_machine_that_the_status_does_not_have_yet_counts_from_now():
    assert provisioning_until(at(running_world(status=status(), **PROVISIONING))) == MORNING + 15 * MINUTE


DONE = [
    pytest.param(running_world(status=running_status(**CREATED)), id="its Node is Ready"),
    pytest.param(
        running_world(status=running_status(first_ready_time=OPENS, **CREATED), node=node(ready=False)),
        id="its Node was Ready",
    ),
    pytest.param(
        running_world(status=running_status(**CREATED), machine=machine(failure=FAILURE), node=None), id="failed"
    ),
    pytest.param(leaving_world(since=OPENS), id="it is being deleted"),
    pytest.param(world(), id="there is none"),
]


@pytest.mark.parametrize("seen", DONE)
def test_a_machine_no_longer_counts_when(seen):
    assert provisioning_until(at(seen, OPENS + MINUTE)) is None


def test_a_shutdown_counts_until_the_machine_is_gone_or_its_time_is_up():
    assert draining_until(at(running_world(), CLOSES), CLOSES) == CLOSES + GRACE
    assert draining_until(at(running_world(), CLOSES + GRACE), CLOSES) is None
    left = world(bootstrap=child(Role.BOOTSTRAP))
    assert draining_until(at(left, CLOSES), CLOSES) is None
    assert draining_until(at(running_world()), None) is None


# The limit


@pytest.mark.parametrize(
    ("annotation", "limit"),
    [
        (None, 7),
        ("3", 3),
        (" 3 ", 3),
        ("0", 0),
        ("-1", 7),
        ("many", 7),
        ("", 7),
        ("٣", 7),
        ("1000000", 7),
        ("999999", 999999),
    ],
)
def test_the_annotation_of_the_cluster_outranks_the_setting_if_it_is_a_number(annotation, limit):
    annotations = {} if annotation is None else {names.ANNOTATION_MAX_PROVISIONING: annotation}
    assert limit_of(Queueing.PROVISIONING, annotations, 7) == limit
    assert limit_of(Queueing.DRAINING, annotations, 7) == 7


def test_a_plan_says_which_turn_it_waits_for():
    assert awaited(decide(intent(), world(turns=NO_TURN), MORNING)) is Queueing.PROVISIONING
    assert awaited(decide(intent(), running_world(turns=NO_TURN), CLOSES)) is Queueing.DRAINING
    assert awaited(decide(intent(), world(), MORNING)) is None
