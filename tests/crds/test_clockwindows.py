"""Windows to the minute: what people mean by them, on ordinary days and where clocks are odd."""

from datetime import datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crds.clockwindows import ClockWindow
from crds.schedule import EVER, FOREVER, Schedule, Window
from crds.schedulespec import ScheduleSpec
from crds.values import InvalidValue
from tests.crds import minute_walk
from tests.crds.brute_force import WEEK, utc
from tests.crds.test_schedule import ODD, SEARCH, around, cut, shown

ODD_MIDNIGHTS = [
    ("America/Santiago", "2026-09-06T04:00"),
    ("America/Santiago", "2026-04-05T03:00"),
    ("America/Havana", "2026-03-08T05:00"),
    ("America/Havana", "2026-11-01T05:00"),
    ("Asia/Beirut", "2026-03-28T22:00"),
]
A_DAY = timedelta(days=1)
PLACES = [*(place for place in ODD if place[0] != "Africa/Monrovia"), *ODD_MIDNIGHTS]

places = st.sampled_from(PLACES)
times = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 0, 1, 15, 30, 44, 59]))
days = st.lists(
    st.one_of(st.sampled_from(WEEK), st.builds("{}-{}".format, st.sampled_from(WEEK), st.sampled_from(WEEK))),
    max_size=2,
)
entries = st.fixed_dictionaries({"from": times, "to": st.one_of(times, st.just("24:00"))}, optional={"days": days})
WITHOUT_GAP = [
    [{"from": "12:00", "to": "12:00"}],
    [{"from": "06:00", "to": "18:00"}, {"from": "18:00", "to": "06:00"}],
    [{"from": "00:30", "to": "00:00"}, {"from": "23:00", "to": "01:00"}],
    [{"days": ["mon-fri"], "from": "23:59", "to": "23:59"}, {"days": ["sat-mon"], "from": "00:00", "to": "24:00"}],
]
window_lists = st.one_of(st.lists(entries, min_size=1, max_size=4), st.sampled_from(WITHOUT_GAP))
days_before = st.integers(0, 20).map(lambda days: timedelta(days=days))


def windows(*given: dict, zone: str = "UTC") -> Schedule:
    return ScheduleSpec.parse({"windows": list(given), "timezone": zone}).compiled


def from_afar(schedule: Schedule, period: tuple[datetime, datetime], before: timedelta) -> list:
    """The windows cut to the period, as they are found from some time before it."""
    start, end = period
    found = schedule.windows(start - before, end)
    return [(max(each.opens, start), min(each.closes, end)) for each in found if each.closes > start]


def window(text: str, days: str = "") -> dict:
    begins, ends = text.split("-")
    return {"from": begins, "to": ends, **({"days": [days]} if days else {})}


@SEARCH
@given(places, window_lists, days_before)
@example(("Pacific/Apia", "2011-12-30T10:00"), [window("18:30-07:00")], A_DAY)
@example(("Pacific/Apia", "2011-12-30T10:00"), [window("09:00-17:00", "fri")], A_DAY)
@example(("America/New_York", "2026-03-08T07:00"), [window("02:30-02:45"), window("02:50-03:10")], A_DAY)
@example(("America/New_York", "2026-11-01T06:00"), [window("01:30-01:45"), window("22:00-01:15")], A_DAY)
@example(("America/New_York", "2026-11-01T06:00"), [window("12:00-12:00")], 20 * A_DAY)
@example(("America/Havana", "2026-11-01T05:00"), [window("00:00-00:30"), window("23:30-24:00")], A_DAY)
@example(("America/Santiago", "2026-09-06T04:00"), [window("00:00-24:00", "sun")], A_DAY)
@example(("America/St_Johns", "2010-11-07T02:31"), [window("23:00-24:00", "sat"), window("00:00-00:30", "sun")], A_DAY)
def test_windows_agree_with_a_walk_minute_by_minute(place, given, before):
    zone, moment = place
    schedule, period = windows(*given, zone=zone), around(moment, 60)
    assert from_afar(schedule, period, before) == minute_walk.windows(given, [], zone, period)
    assert cut(schedule, period) == from_afar(schedule, period, before)


@SEARCH
@given(places, window_lists, st.integers(-200_000, 200_000))
def test_covers_and_next_boundary_agree_with_the_windows(place, given, seconds):
    schedule = windows(*given, zone=place[0])
    moment = utc(place[1]) + timedelta(seconds=seconds)
    found = []
    for each in schedule.windows(moment, FOREVER):
        found.append(each)
        if len(found) == 3:
            break
    inside = bool(found) and moment in found[0]
    assert schedule.covers(moment) == inside
    ends = [end for each in found for end in (each.opens, each.closes) if moment < end < FOREVER]
    assert schedule.next_boundary(moment) == (min(ends) if ends else None)
    assert schedule.current_window(moment) == (found[0] if inside else None)


def test_a_window_is_exact_to_the_minute_and_half_open():
    schedule = windows(window("09:15-17:45", "mon"))
    assert shown(schedule, "2026-11-16", "2026-11-23") == ["16T09:15:00 16T17:45:00"]
    assert schedule.covers(utc("2026-11-16T09:15"))
    assert not schedule.covers(utc("2026-11-16T17:45"))


def test_a_night_ends_the_next_morning_as_people_mean_it():
    schedule = windows(window("18:30-07:00", "fri"))
    assert shown(schedule, "2026-11-16", "2026-11-30") == ["20T18:30:00 21T07:00:00", "27T18:30:00 28T07:00:00"]


