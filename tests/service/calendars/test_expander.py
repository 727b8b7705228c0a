"""Calendars worked out in real subprocesses; a hostile one costs its bound and says what is wrong."""

import resource
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import holidays
import pytest
import yaml

from crds.calendars import CalendarDates, CalendarKind, CalendarProblem, CalendarReference, UnreadableCalendar
from crds.dates import day_of
from crds.expansion import Horizon, outlook
from crds.rules import check
from crds.schedule import Schedule
from crds.schedulecalendar import CalendarSpec, CalendarStatus
from crds.zones import Zone
from service.calendars.expander import Expander
from service.calendars.worker import CPU_SECONDS, ENTRIES_MAX
from tests.service.calendars.events import all_day, calendar, event

TODAY = date(2026, 11, 18)
MIB = 1024 * 1024


async def dates(spec: dict, **options: str | None) -> CalendarDates | UnreadableCalendar:
    return await Expander().dates("ScheduleCalendar uk", CalendarSpec.parse(spec), TODAY, **options)


async def read(text: str) -> CalendarDates | UnreadableCalendar:
    return await dates({"ics": {"inline": text}})


def upcoming(found: CalendarDates | UnreadableCalendar, count: int = 3) -> list[tuple[str, str]]:
    assert isinstance(found, CalendarDates), found
    return [(each.date, each.name) for each in found.upcoming(day_of(TODAY), count, Zone.parse("UTC"))]


async def test_dates_and_days_of_every_year_need_no_subprocess():
    spec = CalendarSpec.parse({"dates": ["2026-12-24"], "yearly": ["12-25"]})
    found = await Expander(python="/nonexistent").dates("ScheduleCalendar uk", spec, TODAY)
    assert upcoming(found) == [("2026-12-24", ""), ("2026-12-25", ""), ("2027-12-25", "")]
    assert isinstance(found, CalendarDates)
    assert found.through is None


async def test_public_holidays_come_with_their_names_and_their_observed_days():
    found = await dates({"holidays": {"country": "GB", "subdivision": "SCT"}})
    assert upcoming(found, 5) == [
        ("2026-11-30", "Saint Andrew's Day"),
        ("2026-12-25", "Christmas Day"),
        ("2026-12-26", "Boxing Day"),
        ("2026-12-28", "Boxing Day (observed)"),
        ("2027-01-01", "New Year's Day"),
    ]
    assert isinstance(found, CalendarDates)
    assert found.through == day_of(date(2036, 12, 31))


async def test_holidays_that_a_country_announces_year_by_year_are_known_for_as_long():
    found = await dates({"holidays": {"country": "LK"}, "yearly": ["12-31"]})
    assert isinstance(found, CalendarDates)
    announced = date(min(holidays.country_holidays("LK").end_year, 2036), 12, 31)
    assert found.through == day_of(announced)
    assert max(each.last for each in found.days) > day_of(announced) - 31
    status, _ = outlook(found, datetime(2026, 11, 18, tzinfo=UTC), 1, CalendarStatus())
    assert status.known_through == str(announced)


async def test_a_year_of_which_only_some_holidays_are_known_is_not_known():
    spec = CalendarSpec.parse({"holidays": {"country": "IN"}})
    with pytest.warns(UserWarning, match="from 2001 to 2035"):
        holidays.country_holidays("IN", years=2036)
    found = await Expander().dates("ScheduleCalendar india", spec, date(2029, 6, 1))
    assert isinstance(found, CalendarDates)
    assert found.through == day_of(date(2035, 12, 31))


async def test_all_parts_of_a_calendar_are_taken_together():
    found = await dates(
        {
            "dates": ["2026-12-01"],
            "holidays": {"country": "DE"},
            "ics": {"inline": calendar(all_day("20261207", "SUMMARY:Stocktaking"))},
        }
    )
    assert upcoming(found, 2) == [("2026-12-01", ""), ("2026-12-07", "Stocktaking")]
    assert upcoming(found)[2] == ("2026-12-25", "Christmas Day")


async def test_the_text_may_come_from_a_config_map():
    spec = {"ics": {"configMapKeyRef": {"name": "team", "key": "team.ics"}}}
    assert upcoming(await dates(spec, config_map=calendar(all_day("20261207")))) == [("2026-12-07", "")]
    missing = await dates(spec)
    assert isinstance(missing, UnreadableCalendar)
    assert "configMapKeyRef" in missing.message


