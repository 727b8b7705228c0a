"""Exceptions: which windows a closed date takes away and what an open one adds, in all three forms of schedule."""

import itertools
import time
from collections.abc import Callable
from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crds.calendars import CalendarDates, CalendarEvent
from crds.dates import Anniversary, Dates, Days, Either, Yearly
from crds.exceptions import ExceptionRule, Exceptions, State
from crds.schedule import FOREVER, Schedule
from crds.values import Zone
from crds.zones import BEGINNING, END
from tests.crds import minute_walk
from tests.crds.brute_force import WEEK, utc
from tests.crds.test_clockwindows import A_DAY, PLACES, days_before, from_afar, window, window_lists, windows
from tests.crds.test_schedule import SEARCH, around, cron, crons, cut, day_items, durations, hour_items, shown, week

places = st.sampled_from(PLACES)
states = st.sampled_from(["Closed", "Open"])
ranges = st.tuples(st.integers(-3, 3), st.integers(0, 4))
some_days = st.lists(st.integers(-3, 3), min_size=1, max_size=3)
shapes = st.lists(st.tuples(st.lists(ranges, min_size=1, max_size=3), states), min_size=1, max_size=3)


def dates(*texts: str) -> Dates:
    return Dates.union([Dates.parse_item(text) for text in texts])


def excepted(schedule: Schedule, *rules: tuple) -> Schedule:
    made = (
        ExceptionRule(Either(dates(*days)) if isinstance(days, list) else days, State(state)) for days, state in rules
    )
    return schedule.excepted(Exceptions(tuple(made)))


def near(place: tuple[str, str], shape: list) -> list[minute_walk.Rule]:
    """Rules about dates around an odd moment, as users write them."""
    middle = minute_walk.local_day(place[0], utc(place[1]))

    def written(first: int, length: int) -> str:
        begins = middle + timedelta(days=first)
        return f"{begins}/{begins + timedelta(days=length)}" if length else str(begins)

    return [([written(*each) for each in spans], state) for spans, state in shape]


@SEARCH
@given(places, window_lists, shapes, days_before)
@example(("Pacific/Apia", "2011-12-30T10:00"), [window("18:30-07:00")], [([(0, 0)], "Closed")], A_DAY)
@example(
    ("Pacific/Apia", "2011-12-30T10:00"), [window("18:30-07:00")], [([(-1, 0)], "Closed"), ([(0, 1)], "Open")], A_DAY
)
@example(("America/St_Johns", "2010-11-07T02:31"), [window("23:00-00:30")], [([(0, 0)], "Closed")], A_DAY)
@example(("America/St_Johns", "2010-11-07T02:31"), [window("12:00-13:00")], [([(0, 0)], "Open")], A_DAY)
@example(("America/Havana", "2026-03-08T05:00"), [window("00:00-24:00")], [([(0, 0)], "Closed")], A_DAY)
@example(
    ("America/Havana", "2026-11-01T05:00"), [window("23:30-00:30")], [([(-1, 0)], "Closed"), ([(0, 0)], "Open")], A_DAY
)
@example(("UTC", "2026-02-28T00:00"), [window("12:00-12:00")], [([(0, 0)], "Closed")], 20 * A_DAY)
def test_windows_with_exceptions_agree_with_a_walk_minute_by_minute(place, given, shape, before):
    rules, period = near(place, shape), around(place[1], 60)
    schedule = excepted(windows(*given, zone=place[0]), *rules)
    assert from_afar(schedule, period, before) == minute_walk.windows(given, rules, place[0], period)
    assert cut(schedule, period) == from_afar(schedule, period, before)


@SEARCH
@given(places, day_items, hour_items, shapes)
def test_days_and_hours_with_exceptions_agree_with_a_walk_minute_by_minute(place, days, hours, shape):
    hours = hours if days or hours else ["0-23"]
    rules, period = near(place, shape), around(place[1], 60)
    schedule = excepted(week(",".join(days), ",".join(hours), place[0]), *rules)
    assert cut(schedule, period) == minute_walk.hours(days, hours, rules, place[0], period)


