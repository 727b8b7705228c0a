"""What an ICS says: each date that an event touches, as people read their calendars."""

from datetime import date, timedelta

import pytest

from service.calendars.ics import BrokenCalendar, dates_of
from tests.service.calendars.events import all_day, calendar, event

FIRST, LAST = date(2026, 1, 1), date(2028, 12, 31)


def days(*events: str) -> list[str]:
    """All dates of whole days and floating times, in order."""
    found, _ = dates_of(calendar(*events), FIRST, LAST)
    runs = ((date(1970, 1, 1) + timedelta(days=first), last - first) for first, last, _ in found)
    return sorted(str(first + timedelta(days=more)) for first, length in runs for more in range(length + 1))


def events(*given: str) -> list[tuple[int, int]]:
    _, found = dates_of(calendar(*given), FIRST, LAST)
    return [(begins, ends) for begins, ends, _ in found]


def test_a_whole_day_is_its_date():
    assert days(all_day("20261224")) == ["2026-12-24"]
    assert days(all_day("20261224", "DTEND;VALUE=DATE:20261225")) == ["2026-12-24"]


def test_the_end_of_whole_days_does_not_count():
    assert days(all_day("20261224", "DTEND;VALUE=DATE:20261227")) == ["2026-12-24", "2026-12-25", "2026-12-26"]


def test_a_floating_time_has_the_date_that_it_says():
    assert days(event("DTSTART:20261224T220000", "DTEND:20261225T020000")) == ["2026-12-24", "2026-12-25"]
    assert days(event("DTSTART:20261224T220000", "DTEND:20261225T000000")) == ["2026-12-24"]


def test_a_time_with_a_zone_is_a_moment():
    noon = 1798113600  # 2026-12-24T12:00:00Z
    assert events(event("DTSTART:20261224T120000Z", "DURATION:PT1H")) == [(noon, noon + 3600)]
    assert events(event("DTSTART;TZID=Europe/Berlin:20261224T130000", "DURATION:PT1H")) == [(noon, noon + 3600)]


@pytest.mark.parametrize(
    "lines",
    [
        ("DTSTART:20261224T120000Z", "RDATE;VALUE=PERIOD:20261225T000000Z/99991231T235959Z"),
        ("DTSTART:00100101T120000Z", "DTEND:20261226T120000Z"),
        ("DTSTART;VALUE=DATE:00100101", "DTEND;VALUE=DATE:20261226"),
    ],
)
def test_an_event_of_millennia_is_known_some_days_around_the_period(lines):
    whole, timed = dates_of(calendar(event(*lines)), FIRST, LAST)
    moments = [each for begins, ends, _ in timed for each in (begins, ends)]
    seen = [date(1970, 1, 1) + timedelta(seconds=each) for each in moments]
    seen += [date(1970, 1, 1) + timedelta(days=each) for first, last, _ in whole for each in (first, last)]
    assert FIRST - timedelta(days=3) < min(seen) <= date(2026, 12, 25) <= max(seen) < LAST + timedelta(days=4)


def test_events_recur_but_for_the_dates_left_out():
    weekly = all_day("20261201", "RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE;VALUE=DATE:20261208")
    assert days(weekly) == ["2026-12-01", "2026-12-15", "2026-12-22"]


def test_an_event_without_end_recurs_up_to_the_horizon():
    assert days(all_day("20201225", "RRULE:FREQ=YEARLY")) == ["2026-12-25", "2027-12-25", "2028-12-25"]


def test_a_cancelled_event_does_not_count():
    assert days(all_day("20261224", "STATUS:CANCELLED"), all_day("20261231", uid="two")) == ["2026-12-31"]


def test_a_cancelled_occurrence_does_not_count():
    series = all_day("20261201", "RRULE:FREQ=WEEKLY;COUNT=3")
    cancelled = all_day("20261208", "RECURRENCE-ID;VALUE=DATE:20261208", "STATUS:CANCELLED")
    assert days(series, cancelled) == ["2026-12-01", "2026-12-15"]


