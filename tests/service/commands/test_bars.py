import time
from datetime import UTC, datetime, timedelta

import pytest

from crds.schedule import Schedule, Window
from crds.values import DaySet, HourSet, Zone
from service.commands.bars import Period, drawn, to_midnight


def bars(hours, zone, day, *, plain=False, days=1):
    schedule = Schedule.weekly(DaySet(), HourSet.parse([hours]), zone)
    period = Period(day, day + timedelta(days=days))
    return list(drawn(schedule.windows(*period, cut=True), Zone.parse(zone), period, plain=plain))[1:]


def test_an_hour_that_the_clock_skips_is_blank():
    (berlin, *_) = bars("0-5", "Europe/Berlin", datetime(2026, 3, 28, 23, tzinfo=UTC))
    assert berlin == ("Sun 2026-03-29 ████  ██████" + "·" * 36 + "  00:00-02:00, 03:00-06:00  [clock 02:00 → 03:00]")


def test_an_hour_that_occurs_twice_is_noted():
    (line, *_) = bars("2", "Europe/Berlin", datetime(2026, 10, 24, 22, tzinfo=UTC))
    assert line.endswith("02:00-03:00, 02:00-03:00  [clock 03:00 → 02:00]")


def test_a_clock_change_of_half_an_hour_is_noted():
    (line, *_) = bars("1-4", "Australia/Lord_Howe", datetime(2026, 4, 4, 13, tzinfo=UTC))
    assert line.endswith("01:00-02:00, 01:30-05:00  [clock 02:00 → 01:30]")


def test_a_midnight_that_the_clock_skips_is_noted_on_the_day_that_begins_late():
    before, day, _ = bars("0-5", "America/Santiago", datetime(2026, 9, 5, 4, tzinfo=UTC), days=2)
    assert before.endswith("00:00-06:00")
    assert day == ("Sun 2026-09-06   " + "█" * 10 + "·" * 36 + "  01:00-06:00  [clock 00:00 → 01:00]")


def test_a_period_that_begins_within_a_day_notes_no_change():
    (line, *_) = bars("0-5", "America/Santiago", datetime(2026, 9, 5, 6, tzinfo=UTC))
    assert "clock" not in line


def test_a_day_that_a_zone_left_out_is_left_out():
    lines = bars("0-23", "Pacific/Apia", datetime(2011, 12, 29, 10, tzinfo=UTC), days=2)
    assert [line[4:14] for line in lines] == ["2011-12-29", "2011-12-31"]


def test_half_hour_cells_that_are_open_for_a_part_are_drawn_so():
    start = datetime(2026, 3, 9, tzinfo=UTC)
    schedule = Schedule.from_cron("10 9 * * *", timedelta(minutes=30), "UTC")
    period = Period(start, start + timedelta(days=1))
    line = list(drawn(schedule.windows(*period, cut=True), Zone.parse("UTC"), period))[1]
    assert line[15:].startswith("·" * 18 + "▄▄·")
    assert line.endswith("09:10-09:40")


def test_many_windows_are_counted_rather_than_listed():
    start = datetime(2026, 3, 9, tzinfo=UTC)
    period = Period(start, start + timedelta(days=1))
    windows = Schedule.from_cron("0 * * * *", timedelta(minutes=5), "UTC").windows(*period, cut=True)
    assert list(drawn(windows, Zone.parse("UTC"), period))[1].endswith("… (24)")


def test_plain_terminals_get_plain_signs():
    (line,) = bars("9", "UTC", datetime(2026, 3, 9, tzinfo=UTC), plain=True)
    assert line == "Mon 2026-03-09 " + "." * 18 + "##" + "." * 28 + "  09:00-10:00"


def test_plain_terminals_get_plain_signs_for_clock_changes_and_for_more_too():
    (line, *_) = bars("2", "Europe/Berlin", datetime(2026, 10, 24, 22, tzinfo=UTC), plain=True)
    assert line.endswith("02:00-03:00, 02:00-03:00  [clock 03:00 -> 02:00]")
    start = datetime(2026, 3, 9, tzinfo=UTC)
    period = Period(start, start + timedelta(days=1))
    windows = Schedule.from_cron("0 * * * *", timedelta(minutes=5), "UTC").windows(*period, cut=True)
    (_, busy) = drawn(windows, Zone.parse("UTC"), period, plain=True)
    assert busy.endswith("... (24)")
    assert busy.isascii()


def test_very_many_windows_in_a_year_are_drawn_in_little_time():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    period = Period(start, start + timedelta(days=366))
    minutes = range(0, 366 * 24 * 60, 2)
    windows = [Window(start + timedelta(minutes=each), start + timedelta(minutes=each + 1)) for each in minutes]
    before = time.process_time()
    lines = list(drawn(windows, Zone.parse("UTC"), period))
    assert len(lines) == 367
    assert time.process_time() - before < 4


@pytest.mark.parametrize(
    ("zone", "end", "midnight"),
    [
        ("UTC", "2026-03-08T00:00:00", "2026-03-08T00:00:00"),
        ("UTC", "2026-03-08T00:00:01", "2026-03-09T00:00:00"),
        ("Asia/Tokyo", "2026-03-08T14:59:59", "2026-03-08T15:00:00"),
        ("America/Santiago", "2026-09-05T12:00:00", "2026-09-06T04:00:00"),  # the clock skips that midnight
        ("Pacific/Apia", "2011-12-30T08:00:00", "2011-12-30T10:00:00"),  # and there the whole day that follows
        ("UTC", "9999-12-31T12:00:00", "9999-12-31T23:59:59"),
    ],
)
def test_a_period_is_carried_on_to_the_local_midnight(zone, end, midnight):
    instant = datetime.fromisoformat(f"{end}+00:00")
    found = to_midnight(Period(instant - timedelta(days=1), instant), Zone.parse(zone))
    assert found.end == datetime.fromisoformat(f"{midnight}+00:00")
