"""The layers of a machine's line."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from crds.calendars import CalendarDates, CalendarKind, CalendarReference, NamedDays
from crds.dates import day_of
from crds.overrides import Override, OverrideState
from crds.values import Zone
from service.fleet.timeline import TimelinePeriod, midnight, milliseconds, timeline
from tests.crds.machines import machine

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = TimelinePeriod(MONDAY, MONDAY + 7 * DAY)
OFFICE = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"}


def hours(day: int, begins: float, ends: float) -> tuple[int, int]:
    return milliseconds(MONDAY + day * DAY + begins * HOUR), milliseconds(MONDAY + day * DAY + ends * HOUR)


def line(now: datetime = MONDAY, overrides: tuple[Override, ...] = (), **given: Any) -> dict[str, Any]:
    return timeline(machine(**{"schedule": OFFICE, **given}), {}, overrides, WEEK, now)


def override(state: OverrideState, begins: datetime, ends: datetime) -> Override:
    return Override("tonight", state, begins, ends, created=begins, requested_by="alice", reason="release")


def test_windows_are_planned_and_wanted() -> None:
    found = line()
    assert found["planned"] == [hours(day, 9, 18) for day in range(5)]
    assert found["wanted"] == found["planned"]
    assert "overrides" not in found


def test_only_what_is_ahead_is_wanted() -> None:
    assert line(MONDAY + DAY + 12 * HOUR)["wanted"] == [hours(1, 12, 18), *(hours(day, 9, 18) for day in (2, 3, 4))]


def test_an_override_changes_what_is_wanted_and_not_what_is_planned() -> None:
    extended = override(OverrideState.OPEN, MONDAY + 17 * HOUR, MONDAY + 20 * HOUR)
    found = line(overrides=(extended,))
    assert found["planned"][0] == hours(0, 9, 18)
    assert found["wanted"][0] == hours(0, 9, 20)
    assert found["overrides"] == [(*hours(0, 17, 20), "Open", "tonight", "alice", "release")]


def test_an_early_start_is_wanted_before_it_is_planned() -> None:
    found = line(schedule=OFFICE | {"startEarly": "30m"})
    assert found["wanted"][0] == hours(0, 8.5, 18)


def test_exceptions_have_their_dates() -> None:
    found = line(schedule=OFFICE | {"exceptions": [{"dates": ["2026-03-04"], "state": "Closed"}]})
    assert [each[:3] for each in found["exceptions"]] == [(*hours(2, 0, 24), "Closed")]
    assert hours(2, 9, 18) not in found["planned"]


def test_an_exception_has_the_name_of_its_date_or_else_of_its_calendar() -> None:
    reference = CalendarReference(CalendarKind.NAMESPACED, "school")
    wednesday = day_of(date(2026, 3, 4))
    dates = CalendarDates((NamedDays(wednesday, wednesday, "Inset day"), NamedDays(wednesday + 1, wednesday + 1)))
    closed = {"exceptions": [{"calendarRef": {"name": "school"}, "state": "Closed"}]}
    raw = machine(schedule=OFFICE | closed)
    found = timeline(raw, {reference: dates}, (), WEEK, MONDAY)
    assert [each[2:] for each in found["exceptions"]] == [("Closed", "Inset day"), ("Closed", "school")]


def test_a_calendar_that_cannot_be_read_is_named() -> None:
    found = line(schedule=OFFICE | {"exceptions": [{"calendarRef": {"name": "uk"}, "state": "Closed"}]})
    assert "uk" in found["problem"]
    assert "planned" not in found


def test_the_history_says_what_happened() -> None:
    service = {
        "requested": "2026-03-02T09:00:00Z",
        "ready": "2026-03-02T09:30:00Z",
        "shutdown": "2026-03-02T18:00:00Z",
    }
    found = line(MONDAY + 19 * HOUR, status={"history": [service]})
    assert found["served"] == [
        (*hours(0, 9, 9.5), "joining", ""),
        (*hours(0, 9.5, 18), "served", ""),
        (*hours(0, 18, 19), "leaving", ""),
    ]


def test_days_begin_at_local_midnight() -> None:
    london = Zone.parse("Europe/London")
    assert midnight(date(2026, 3, 29), london) == datetime(2026, 3, 29, tzinfo=UTC)
    assert midnight(date(2026, 3, 30), london) == datetime(2026, 3, 29, 23, tzinfo=UTC)