@SEARCH
@given(places, crons, durations, shapes)
@example(("Pacific/Apia", "2011-12-30T10:00"), "0 9 30 * *", timedelta(hours=2), [([(0, 0)], "Closed")])
@example(("Pacific/Apia", "2011-12-30T10:00"), "0 9 30 * *", timedelta(hours=2), [([(1, 0)], "Closed")])
@example(("America/New_York", "2026-03-08T07:00"), "30 2 * * *", timedelta(hours=30), [([(0, 0)], "Closed")])
def test_cron_with_exceptions_agrees_with_a_walk_minute_by_minute(place, text, duration, shape):
    rules, period = near(place, shape), around(place[1], 48)
    schedule = excepted(Schedule.from_cron(text, duration, place[0]), *rules)
    assert cut(schedule, period) == minute_walk.cron(text, duration, rules, place[0], period)


@SEARCH
@given(places, window_lists, shapes, st.integers(-300_000, 300_000))
def test_covers_and_next_boundary_agree_with_the_windows(place, given, shape, seconds):
    schedule = excepted(windows(*given, zone=place[0]), *near(place, shape))
    moment = utc(place[1]) + timedelta(seconds=seconds)
    found = list(itertools.islice(schedule.windows(moment, FOREVER), 3))
    inside = bool(found) and moment in found[0]
    assert schedule.covers(moment) == inside
    ends = [end for each in found for end in (each.opens, each.closes) if moment < end < FOREVER]
    assert schedule.next_boundary(moment) == (min(ends) if ends else None)
    assert schedule.current_window(moment) == (found[0] if inside else None)
    openings = [each.opens for each in found if each.opens > moment]
    assert schedule.next_opening(moment) == (min(openings) if openings else None)


@SEARCH
@given(places, window_lists, st.lists(st.tuples(some_days, states), min_size=1, max_size=2))
def test_days_of_every_year_agree_with_a_walk_minute_by_minute(place, given, shape):
    middle, period = minute_walk.local_day(place[0], utc(place[1])), around(place[1], 60)
    written = [([f"{middle + timedelta(days=each):%m-%d}" for each in days], state) for days, state in shape]
    made = [(Either(Dates(), Yearly(map(Anniversary.parse, days))), state) for days, state in written]
    schedule = excepted(windows(*given, zone=place[0]), *made)
    assert cut(schedule, period) == minute_walk.windows(given, written, place[0], period)


def test_a_closed_date_decades_ahead_is_found_beside_days_of_every_year():
    christmas = Either(Dates(), Yearly([Anniversary(12, 25)]))
    schedule = excepted(windows(window("00:00-24:00")), (christmas, "Open"), (["2090-05-05"], "Closed"))
    assert schedule.next_boundary(utc("2026-01-01")) == utc("2090-05-05")
    assert schedule.next_boundary(utc("2090-05-05")) == utc("2090-05-06")
    assert schedule.next_boundary(utc("2090-05-06")) is None


def test_on_a_closed_date_no_window_begins_and_one_of_the_evening_before_runs_to_its_end():
    schedule = excepted(windows(window("18:30-07:00")), (["2026-12-24"], "Closed"))
    assert shown(schedule, "2026-12-23T12:00", "2026-12-26T12:00") == [
        "23T18:30:00 24T07:00:00",
        "25T18:30:00 26T07:00:00",
    ]


def test_with_hours_each_hour_belongs_to_its_own_date():
    schedule = excepted(week("", "22-6"), (["2026-12-24"], "Closed"))
    assert shown(schedule, "2026-12-23T12:00", "2026-12-26") == [
        "23T22:00:00 24T00:00:00",
        "25T00:00:00 25T07:00:00",
        "25T22:00:00 26T00:00:00",
    ]


def test_with_cron_each_firing_belongs_to_its_date():
    schedule = excepted(cron("0 20 * * *", hours=12), (["2026-12-24"], "Closed"))
    assert shown(schedule, "2026-12-23T12:00", "2026-12-26T12:00") == [
        "23T20:00:00 24T08:00:00",
        "25T20:00:00 26T08:00:00",
    ]


def test_an_open_date_is_added_from_midnight_to_midnight_in_the_zone():
    schedule = excepted(windows(window("09:00-17:00", "mon"), zone="America/New_York"), (["2026-12-26"], "Open"))
    assert shown(schedule, "2026-12-23", "2026-12-29T00:00") == ["26T05:00:00 27T05:00:00", "28T14:00:00 28T22:00:00"]


