"""A schedule whose calendars cannot all be read: nothing is created or removed for its sake."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from crds.calendars import CalendarDates, CalendarProblem, CalendarReference, Calendars, NamedDays, UnreadableCalendar
from crds.dates import day_of
from crds.providers import DEFAULT_POLICY
from crds.status import Phase
from service.decide import plan as actions
from service.decide.intent import Intent, Sources, read_intent
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.reasons import Reason
from service.decide.report import should_defer
from service.decide.situation import Situation
from tests.service.decide import builders
from tests.service.decide.builders import EVENING, MORNING

HOLIDAYS = {"calendarRef": {"name": "holidays"}, "state": "Closed"}
TODAY = day_of(MORNING.date())


class Shelf:
    """One calendar, or none, which may still be on its way."""

    def __init__(self, *found: CalendarDates | UnreadableCalendar, pending: bool = False) -> None:
        self.found, self.on_its_way = found, pending

    def seen_from(self, _namespace: str, references: Iterable[CalendarReference]) -> Calendars:
        return dict(zip(references, self.found, strict=False))

    def pending(self, _namespace: str, _references: Iterable[CalendarReference]) -> bool:
        return self.on_its_way


def intent(shelf: Shelf, **spec: Any) -> Intent:
    raw = builders.stored(builders.raw_spec(**spec))
    raw["spec"]["schedule"]["exceptions"] = [HOLIDAYS]
    return read_intent(raw, DEFAULT_POLICY, Sources(shelf))


def test_a_holiday_keeps_the_window_closed() -> None:
    closed = intent(Shelf(CalendarDates(days=(NamedDays(TODAY, TODAY, "a holiday"),))))
    assert not closed.covers(MORNING)
    assert closed.covers(MORNING + timedelta(days=1))


def test_without_its_calendar_a_schedule_creates_nothing() -> None:
    plan = decide(intent(Shelf()), builders.world(), MORNING)
    assert (plan.phase, plan.reason, plan.actions) == (Phase.ERROR, Reason.CALENDAR_NOT_FOUND, ())
    assert "there is no ScheduleCalendar holidays in this namespace. No machine is created" in plan.message


def test_without_its_calendar_a_schedule_removes_nothing_either_and_a_shutdown_is_abandoned() -> None:
    broken = intent(
        Shelf(UnreadableCalendar(CalendarProblem.INVALID, "ScheduleCalendar holidays: spec.ics is no calendar"))
    )
    plan = decide(broken, builders.draining_world(builders.pod()), EVENING)
    assert plan.reason is Reason.CALENDAR_INVALID
    assert not [action for action in plan.actions if isinstance(action, actions.Delete | actions.Evict)]
    assert [type(action) for action in plan.actions] == [actions.Uncordon]


def test_the_kill_switch_outranks_a_calendar_that_is_missing() -> None:
    plan = decide(intent(Shelf(), killSwitch=True), builders.running_world(), MORNING)
    assert plan.phase is Phase.TERMINATED


def test_a_calendar_that_has_only_not_been_read_yet_changes_nothing_and_no_status_is_written() -> None:
    waiting = intent(Shelf(pending=True))
    world = builders.draining_world(builders.pod())
    plan = decide(waiting, world, EVENING)
    assert (plan.actions, plan.phase) == ((), world.status.phase or Phase.PENDING)
    assert should_defer(Situation.at(waiting, world, EVENING), plan, Outcome())