def test_a_moved_occurrence_counts_where_it_was_moved_to():
    series = all_day("20261201", "RRULE:FREQ=WEEKLY;COUNT=3")
    moved = all_day("20261210", "RECURRENCE-ID;VALUE=DATE:20261208")
    assert days(series, moved) == ["2026-12-01", "2026-12-10", "2026-12-15"]


def test_an_event_with_two_summaries_has_both_names():
    found, _ = dates_of(calendar(all_day("20261224", "SUMMARY:Christmas Eve", "SUMMARY:Heiligabend")), FIRST, LAST)
    assert [name for _, _, name in found] == ["Christmas Eve, Heiligabend"]


def test_todos_and_journals_are_not_events():
    todo = "BEGIN:VTODO\r\nUID:t\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20261224\r\nEND:VTODO\r\n"
    assert days(todo) == []


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("FREQ=HOURLY", "more often than daily"),
        ("FREQ=SECONDLY;COUNT=2", "more often than daily"),
        ("FREQ=DAILY;BYHOUR=8,9", "more often than daily"),
        ("COUNT=3", "RRULE"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL below 1"),
    ],
)
def test_nothing_recurs_more_often_than_daily(rule, says):
    with pytest.raises(BrokenCalendar, match=says):
        dates_of(calendar(event("DTSTART:20261224T120000Z", f"RRULE:{rule}")), FIRST, LAST)


@pytest.mark.parametrize("lines", [("20261224", "DTEND;VALUE=DATE:99991231"), ("99991231",)])
def test_an_event_until_the_end_of_all_dates_is_to_end_earlier(lines):
    with pytest.raises(BrokenCalendar, match="reaches thousands of years; give it an earlier end"):
        dates_of(calendar(all_day(*lines)), FIRST, LAST)


@pytest.mark.parametrize(
    "line",
    [
        "DTSTART;TZID=Mars/Olympus:20261224T120000",
        "DTSTART:20261224T120000Z\r\nDTEND;TZID=Mars/Olympus:20261224T130000",
        "DTSTART:20261224T120000Z\r\nRRULE:FREQ=DAILY;COUNT=2\r\nEXDATE;TZID=Mars/Olympus:20261225T120000",
        "DTSTART:20261224T120000Z\r\nRDATE;TZID=Mars/Olympus:20261225T120000,20261226T120000",
        "DTSTART:20261224T120000Z\r\nRDATE;VALUE=PERIOD;TZID=Mars/Olympus:20261225T120000/PT1H",
    ],
)
def test_an_unknown_zone_is_not_taken_for_the_schedules_own(line):
    with pytest.raises(BrokenCalendar, match="time zone"):
        dates_of(calendar(event(line)), FIRST, LAST)


def test_zones_are_those_of_iana_of_outlook_and_of_the_calendar_itself():
    zone = "BEGIN:VTIMEZONE\r\nTZID:Ours\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n"
    zone += "TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
    for name in ("Europe/Berlin", "W. Europe Standard Time", "Ours"):
        start = f"DTSTART;TZID={name}:20261224T130000"
        assert events(zone, event(start, "RRULE:FREQ=DAILY;COUNT=2", f"EXDATE;TZID={name}:20261225T130000")) == [
            (1798113600, 1798113600)
        ]


@pytest.mark.parametrize(
    "other",
    [
        all_day("20261226"),
        all_day("20261224", "DTEND;VALUE=DATE:20261227"),
        all_day("20261224", "RRULE:FREQ=DAILY;COUNT=2"),
        event("DTSTART;TZID=Europe/Berlin:20261224T000000"),
    ],
)
def test_of_different_events_with_one_uid_none_gets_lost(other):
    with pytest.raises(BrokenCalendar, match="same UID"):
        dates_of(calendar(all_day("20261224"), other), FIRST, LAST)