def test_an_open_date_of_25_hours_is_whole():
    schedule = excepted(windows(window("09:00-10:00", "mon"), zone="America/New_York"), (["2026-11-01"], "Open"))
    assert shown(schedule, "2026-10-31", "2026-11-02T06:00") == ["01T04:00:00 02T05:00:00"]


def test_the_first_rule_that_names_a_date_decides():
    every_day = windows(window("09:00-10:00"))
    closed_first = excepted(every_day, (["2026-12-24"], "Closed"), (["2026-12-23/2026-12-25"], "Open"))
    assert shown(closed_first, "2026-12-23", "2026-12-26") == ["23T00:00:00 24T00:00:00", "25T00:00:00 26T00:00:00"]
    open_first = excepted(every_day, (["2026-12-23/2026-12-25"], "Open"), (["2026-12-24"], "Closed"))
    assert shown(open_first, "2026-12-23", "2026-12-26") == ["23T00:00:00 26T00:00:00"]


def test_a_schedule_that_is_always_open_closes_on_its_closed_dates_only():
    schedule = excepted(windows(window("00:00-24:00")), (["2026-12-24/2026-12-26"], "Closed"))
    assert schedule.next_boundary(utc("2026-01-01")) == utc("2026-12-24")
    assert schedule.next_boundary(utc("2026-12-24")) == utc("2026-12-27")
    assert schedule.next_boundary(utc("2026-12-27")) is None


def test_days_of_every_year_are_exact_centuries_ahead():
    christmas = Either(Dates(), Yearly([Anniversary(12, 25)]))
    schedule = excepted(week("mon-sun", ""), (christmas, "Closed"))
    assert schedule.next_boundary(utc("2151-01-01")) == utc("2151-12-25")
    assert schedule.next_boundary(utc("2151-12-25")) == utc("2151-12-26")


def test_the_29th_of_february_is_closed_in_leap_years_only():
    leap = Either(Dates(), Yearly([Anniversary(2, 29)]))
    schedule = excepted(week("mon-sun", ""), (leap, "Closed"))
    assert schedule.next_boundary(utc("2026-01-01")) == utc("2028-02-29")
    assert schedule.next_boundary(utc("2096-03-01")) == utc("2104-02-29")


def test_a_schedule_whose_every_opening_is_closed_never_opens():
    christmas = Either(Dates(), Yearly([Anniversary(12, 25)]))
    schedule = excepted(cron("0 9 25 12 *", hours=8), (christmas, "Closed"))
    assert schedule.never_opens
    assert schedule.next_boundary(utc("2026-01-01")) is None


def test_a_schedule_that_is_open_on_every_day_of_every_year_never_closes():
    days = [date(2000, 1, 1) + timedelta(days=number) for number in range(366)]
    every = Either(Dates(), Yearly(Anniversary(day.month, day.day) for day in days))
    schedule = excepted(week("mon", "9"), (every, "Open"))
    assert schedule.next_boundary(utc("2026-01-01")) is None


def test_rules_that_hide_others_for_years_are_passed_over_quickly():
    years = [f"{year}-01-01/{year}-12-31" for year in range(2000, 2100)]
    schedule = excepted(week("mon", "9"), (years, "Closed"), (years, "Open"))
    assert schedule.next_boundary(utc("2026-01-01")) == utc("2100-01-04T09:00")


LEAP_YEAR = [date(2000, 1, 1) + timedelta(days=number) for number in range(366)]
EVEN, ODD_DAYS, MOST = (
    Either(Dates(), Yearly(Anniversary(day.month, day.day) for day in days))
    for days in (LEAP_YEAR[::2], LEAP_YEAR[1::2], LEAP_YEAR[1:])
)
ALTERNATE = Either(Dates(Days(20_000 + 2 * each, 20_000 + 2 * each) for each in range(10_000)))
FIFTY = [window(f"{each % 24:02}:{each:02}-{each * 7 % 24:02}:30", WEEK[each % 7]) for each in range(50)]


