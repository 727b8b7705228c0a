"""Notices: which Events are worth one, what they say, and ids that follow from object, window and type."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crds import names
from crds.overrides import Override, OverrideState
from crds.status import Condition, OverrideInForce, Phase, ScheduledMachineStatus
from service.decide.events import new_events
from service.decide.lifecycle import decide
from service.decide.notices import NoticeType, announcement, announcement_due, notices_of
from service.decide.outcome import Outcome
from service.decide.plan import Event
from service.decide.reasons import ProviderReason, Reason
from service.decide.report import report
from service.decide.situation import Situation
from service.decide.world import Role
from tests.service.decide.builders import (
    CLOSES,
    MINUTE,
    MORNING,
    OPENS,
    child,
    cluster,
    intent,
    machine,
    running_world,
    world,
)

LEAD = 15 * MINUTE
HOUR = 60 * MINUTE
NOTED = {names.ANNOTATION_WINDOW_OPENS: "2026-03-02T09:00:00Z"}


def in_service(now=MORNING, of=None, **seen):
    found = Situation.at(of or intent(), running_world(bootstrap=child(Role.BOOTSTRAP, annotations=NOTED), **seen), now)
    return found, report(found, decide(found.intent, found.world, now), Outcome())


def one(event, s=None, after=None):
    made, reported = in_service()
    (notice,) = notices_of(s or made, after or reported, [event])
    return notice


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (Reason.SCHEDULE_ACTIVATED, NoticeType.OPENING),
        (Reason.MACHINE_READY, NoticeType.READY),
        (Reason.NOT_READY_IN_TIME, NoticeType.NOT_READY_IN_TIME),
        (Reason.NODE_DRAINED, NoticeType.DRAINED),
        (Reason.DRAIN_TIMED_OUT, NoticeType.CUT_SHORT),
        (Reason.EMERGENCY_RECLAIM, NoticeType.RECLAIM),
        (Reason.OVERRIDE_BEGAN, NoticeType.OVERRIDE),
        (Reason.INVALID_SPEC, NoticeType.ERROR),
        (Reason.FORBIDDEN, NoticeType.ERROR),
    ],
)
def test_events_become_notices(reason, kind):
    assert one(Event(reason, "text")).type is kind


@pytest.mark.parametrize("reason", [Reason.MACHINE_CREATED, Reason.WOULD_CREATE, Reason.SCHEDULE_RESUMED])
def test_other_events_are_no_notices(reason):
    s, after = in_service()
    assert list(notices_of(s, after, [Event(reason, "text")])) == []


def test_it_says_what_happened_where_and_to_which_machine():
    notice = one(Event(Reason.MACHINE_READY, "Machine is running as Node node-7."))
    assert (notice.namespace, notice.name, notice.at) == ("team", "desk", MORNING)
    assert notice.data == {
        "reason": "MachineReady",
        "message": "Machine is running as Node node-7.",
        "namespace": "team",
        "name": "desk",
        "uid": "uid-of-the-scheduledmachine",
        "cluster": "prod",
        "phase": "Active",
        "node": "node-7",
        "windowOpened": "2026-03-02T09:00:00Z",
        "closes": "2026-03-02T18:00:00Z",
    }


def test_nothing_of_the_spec_is_in_it():
    text = str(one(Event(Reason.MACHINE_READY, "text")).data)
    assert "192.0.2.7" not in text
    assert "k0s" not in text


@pytest.mark.parametrize(
    "reason",
    [Reason.PROVIDER_REJECTED, Reason.NOT_READY_IN_TIME, Reason.INVALID_SPEC, ProviderReason("InvalidConfiguration")],
)
def test_what_a_provider_or_the_spec_says_stays_in_the_cluster(reason):
    notice = one(Event(reason, 'spec.token: Invalid value: "hunter2"'))
    assert "hunter2" not in str(notice.data)
    assert notice.data["reason"] == reason
    assert notice.data["message"].endswith("The message is in the status of the ScheduledMachine.")


def test_a_problem_without_quotations_keeps_its_message():
    assert one(Event(Reason.CLUSTER_NOT_FOUND, "Cluster prod does not exist.")).data["message"] == (
        "Cluster prod does not exist."
    )


def test_the_same_in_another_pass_has_the_same_id():
    later, after = in_service(MORNING + MINUTE)
    event = Event(Reason.MACHINE_READY, "text")
    assert one(event).id == one(event, later, after).id


def test_another_type_window_object_or_machine_has_another_id():
    event = Event(Reason.MACHINE_READY, "text")
    s, after = in_service()
    tomorrow = child(Role.BOOTSTRAP, annotations={names.ANNOTATION_WINDOW_OPENS: "2026-03-03T09:00:00Z"})
    others = [
        one(Event(Reason.NODE_DRAINED, "text")),
        one(event, replace(s, world=replace(s.world, bootstrap=tomorrow))),
        one(event, replace(s, world=replace(s.world, me=replace(s.world.me, uid="another")))),
        one(event, after=after.model_copy(update={"machine_ref": None})),
    ]
    ids = {one(event).id, *(each.id for each in others)}
    assert len(ids) == 5


@pytest.mark.parametrize("reason", [Reason.EMERGENCY_RECLAIM, Reason.EMERGENCY_RECLAIM_DISABLED_SCHEDULE])
def test_a_second_reclaim_in_one_window_has_another_id(reason):
    s, first = in_service()
    assert first.machine_ref is not None
    second = first.model_copy(update={"machine_ref": first.machine_ref.model_copy(update={"uid": "the-next"})})
    assert one(Event(reason, ""), s, first).id != one(Event(reason, ""), s, second).id


def test_a_window_that_opens_while_the_machine_of_the_last_one_leaves_is_another_opening():
    event = Event(Reason.SCHEDULE_ACTIVATED, "The window opened.")
    morning, first = in_service(of=intent(schedule={"hoursOfDay": ["9-10", "12-17"]}))
    noon, second = in_service(OPENS + 3 * HOUR, of=morning.intent)
    assert one(event, morning, first).data["windowOpened"] == "2026-03-02T09:00:00Z"
    assert one(event, noon, second).data["windowOpened"] == "2026-03-02T12:00:00Z"
    assert one(event, morning, first).id != one(event, noon, second).id


def test_a_window_that_an_override_keeps_closed_opens_under_its_own_name():
    event = Event(Reason.SCHEDULE_ACTIVATED, "The window opened.")
    closed = Override("off", OverrideState.CLOSED, OPENS, OPENS + 12 * HOUR, created=OPENS)
    today = Situation.at(replace(intent(), overrides=(closed,)), world(), MORNING)
    after = report(today, decide(today.intent, today.world, MORNING), Outcome())
    notice = one(event, today, after)
    assert notice.data["windowOpened"] == "2026-03-02T09:00:00Z"
    assert "closes" not in notice.data, "the status names the close of tomorrow's window"


@pytest.mark.parametrize(("now", "closes"), [(MORNING, "2026-03-02T18:00:00Z"), (CLOSES, None)])
def test_a_close_is_that_of_the_same_window_and_not_of_the_next(now, closes):
    assert one(Event(Reason.NODE_DRAINED, "text"), *in_service(now)).data.get("closes") == closes


def test_two_errors_and_two_overrides_of_one_window_differ():
    assert one(Event(Reason.INVALID_SPEC, "")).id != one(Event(Reason.FORBIDDEN, "")).id
    _, after = in_service()
    night, day = (
        after.model_copy(
            update={"override": OverrideInForce(name=name, state=OverrideState.OPEN, until=CLOSES, by="ada")}
        )
        for name in ("night", "day")
    )
    event = Event(Reason.OVERRIDE_BEGAN, "text")
    assert one(event, after=night).id != one(event, after=day).id
    assert one(event, after=night).data["override"] == {"name": "night", "state": "Open", "by": "ada"}


def test_an_error_that_comes_back_has_another_id_and_one_that_goes_on_the_same():
    s, after = in_service()
    error = Event(Reason.FORBIDDEN, "text")

    def since(moment, reason=Reason.FORBIDDEN):
        ready = Condition(type="Ready", status="False", reason=reason, message="text", last_transition_time=moment)
        return after.model_copy(update={"conditions": (ready,)})

    assert one(error, s, since(OPENS)).id == one(error, replace(s, now=MORNING + MINUTE), since(OPENS)).id
    assert one(error, s, since(OPENS)).id != one(error, s, since(MORNING)).id
    others = [since(OPENS, Reason.CLUSTER_NOT_FOUND), since(MORNING, Reason.CLUSTER_NOT_FOUND)]
    assert len({one(error, s, other).id for other in others}) == 1, "the conditions say nothing about this error"


def test_a_cluster_that_is_missing_twice_while_a_schedule_is_open_is_two_errors():
    of = intent(schedule={"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]})
    before, errors = ScheduledMachineStatus(), []
    for minute, found in enumerate((None, None, cluster(), None)):
        s = Situation.at(of, replace(world(cluster=found), status=before), OPENS + minute * MINUTE)
        plan = decide(s.intent, s.world, s.now)
        after = report(s, plan, Outcome())
        notices = notices_of(s, after, new_events(before, after, plan, Outcome()))
        errors += [notice for notice in notices if notice.type is NoticeType.ERROR]
        before = after
    assert [notice.data["reason"] for notice in errors] == ["ClusterNotFound"] * 2
    assert errors[0].id != errors[1].id


def test_a_close_is_announced_some_time_before_the_shutdown():
    _, after = in_service()
    assert announcement_due(after, LEAD) == CLOSES - LEAD
    assert announcement_due(after, timedelta(0)) is None
    s, near = in_service(CLOSES - LEAD)
    notice = announcement(s, near)
    assert (notice.type, notice.data["message"]) == (
        NoticeType.CLOSING,
        "The machine is shut down in 15 minutes, at 2026-03-02 18:00 UTC.",
    )


def test_a_close_that_moves_is_announced_again():
    s, after = in_service(CLOSES - LEAD)
    moved = after.model_copy(update={"next_cleanup": CLOSES + MINUTE})
    assert announcement(s, after).id != announcement(s, moved).id


def test_nothing_is_announced_without_a_machine_in_a_shutdown_or_in_a_dry_run():
    s = Situation.at(intent(), world(), OPENS)
    assert announcement_due(report(s, decide(s.intent, s.world, OPENS), Outcome()), LEAD) is None
    _, after = in_service()
    assert announcement_due(after.model_copy(update={"phase": Phase.SHUTTING_DOWN}), LEAD) is None
    _, dry = in_service(dry_run=True, machine=machine())
    assert announcement_due(dry, LEAD) is None