def test_of_two_versions_of_an_event_the_later_counts_and_a_copy_is_none():
    versions = all_day("20261224", "SEQUENCE:1"), all_day("20261226", "SEQUENCE:2")
    assert days(*versions) == days(*reversed(versions)) == ["2026-12-26"]
    assert days(all_day("20261224"), all_day("20261224", "SUMMARY:copied")) == ["2026-12-24"]


def test_events_without_uid_are_events_of_their_own():
    bare = (f"BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:{day}\r\nEND:VEVENT\r\n" for day in ("20261224", "20261226"))
    assert days(*bare) == ["2026-12-24", "2026-12-26"]


@pytest.mark.parametrize(
    "lines",
    [
        ("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261220"),
        ("DTSTART:20261224T120000Z", "DTEND:20261224T110000Z"),
        ("DTSTART:20261224T120000", "DTEND:20261224T110000"),
        ("DTSTART;TZID=Europe/Berlin:20261224T120000", "DTEND:20261224T105959Z"),
        ("DTSTART;VALUE=DATE:20261224", "DTEND:20261223T120000Z"),
        ("DTSTART:20261224T120000Z", "DURATION:-P3D"),
    ],
)
def test_an_event_that_ends_before_it_begins_is_not_turned_around(lines):
    with pytest.raises(BrokenCalendar, match="ends before it begins"):
        dates_of(calendar(event(*lines)), FIRST, LAST)


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("STATUS:CONFIRMED", "STATUS:CANCELLED"), "STATUS"),
        (("DTEND;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261226"), "DTEND"),
        (("DTSTART;VALUE=DATE:20261226",), "DTSTART"),
        (("UID:two",), "UID"),
    ],
)
def test_what_an_event_says_twice_is_not_guessed_at(lines, name):
    with pytest.raises(BrokenCalendar, match=f"more than one {name}"):
        dates_of(calendar(all_day("20261224", *lines)), FIRST, LAST)


def test_exceptions_by_rule_are_not_passed_over():
    with pytest.raises(BrokenCalendar, match="EXRULE"):
        dates_of(calendar(all_day("20261224", "RRULE:FREQ=DAILY;COUNT=3", "EXRULE:FREQ=DAILY;COUNT=1")), FIRST, LAST)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Mars/Base"])
def test_a_floating_time_stays_in_the_zone_of_the_schedule_whatever_zone_the_calendar_is_shown_in(zone):
    text = calendar(event("DTSTART:20261224T010000")).replace("VERSION:2.0", f"VERSION:2.0\r\nX-WR-TIMEZONE:{zone}")
    assert f"X-WR-TIMEZONE:{zone}" in text
    found, moments = dates_of(text, FIRST, LAST)
    assert [first - last for first, last, _ in found] == [0]
    assert moments == []


@pytest.mark.parametrize("keep", [1, 3], ids=["in the calendar", "in an event"])
def test_of_a_text_that_breaks_off_no_calendar_counts(keep):
    second = calendar(all_day("20261225")).split("\r\n")
    with pytest.raises(BrokenCalendar, match="its END line is missing"):
        dates_of(calendar(all_day("20261224")) + "\r\n".join(second[: keep + 1]) + "\r\n", FIRST, LAST)


def test_an_export_may_begin_with_a_byte_order_mark():
    assert dates_of("\ufeff" + calendar(all_day("20261224")), FIRST, LAST)[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT\r\nEND:VEVENT\r\n",
        calendar("BEGIN:VEVENT\r\nDTSTART:secret\r\nEND:VEVENT\r\n"),
        calendar(event("DTSTART:99999999T999999Z", "RRULE:FREQ=secret")),
        "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
        "\x00\x01\x02",
    ],
    ids=range(8),
)
def test_what_is_no_calendar_is_refused_without_quoting_it(text):
    with pytest.raises(BrokenCalendar) as refused:
        dates_of(text, FIRST, LAST)
    assert "secret" not in str(refused.value)
    assert "passwd" not in str(refused.value)
