"""Schedules with calendars: what they are with the calendars at hand, and that none is guessed."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crds.calendars import (
    CalendarDates,
    CalendarEvent,
    CalendarKind,
    CalendarProblem,
    CalendarReference,
    NamedDays,
    Undecidable,
    UnreadableCalendar,
    days_of,
)
from crds.dates import Anniversary, Dates, Days, date_of, day_of
from crds.exceptions import State
from crds.schedule import Schedule
from crds.schedulespec import CalendarsNeededError, ScheduleSpec
from crds.zones import Zone, names
from tests.crds import brute_force
from tests.crds.brute_force import utc
from tests.crds.test_schedule import shown

UK = CalendarReference(CalendarKind.NAMESPACED, "uk")
BANK = CalendarReference(CalendarKind.CLUSTER, "bank")
CHRISTMAS = CalendarDates(days=(NamedDays(day_of(date(2026, 12, 25)), day_of(date(2026, 12, 26)), "Christmas"),))


def spec(*exceptions: dict, zone: str = "UTC") -> ScheduleSpec:
    windows = [{"from": "09:00", "to": "17:00"}]
    return ScheduleSpec.parse({"windows": windows, "exceptions": list(exceptions), "timezone": zone})


def closed_on(name: str, kind: str | None = None) -> dict:
    return {"calendarRef": {"name": name, **({"kind": kind} if kind else {})}, "state": "Closed"}


def event(begins: str, ends: str, name: str = "") -> CalendarEvent:
    return CalendarEvent(int(utc(begins).timestamp()), int(utc(ends).timestamp()), name)


def resolved(asked: ScheduleSpec, calendars: dict) -> Schedule:
    schedule = asked.resolved(calendars)
    assert isinstance(schedule, Schedule)
    return schedule


def test_a_schedule_without_calendars_needs_none():
    given = spec({"dates": ["2026-12-24"], "state": "Closed"})
    assert given.calendars == ()
    assert given.compiled == resolved(given, {})
    assert shown(given.compiled, "2026-12-23", "2026-12-25T12:00") == [
        "23T09:00:00 23T17:00:00",
        "25T09:00:00 25T12:00:00",
    ]


def test_the_dates_of_a_calendar_are_closed():
    schedule = resolved(spec(closed_on("uk")), {UK: CHRISTMAS})
    assert shown(schedule, "2026-12-24", "2026-12-28") == ["24T09:00:00 24T17:00:00", "27T09:00:00 27T17:00:00"]


def test_a_schedule_names_each_of_its_calendars_once():
    given = spec(closed_on("uk"), closed_on("bank", "ClusterScheduleCalendar"), closed_on("uk", "ScheduleCalendar"))
    assert given.calendars == (UK, BANK)


def test_a_missing_calendar_makes_a_schedule_undecidable():
    found = spec(closed_on("uk"), {"dates": ["2026-12-24"], "state": "Open"}).resolved({BANK: CHRISTMAS})
    assert isinstance(found, Undecidable)
    assert found.problem is CalendarProblem.NOT_FOUND
    assert found.message == "there is no ScheduleCalendar uk in this namespace"


def test_all_calendars_that_are_to_blame_are_named():
    broken = UnreadableCalendar(CalendarProblem.INVALID, "ScheduleCalendar uk: has no dates")
    found = spec(closed_on("uk"), closed_on("bank", "ClusterScheduleCalendar")).resolved({UK: broken})
    assert isinstance(found, Undecidable)
    assert found.problem is CalendarProblem.NOT_FOUND
    assert found.message == "ScheduleCalendar uk: has no dates; there is no ClusterScheduleCalendar bank"
    assert [reference for reference, _ in found.problems] == [UK, BANK]


def test_a_schedule_with_calendars_is_never_read_without_them():
    with pytest.raises(CalendarsNeededError, match="ScheduleCalendar uk"):
        _ = spec(closed_on("uk")).compiled


def test_an_event_closes_the_dates_that_it_touches_in_the_zone_of_the_schedule():
    night = CalendarDates(events=(event("2026-12-24T22:00", "2026-12-25T02:00", "release"),))
    in_utc, in_tokyo = (resolved(spec(closed_on("uk"), zone=zone), {UK: night}) for zone in ("UTC", "Asia/Tokyo"))
    assert shown(in_utc, "2026-12-24", "2026-12-26") == []
    assert shown(in_tokyo, "2026-12-24", "2026-12-25T12:00") == ["24T00:00:00 24T08:00:00"]


def days(event: CalendarEvent, zone: str) -> tuple[int, int]:
    (found,) = days_of([event], Zone.parse(zone))
    return found.first, found.last


@pytest.mark.parametrize("zone", ["UTC", "Africa/Casablanca", "America/New_York"])
def test_the_dates_of_many_events_are_those_of_each(zone):
    start = int(utc("2026-01-01").timestamp())
    many = tuple(CalendarEvent(begins, begins + 3600) for begins in range(start, start + 400 * 86400, 5 * 3600 + 7))
    each_alone = Dates.union(Dates([Days(*days(one, zone))]) for one in many)
    assert CalendarDates(events=many[::-1]).in_zone(Zone.parse(zone)).dates == each_alone


def test_zones_in_which_the_dates_of_events_are_the_same_share_them():
    begins_at = range(int(utc("2026-01-01").timestamp()), int(utc("2027-01-01").timestamp()), 49 * 3600)
    known = CalendarDates(events=tuple(CalendarEvent(begins, begins + 60) for begins in begins_at))
    found = {name: known.in_zone(Zone.parse(name)) for name in names()}
    assert len({id(each) for each in found.values()}) == len(set(found.values())) < len(found) / 4
    assert found["Europe/Berlin"] is found["Europe/Paris"] is not found["Asia/Tokyo"]


def test_an_event_that_ends_at_midnight_does_not_touch_the_new_day():
    assert days(event("2026-12-24T10:00", "2026-12-25"), "UTC") == (day_of(date(2026, 12, 24)),) * 2
    instant = days(event("2026-12-25", "2026-12-25"), "UTC")
    assert instant == (day_of(date(2026, 12, 25)),) * 2


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["UTC", "Asia/Kathmandu", "America/Havana", "Africa/Cairo", "Pacific/Apia", "America/New_York"]),
    st.integers(0, 14 * 1440),
    st.integers(0, 3 * 1440),
    st.sampled_from(["2026-10-25", "2026-03-05", "2026-04-20", "2011-12-25"]),
)
def test_the_dates_of_an_event_are_those_that_the_clock_shows_during_it(zone, begins, length, around):
    start = utc(around) + timedelta(minutes=begins)
    moments = [start + timedelta(minutes=each) for each in range(max(length, 1))]
    shown_dates = {moment.astimezone(brute_force.zone(zone)).date() for moment in moments}
    first, last = days(CalendarEvent(int(start.timestamp()), int(start.timestamp()) + 60 * length), zone)
    every = {date_of(each) for each in range(first, last + 1)}
    assert shown_dates <= every
    assert every - shown_dates <= {date(2011, 12, 30)}


def test_days_of_every_year_go_on_for_ever():
    schedule = resolved(spec(closed_on("uk")), {UK: CalendarDates(yearly=(Anniversary(12, 25),))})
    assert schedule.next_boundary(utc("2151-12-24T18:00")) == utc("2151-12-26T09:00")


def test_the_exception_that_decides_about_a_date_is_named():
    given = spec({"dates": ["2026-12-26"], "state": "Open"}, closed_on("uk"))
    calendars = {UK: CHRISTMAS}
    assert given.exception_on(date(2026, 12, 25), calendars) == (State.CLOSED, "Christmas")
    assert given.exception_on(date(2026, 12, 26), calendars) == (State.OPEN, "")
    assert given.exception_on(date(2026, 12, 27), calendars) is None
    assert given.exception_on(date(2026, 12, 25), {}) is None


def test_the_next_dates_of_a_calendar_come_with_their_names():
    calendar = CalendarDates(
        days=(*CHRISTMAS.days, NamedDays(day_of(date(2026, 12, 25)), day_of(date(2026, 12, 25)), "Closed")),
        yearly=(Anniversary(12, 31),),
        events=(event("2027-01-04T10:00", "2027-01-04T12:00", "stocktaking"),),
    )
    upcoming = calendar.upcoming(day_of(date(2026, 12, 1)), 4, Zone.parse("UTC"))
    assert upcoming == [
        ("2026-12-25", "Closed, Christmas"),
        ("2026-12-26", "Christmas"),
        ("2026-12-31", ""),
        ("2027-01-04", "stocktaking"),
    ]


def test_schedules_with_the_same_calendar_are_laid_out_once():
    calendars = {UK: CHRISTMAS}
    assert resolved(spec(closed_on("uk")), calendars) is resolved(spec(closed_on("uk")), calendars)


def test_an_edited_calendar_makes_another_schedule():
    later = CalendarDates(days=(NamedDays(day_of(date(2027, 12, 25)), day_of(date(2027, 12, 25)), "Christmas"),))
    moment = datetime(2026, 12, 25, 12, tzinfo=UTC)
    assert not resolved(spec(closed_on("uk")), {UK: CHRISTMAS}).covers(moment)
    assert resolved(spec(closed_on("uk")), {UK: later}).covers(moment)
    assert not resolved(spec(closed_on("uk")), {UK: later}).covers(moment + timedelta(days=365))