async def test_a_calendar_is_worked_out_once_for_each_content():
    expander = Expander()
    spec = CalendarSpec.parse({"ics": {"inline": calendar(all_day("20261207"))}})
    first = await expander.dates("ScheduleCalendar a", spec, TODAY)
    expander._python = "/nonexistent"
    assert await expander.dates("ScheduleCalendar b", spec, TODAY) == first
    with pytest.raises(FileNotFoundError):
        await expander.dates("ScheduleCalendar a", spec, date(2027, 1, 1))


SMALL = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224\nEND:VEVENT\n"


HOSTILE = {
    "an endless rule, every second": (calendar(event("DTSTART:20261224T000000Z", "RRULE:FREQ=SECONDLY")), "daily"),
    "thousands of endless daily rules": (
        calendar(*(all_day("20200101", "RRULE:FREQ=DAILY", uid=str(number)) for number in range(5000))),
        "processor time|memory|dates",
    ),
    "as many events as fit": (calendar(SMALL * (MIB // len(SMALL) - 2)), "processor time|memory|dates"),
    "deep nesting": ("BEGIN:VCALENDAR\r\n" * (MIB // 17), "nests|iCalendar"),
    "one line of a mebibyte": ("A" * MIB, "iCalendar"),
    "one folded line of a mebibyte": (
        "BEGIN:VCALENDAR\r\nSUMMARY:" + "a\r\n " * (MIB // 5),
        "iCalendar|processor|VCAL",
    ),
    "a rule of a mebibyte": (
        calendar(all_day("20261224", "RRULE:FREQ=DAILY;BYMONTHDAY=" + ",".join(["1"] * (MIB // 2 - 200)))),
        "rules|sense|processor|memory|iCalendar|dates",
    ),
    "a count beyond all bounds": (
        calendar(all_day("00010101", "RRULE:FREQ=DAILY;COUNT=999999999999")),
        "processor|rules|dates|iCalendar",
    ),
    "entities": ('<?xml version="1.0"?><!DOCTYPE z [<!ENTITY a "secret">]><z>&a;</z>', "iCalendar"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_calendar_costs_its_bound_and_says_what_is_wrong(name):
    text, says = HOSTILE[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = await read(text)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < CPU_SECONDS + 4, "the interpreter and the libraries take a second or two to start"
    if before.ru_maxrss < 300 * 1024:  # the peak of all children so far: another test of this process may have had more
        assert after.ru_maxrss < 300 * 1024
    assert isinstance(found, UnreadableCalendar), f"{name} was read"
    assert found.problem is CalendarProblem.INVALID
    assert any(word in found.message for word in says.split("|")), found.message
    assert "secret" not in found.message
    assert len(found.message) < 200


async def test_what_no_calendar_holds_any_more_takes_no_memory():
    expander = Expander()
    spec = CalendarSpec.parse({"ics": {"inline": calendar(all_day("20261207"))}})
    dates = await expander.dates("ScheduleCalendar uk", spec, TODAY)
    assert list(expander._read.values()) == [dates]
    assert not expander._broken
    del dates
    assert not list(expander._read.values())


async def test_a_broken_calendar_is_read_once_and_its_text_is_not_kept():
    expander = Expander()
    spec = CalendarSpec.parse({"ics": {"inline": "this is no calendar" * 1000}})
    first = await expander.dates("ScheduleCalendar uk", spec, TODAY)
    expander._python = "/nonexistent"
    assert await expander.dates("ScheduleCalendar uk", spec, TODAY) == first
    assert all(len(content) + len(message) < 300 for content, message in expander._broken.items())


async def test_a_text_that_the_worker_would_not_read_whole_is_too_large():
    found = await dates({"ics": {"configMapKeyRef": {"name": "a", "key": "b"}}}, config_map="A" * 8 * MIB)
    assert isinstance(found, UnreadableCalendar)
    assert found.message == "ScheduleCalendar uk: spec.ics is too large to be read; make it smaller"


@pytest.mark.parametrize(("year", "count"), [(1, 11), (2, 12), (9989, 12), (9999, 2)])
async def test_calendars_are_read_at_both_ends_of_all_dates(year, count):
    spec = CalendarSpec.parse({"ics": {"inline": calendar(all_day("00010101", "RRULE:FREQ=YEARLY"))}})
    found = await Expander().dates("ScheduleCalendar uk", spec, date(year, 6, 1))
    assert isinstance(found, CalendarDates)
    assert len(found.days) == count


async def test_a_calendar_that_names_too_many_dates_is_refused():
    daily = (all_day("20250101", "RRULE:FREQ=DAILY", uid=str(number)) for number in range(3))
    found = await read(calendar(*daily))
    assert isinstance(found, UnreadableCalendar)
    assert f"more than {ENTRIES_MAX} dates" in found.message


async def test_a_worker_that_does_not_answer_is_ended_and_its_calendar_tried_again():
    spec, expander = CalendarSpec.parse({"holidays": {"country": "GB"}}), Expander(wall_seconds=0.01)
    found = await expander.dates("ScheduleCalendar uk", spec, TODAY)
    assert isinstance(found, UnreadableCalendar)
    assert found.passing
    expander._wall_seconds = 60.0
    assert isinstance(await expander.dates("ScheduleCalendar uk", spec, TODAY), CalendarDates)


def test_the_operator_does_not_load_the_libraries():
    code = "import sys, service.calendars.expander; print([m for m in ('holidays', 'icalendar') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


async def test_the_names_of_dates_are_one_short_line():
    found = await read(calendar(all_day("20261207", "SUMMARY:" + "a\\n\\tb" * 1000)))
    ((_, name),) = upcoming(found)
    assert len(name) <= 128
    assert name.isprintable()


async def test_the_example_of_a_machine_with_calendars_is_closed_on_their_dates():
    machine, *calendars = (example(name) for name in ("machine", "company", "scotland"))
    model = check(machine).model
    assert model is not None
    schedule = model.spec.schedule
    known = {}
    for each in calendars:
        reference = CalendarReference(CalendarKind(each["kind"]), each["metadata"]["name"])
        known[reference] = await Expander().dates(str(reference), CalendarSpec.parse(each["spec"]), TODAY)
    resolved = schedule.resolved(known)
    assert isinstance(resolved, Schedule)
    start, end = (datetime(2026, 12, day, tzinfo=UTC) for day in (10, 16))
    assert [f"{each.opens:%d %H:%M}-{each.closes:%d %H:%M}" for each in resolved.windows(start, end)] == [
        "10 09:00-10 18:00",
        "11 00:00-12 00:00",
        "14 09:00-14 18:00",
        "15 09:00-15 18:00",
    ]
    assert schedule.exception_on(date(2027, 1, 4), known) == ("Closed", "Stocktaking")
    assert schedule.exception_on(date(2026, 12, 25), known) == ("Closed", "Christmas Day")


def example(name: str) -> dict:
    path = Path(__file__).parents[3] / "examples" / "calendars" / f"{name}.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


class TestOutlook:
    NOW = datetime(2026, 12, 24, 10, tzinfo=UTC)

    async def test_a_readable_calendar_reports_its_next_dates_and_when_they_change(self):
        found = await dates({"holidays": {"country": "GB"}})
        status, changes_at = outlook(found, self.NOW, 3, CalendarStatus())
        assert (status.next_dates[0].date, status.next_dates[0].name) == ("2026-12-25", "Christmas Day")
        assert len(status.next_dates) == 10
        assert status.known_through == "2036-12-31"
        assert (status.conditions[0].status, status.conditions[0].reason) == ("True", "CalendarRead")
        assert changes_at == datetime(2026, 12, 26, tzinfo=UTC)

    async def test_a_calendar_that_names_no_date_says_so(self):
        says = "names no date until 2036-12-31; schedules that name it are as without it"
        for spec in ({"holidays": {"country": "IO"}}, {"ics": {"inline": calendar()}}):
            (ready,) = outlook(await dates(spec), self.NOW, 3, CalendarStatus())[0].conditions
            assert (ready.status, ready.message) == ("True", says)
        filled = await dates({"holidays": {"country": "IO"}, "yearly": ["12-25"]})
        assert outlook(filled, self.NOW, 3, CalendarStatus())[0].conditions[0].message == ""

    def test_an_unreadable_calendar_reports_why(self):
        broken = UnreadableCalendar(CalendarProblem.INVALID, "ScheduleCalendar uk: spec.ics is nested too deeply")
        status, changes_at = outlook(broken, self.NOW, 3, CalendarStatus())
        (ready,) = status.conditions
        assert (ready.status, ready.reason, ready.message) == ("False", "CalendarInvalid", broken.message)
        assert changes_at is None
        later = outlook(broken, self.NOW.replace(hour=11), 4, status).status.conditions[0]
        assert later.last_transition_time == self.NOW

    def test_the_horizon_moves_on_with_the_year(self):
        assert Horizon.around(TODAY) == (date(2025, 1, 1), date(2036, 12, 31))
        assert Horizon.around(date(2027, 1, 1)).last == date(2037, 12, 31)
        _, changes_at = outlook(CalendarDates(through=day_of(date(2036, 12, 31))), self.NOW, 1, CalendarStatus())
        assert changes_at == datetime(2027, 1, 1, tzinfo=UTC)