def test_an_end_that_equals_the_start_is_a_day_later():
    assert shown(windows(window("12:00-12:00", "mon")), "2026-11-16", "2026-11-20") == ["16T12:00:00 17T12:00:00"]


def test_windows_that_touch_or_overlap_are_one():
    schedule = windows(window("09:00-12:00"), window("12:00-13:00"), window("12:30-14:00"))
    assert shown(schedule, "2026-11-16", "2026-11-17") == ["16T09:00:00 16T14:00:00"]


def test_all_days_from_midnight_to_midnight_never_close():
    schedule = windows(window("00:00-24:00"), zone="Africa/Casablanca")
    moment = utc("2026-03-22T02:00")
    assert schedule.next_boundary(moment) is None
    assert schedule.next_opening(moment) is None
    assert schedule.shortest_window is None
    assert schedule.current_window(moment) == Window(EVER, FOREVER)


@pytest.mark.parametrize("given", WITHOUT_GAP)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Europe/Berlin", "Africa/Casablanca", "Pacific/Apia"])
def test_windows_that_together_leave_no_gap_never_close_wherever_the_clock_changes(zone, given):
    schedule = windows(*given, zone=zone)
    assert list(schedule.windows(utc("2026-01-01"), utc("2030-01-01"))) == [Window(EVER, FOREVER)]
    assert schedule.next_boundary(utc("2026-01-01")) is None


def test_a_start_that_the_clock_skips_is_the_moment_of_the_change():
    schedule = windows(window("02:30-05:00"), zone="America/New_York")
    assert shown(schedule, "2026-03-08", "2026-03-09") == ["08T07:00:00 08T09:00:00"]


def test_an_end_that_the_clock_skips_is_the_moment_of_the_change():
    schedule = windows(window("22:00-02:30"), zone="America/New_York")
    assert shown(schedule, "2026-03-08", "2026-03-08T12:00") == ["08T03:00:00 08T07:00:00"]


def test_a_window_within_the_skipped_hour_does_not_open():
    assert shown(windows(window("02:10-02:50"), zone="America/New_York"), "2026-03-08", "2026-03-09") == []


def test_of_a_time_that_happens_twice_the_first_counts_and_the_window_does_not_flap():
    schedule = windows(window("01:30-01:45"), window("00:00-01:15"), zone="America/New_York")
    assert shown(schedule, "2026-11-01", "2026-11-02") == ["01T04:00:00 01T05:15:00", "01T05:30:00 01T05:45:00"]


@pytest.mark.parametrize(
    ("zone", "date", "first"),
    [
        ("America/Santiago", "2026-09-06", "06T04:00:00"),
        ("America/Havana", "2026-03-08", "08T05:00:00"),
        ("Africa/Cairo", "2026-04-24", "23T22:00:00"),
    ],
)
def test_where_the_clock_skips_midnight_the_day_begins_with_the_change(zone, date, first):
    schedule = windows(window("00:00-06:30"), zone=zone)
    start = utc(date) - timedelta(hours=6)
    (opened, *_) = (each for each in schedule.windows(start, start + timedelta(days=1)) if each.opens > start)
    assert f"{opened.opens:%dT%H:%M:%S}" == first


def test_a_night_over_the_day_that_apia_left_out_is_one_night():
    schedule = windows(window("18:30-07:00"), zone="Pacific/Apia")
    # Thursday 29 December 18:30 at UTC-10, then Saturday 31 December 07:00 at UTC+14.
    assert "30T04:30:00 30T17:00:00" in shown(schedule, "2011-12-29", "2012-01-01")


def test_a_leap_day_has_its_window():
    assert shown(windows(window("09:00-10:30", "thu")), "2024-02-28", "2024-03-02") == ["29T09:00:00 29T10:30:00"]


def test_the_shortest_window_is_measured_after_joining():
    assert windows(window("09:00-12:00"), window("12:00-12:10")).shortest_window == timedelta(hours=3, minutes=10)
    night = windows(window("22:00-24:00", "sun"), window("00:00-00:05", "mon"), window("10:00-11:00", "wed"))
    assert night.shortest_window == timedelta(hours=1)


def test_windows_centuries_ahead_are_as_exact():
    schedule = windows(window("02:30-05:00"), zone="America/New_York")
    assert schedule.next_boundary(utc("2151-03-14T06:59")) == utc("2151-03-14T07:00")


def test_a_schedule_says_what_its_windows_are():
    assert windows(window("18:30-07:00", "mon-fri"), zone="Europe/London").describe() == (
        "mon-fri 18:30-07:00 Europe/London"
    )
    many = windows(*(window(f"{hour:02}:00-{hour:02}:30") for hour in range(8)))
    assert many.describe() == "every day 00:00-00:30, every day 01:00-01:30, every day 02:00-02:30, and 5 more UTC"


def test_the_order_of_windows_means_nothing():
    first, second = window("09:00-12:00", "mon"), window("13:00-17:00")
    assert windows(first, second) == windows(second, first, second)


def test_no_windows_are_refused():
    with pytest.raises(InvalidValue, match="no windows"):
        Schedule.from_windows([])


def test_a_window_begins_on_its_days_only():
    assert ClockWindow.of(0, 60, 60) == ClockWindow(0b1111111, 60, 1500)
    monday = datetime(2026, 11, 16, 1, 30, tzinfo=utc("2026-01-01").tzinfo)
    assert not windows(window("01:00-02:00", "tue")).covers(monday)