@pytest.mark.parametrize("zone", ["UTC", "Africa/Casablanca"])
@pytest.mark.parametrize(
    "rules",
    [
        [(EVEN, "Closed"), (ODD_DAYS, "Closed")],
        [(EVEN, "Open"), (ODD_DAYS, "Open")],
        [(MOST, "Closed"), (EVEN, "Open")],
        [(MOST, "Open"), (ALTERNATE, "Closed")],
        [(EVEN, "Open"), (ODD_DAYS, "Open"), (MOST, "Closed")],
        [(ALTERNATE, "Open"), (EVEN, "Closed"), (ALTERNATE, "Closed"), (ODD_DAYS, "Open")],
    ],
    ids=range(6),
)
def test_no_exceptions_make_an_answer_slow(zone, rules):
    moment, started = utc("2026-11-18T10:00"), time.process_time()
    for schedule in (windows(*FIFTY, zone=zone), windows(window("00:00-24:00"), zone=zone), cron("0 9 25 12 *", zone)):
        made = excepted(schedule, *rules)
        made.next_boundary(moment), made.covers(moment), made.current_window(moment), made.next_opening(moment)
    assert time.process_time() - started < 3, "twelve answers, of which the slowest takes a tenth of a second"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("state", ["Open", "Closed"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Pacific/Kiritimati", "UTC"])
def test_an_event_until_the_end_of_all_dates_holds_nothing_up(zone, state):
    ages = CalendarDates(events=(CalendarEvent(BEGINNING, END - 1),))
    schedule = excepted(week("mon", "9", zone), (ages.in_zone(Zone.parse(zone)), state))
    assert schedule.covers(utc("2026-03-04")) == (state == "Open")
    assert schedule.next_opening(utc("2026-03-04")) is None
    assert (schedule.current_window(utc("2026-03-04")) is None) == (state == "Closed")


def test_a_window_of_centuries_is_laid_out_once_however_far_back_it_opened():
    ages = dates(*(f"{year}-01-01/{year}-12-31" for year in range(2000, 2400)))
    schedule = excepted(week("mon", "9", "America/New_York"), (Either(ages), "Open"))
    moment = utc("2027-03-04")
    quick = min(timed(lambda: schedule.next_boundary(moment)) for _ in range(3))
    assert min(timed(lambda: schedule.current_window(moment)) for _ in range(3)) < 3 * quick
    window = schedule.current_window(moment)
    assert window is not None
    assert window.opens == utc("2000-01-01T05:00")


def timed(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


def test_schedules_with_equal_exceptions_are_equal():
    one = excepted(week("mon", "9"), (["2026-12-24", "2026-12-25"], "Closed"))
    other = excepted(week("mon", "9"), (["2026-12-24/2026-12-25"], "Closed"))
    assert one == other
    assert hash(one) == hash(other)
    assert one != week("mon", "9")


def test_no_exceptions_are_none():
    assert excepted(week("mon", "9")) == week("mon", "9")
    assert excepted(excepted(week("mon", "9"), (["2026-12-24"], "Closed"))) == week("mon", "9")


def test_a_schedule_says_that_it_has_exceptions():
    assert excepted(week("mon", "9"), (["2026-12-24"], "Closed")).describe() == "mon 9 UTC, with exceptions"


@pytest.mark.parametrize(
    ("zone", "day", "opens", "closes"),
    [
        ("America/Santiago", "2026-09-06", "06T04:00:00", "07T03:00:00"),
        ("America/Havana", "2026-03-08", "08T05:00:00", "09T04:00:00"),
        ("Africa/Cairo", "2026-04-24", "23T22:00:00", "24T21:00:00"),
        ("Asia/Kathmandu", "2026-05-02", "01T18:15:00", "02T18:15:00"),
    ],
)
def test_an_open_date_without_a_midnight_begins_with_the_change(zone, day, opens, closes):
    schedule = excepted(windows(window("12:00-12:01", "mon"), zone=zone), ([day], "Open"))
    start = utc(day) - timedelta(days=1)
    found = [
        f"{each.opens:%dT%H:%M:%S} {each.closes:%dT%H:%M:%S}"
        for each in schedule.windows(start, start + timedelta(days=3))
        if each.closes - each.opens > timedelta(hours=1)
    ]
    assert found == [f"{opens} {closes}"]


def test_a_date_that_apia_left_out_opens_nothing():
    schedule = excepted(week("mon", "9", "Pacific/Apia"), (["2011-12-30"], "Open"))
    assert shown(schedule, "2011-12-29T12:00", "2012-01-01") == []
