"""Schedules against a minute-by-minute walk, against cronsim, and on the dates that clocks make hard."""

import copy
import itertools
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crds.schedule import EVER, FOREVER, Schedule, Window
from crds.values import DaySet, HourSet, InvalidValue
from tests.crds import brute_force
from tests.crds.brute_force import utc

SEARCH = settings(
    max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)

# A zone, and an instant near which its clock does something odd.
ODD = [
    ("UTC", "2026-02-28T00:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Europe/Dublin", "2026-10-25T01:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Asia/Kathmandu", "2026-05-01T18:15"),
    ("Asia/Kathmandu", "1985-12-31T18:30"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Africa/Casablanca", "2026-03-22T02:00"),
    ("America/St_Johns", "2010-11-07T02:31"),
    ("America/St_Johns", "2010-03-14T03:31"),
    ("Africa/Cairo", "2026-04-23T22:00"),
    ("Asia/Gaza", "2040-10-26T23:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),
    ("Pacific/Chatham", "2026-04-04T14:00"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("America/Nuuk", "2026-03-29T01:00"),
    ("Africa/Monrovia", "1972-01-07T00:44:30"),
    ("America/New_York", "2151-03-14T07:00"),
]
places = st.sampled_from(ODD)
day_items = st.lists(
    st.one_of(
        st.sampled_from(brute_force.WEEK),
        st.builds("{}-{}".format, st.sampled_from(brute_force.WEEK), st.sampled_from(brute_force.WEEK)),
    ),
    max_size=3,
)
hour = st.integers(0, 23)
hour_items = st.lists(st.one_of(hour.map(str), st.builds("{}-{}".format, hour, hour)), max_size=3)


def cron_fields(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    pair = st.tuples(value, value).map(sorted)
    term = st.one_of(
        value.map(str),
        pair.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.builds("{}/{}".format, value, st.integers(1, 20)),
    )
    listed = st.lists(term, min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), listed, st.integers(1, high).map("*/{}".format))


weekday_fields = st.one_of(st.just("*"), cron_fields(0, 7), st.sampled_from(["mon-fri", "sun", "tue,sat"]))
day_fields = st.one_of(st.just("*"), st.just("*"), cron_fields(1, 28))
crons = st.builds(
    "{} {} {} {} {}".format, cron_fields(0, 59), cron_fields(0, 23), day_fields, st.just("*"), weekday_fields
)
durations = st.one_of(
    st.sampled_from([60, 3600, 86400, 90000, 604800]), st.integers(1, 7200), st.integers(1, 604800)
).map(lambda seconds: timedelta(seconds=seconds))


def around(moment: str, hours: int) -> tuple[datetime, datetime]:
    middle = utc(moment).replace(second=0)
    return middle - timedelta(hours=hours), middle + timedelta(hours=hours)


def cut(schedule: Schedule, period: tuple[datetime, datetime]) -> list[tuple[datetime, datetime]]:
    return [(window.opens, window.closes) for window in schedule.windows(*period, cut=True)]


def week(days: str, hours: str, zone: str = "UTC") -> Schedule:
    return Schedule.weekly(DaySet.parse([days] if days else []), HourSet.parse([hours] if hours else []), zone)


def cron(text: str, zone: str = "UTC", **duration: int) -> Schedule:
    return Schedule.from_cron(text, timedelta(**duration) if duration else None, zone)


def shown(schedule: Schedule, start: str, end: str) -> list[str]:
    windows = schedule.windows(utc(start), utc(end), cut=True)
    return [f"{window.opens:%dT%H:%M:%S} {window.closes:%dT%H:%M:%S}" for window in windows]


@SEARCH
@given(places, day_items, hour_items)
def test_days_and_hours_agree_with_a_walk_minute_by_minute(place, days, hours):
    if not days and not hours:
        hours = ["0-23"]
    zone, moment = place
    period = around(moment, 60)
    step = timedelta(minutes=1) if zone != "Africa/Monrovia" else timedelta(seconds=10)
    schedule = Schedule.weekly(DaySet.parse(days), HourSet.parse(hours), zone)
    assert cut(schedule, period) == brute_force.weekly_windows(days, hours, zone, period, step)


@SEARCH
@given(places.filter(lambda place: place[0] != "Africa/Monrovia"), crons, durations)
@example(("America/New_York", "2026-03-08T07:00"), "30 2 * * *", timedelta(hours=1))
@example(("America/New_York", "2026-11-01T06:00"), "30 1 * * *", timedelta(hours=1))
@example(("America/New_York", "2026-11-01T06:00"), "0 0 * * *", timedelta(hours=24))
@example(("Australia/Lord_Howe", "2026-04-04T15:00"), "* 2 * * *", timedelta(minutes=1))
@example(("Australia/Lord_Howe", "2026-10-03T15:30"), "0 * * * *", timedelta(hours=1))
@example(("Pacific/Apia", "2011-12-30T10:00"), "0 9 30 * *", timedelta(hours=2))
def test_cron_agrees_with_a_walk_minute_by_minute(place, text, duration):
    zone, moment = place
    period = around(moment, 48)
    schedule = Schedule.from_cron(text, duration, zone)
    assert cut(schedule, period) == brute_force.cron_windows(text, duration, zone, period)


@SEARCH
@given(places, crons, durations, st.integers(-200_000, 200_000))
def test_covers_and_next_boundary_agree_with_the_windows(place, text, duration, seconds):
    schedule = Schedule.from_cron(text, duration, place[0])
    moment = utc(place[1]) + timedelta(seconds=seconds)
    windows = list(itertools.islice(schedule.windows(moment, FOREVER), 3))
    inside = bool(windows) and moment in windows[0]
    assert schedule.covers(moment) == inside
    ends = [end for window in windows for end in (window.opens, window.closes) if moment < end < FOREVER]
    assert schedule.next_boundary(moment) == (min(ends) if ends else None)
    openings = [window.opens for window in windows if window.opens > moment]
    assert schedule.next_opening(moment) == (min(openings) if openings else None)
    assert schedule.current_window(moment) == (windows[0] if inside else None)


@SEARCH
@given(places, crons, durations)
def test_windows_never_touch_and_are_open_within_and_closed_around(place, text, duration):
    schedule = Schedule.from_cron(text, duration, place[0])
    start = utc(place[1])
    windows = list(itertools.islice(schedule.windows(start, FOREVER), 5))
    assert all(earlier.closes < later.opens for earlier, later in itertools.pairwise(windows))
    second = timedelta(seconds=1)
    for window in windows:
        assert window.opens == EVER or not schedule.covers(window.opens - second)
        assert window.opens < EVER + timedelta(days=9) or schedule.covers(window.opens)
        assert window.closes == FOREVER or schedule.covers(window.closes - second)
        assert window.closes == FOREVER or not schedule.covers(window.closes)


# Clocks that change at midnight or by half an hour are left out: there cronsim's jobs with a star miss minutes
# that the clock shows, or fire at minutes that it does not.
CRONSIM_PLACES = ["America/New_York", "Europe/Berlin", "Australia/Sydney", "Africa/Casablanca", "Asia/Kathmandu", "UTC"]


@SEARCH
@given(
    st.sampled_from(CRONSIM_PLACES),
    st.datetimes(datetime(2000, 1, 1), datetime(2050, 1, 1)),  # noqa: DTZ001
    crons,
)
@example("America/New_York", datetime(2026, 3, 7), "*/20 2,3 * * *")  # noqa: DTZ001
@example("Europe/Berlin", datetime(2026, 10, 24), "15 2 * * *")  # noqa: DTZ001
def test_firings_agree_with_cronsim(zone, naive, text):
    start = naive.replace(tzinfo=UTC, second=0, microsecond=0)
    schedule = cron(text, zone, seconds=1)
    ours = [window.opens for window in itertools.islice(schedule.windows(start, FOREVER), 40)]
    simulated = CronSim(text, (start - timedelta(seconds=1)).astimezone(brute_force.zone(zone)))
    theirs = itertools.islice(simulated, 60)
    distinct = [moment for moment, _ in itertools.groupby(fired.astimezone(UTC) for fired in theirs)]
    assert ours[: min(len(ours), len(distinct))] == distinct[: len(ours)]


def test_hours_include_both_ends_and_windows_are_half_open():
    schedule = week("mon", "9-17")
    assert shown(schedule, "2026-11-16", "2026-11-23") == ["16T09:00:00 16T18:00:00"]
    assert schedule.covers(utc("2026-11-16T09:00"))
    assert schedule.covers(utc("2026-11-16T17:59:59"))
    assert not schedule.covers(utc("2026-11-16T18:00"))


def test_a_night_on_one_day_is_that_days_morning_and_evening():
    assert shown(week("fri", "22-6"), "2026-11-16", "2026-11-23") == [
        "20T00:00:00 20T07:00:00",
        "20T22:00:00 21T00:00:00",
    ]


def test_adjoining_days_are_one_window():
    assert shown(week("fri-mon", ""), "2026-11-17", "2026-11-25") == ["20T00:00:00 24T00:00:00"]


def test_an_empty_side_means_every_day_or_every_hour():
    assert week("", "9") == week("mon-sun", "9")
    assert week("mon", "") == week("mon", "0-23")


def test_both_sides_empty_are_refused():
    with pytest.raises(InvalidValue, match="both empty"):
        Schedule.weekly(DaySet(), HourSet())


def test_hours_that_the_clock_skips_are_skipped_and_repeated_hours_count_twice():
    schedule = week("sun", "1-2", "America/New_York")
    assert shown(schedule, "2026-03-08", "2026-03-09") == ["08T06:00:00 08T07:00:00"]
    assert shown(schedule, "2026-11-01", "2026-11-02") == ["01T05:00:00 01T08:00:00"]
    assert shown(week("sun", "2", "America/New_York"), "2026-03-08", "2026-03-09") == []


def test_half_an_hour_of_daylight_saving_shortens_and_stretches_windows():
    schedule = week("sun", "1", "Australia/Lord_Howe")
    assert shown(schedule, "2026-04-04", "2026-04-05") == ["04T14:00:00 04T15:30:00"]
    assert shown(week("sun", "2", "Australia/Lord_Howe"), "2026-10-03", "2026-10-04") == ["03T15:30:00 03T16:00:00"]


def test_apia_had_no_friday_the_30th_of_december_2011():
    assert shown(week("fri", "", "Pacific/Apia"), "2011-12-25", "2012-01-08") == ["05T10:00:00 06T10:00:00"]


def test_the_clock_that_goes_back_over_midnight_shows_a_piece_of_the_old_day_again():
    # At 00:01 on Sunday it was 23:01 on Saturday once more.
    schedule = week("sat", "23", "America/St_Johns")
    assert shown(schedule, "2010-11-06T12:00", "2010-11-07T12:00") == [
        "07T01:30:00 07T02:30:00",
        "07T02:31:00 07T03:30:00",
    ]


def test_casablanca_turns_its_clock_back_for_ramadan():
    schedule = week("", "9", "Africa/Casablanca")
    assert shown(schedule, "2026-02-14", "2026-02-16") == ["14T08:00:00 14T09:00:00", "15T09:00:00 15T10:00:00"]


@pytest.mark.parametrize(
    ("zone", "moment"),
    [
        ("Europe/Amsterdam", "1937-06-30T23:40:28"),
        ("America/New_York", "1883-11-18T17:00"),
        ("Asia/Kolkata", "1906-01-01"),
    ],
)
def test_old_offsets_with_odd_seconds_are_exact_to_the_second(zone, moment):
    period = (utc(moment) - timedelta(hours=3), utc(moment) + timedelta(hours=3))
    for hours in ("0", "5,12,23", "11-12"):
        expected = brute_force.weekly_windows([], [hours], zone, period, timedelta(seconds=1))
        assert cut(week("", hours, zone), period) == expected


def test_without_duration_the_matching_minutes_are_open():
    schedule = cron("* 9-17 * * mon-fri", "Europe/Berlin")
    assert shown(schedule, "2026-11-16", "2026-11-18") == ["16T08:00:00 16T17:00:00", "17T08:00:00 17T17:00:00"]
    assert shown(cron("*/30 9 * * *"), "2026-11-16", "2026-11-17") == [
        "16T09:00:00 16T09:01:00",
        "16T09:30:00 16T09:31:00",
    ]


def test_a_fixed_firing_that_the_clock_skips_comes_right_after():
    assert shown(cron("30 2 * * *", "America/New_York", hours=1), "2026-03-08", "2026-03-09") == [
        "08T07:00:00 08T08:00:00"
    ]


def test_a_fixed_firing_that_the_clock_repeats_comes_once():
    assert shown(cron("30 1 * * *", "America/New_York", minutes=5), "2026-11-01", "2026-11-02") == [
        "01T05:30:00 01T05:35:00"
    ]


def test_a_star_firing_follows_the_clock_through_both_changes():
    schedule = cron("*/30 1,2 * * *", "America/New_York", minutes=5)
    assert [window[:8] for window in shown(schedule, "2026-03-08T04:00", "2026-03-09T04:00")] == [
        "08T06:00",
        "08T06:30",
    ]
    autumn = [window[:8] for window in shown(schedule, "2026-11-01T04:00", "2026-11-02T04:00")]
    assert autumn == ["01T05:00", "01T05:30", "01T06:00", "01T06:30", "01T07:00", "01T07:30"]


def test_duration_is_elapsed_time_also_across_a_change_of_the_clock():
    schedule = cron("0 20 * * sat", "America/New_York", hours=12)
    assert shown(schedule, "2026-03-08", "2026-03-09") == ["08T01:00:00 08T13:00:00"]


def test_windows_of_seven_days_overlap_and_are_one():
    schedule = cron("0 12 1,3 1 *", days=7)
    assert shown(schedule, "2026-01-01", "2026-02-01") == ["01T12:00:00 10T12:00:00"]


def test_the_day_of_the_month_or_the_weekday_suffices_when_both_are_restricted():
    assert [window[:2] for window in shown(cron("0 0 13 * fri"), "2026-11-01", "2026-12-01")] == [
        "06",
        "13",
        "20",
        "27",
    ]
    assert [window[:2] for window in shown(cron("0 0 */13 * fri"), "2026-11-01", "2026-12-31")] == ["27"]


def test_the_next_leap_day_is_found_years_ahead():
    schedule = cron("0 0 29 2 *")
    assert schedule.next_boundary(utc("2026-11-16")) == utc("2028-02-29")
    assert schedule.next_boundary(utc("2096-03-01")) == utc("2104-02-29")
    assert cron("0 0 29 2 */7", hours=1).next_opening(utc("2026-01-01")) == utc("2032-02-29")


@pytest.mark.parametrize(
    "schedule",
    [
        week("mon-sun", "", "America/New_York"),
        week("", "0-23", "Pacific/Apia"),
        cron("* * * * *", "Europe/Berlin"),
        cron("*/5 * * * *", "Australia/Lord_Howe", minutes=35),
        cron("*/4 * * * *", "Asia/Tokyo", hours=3),
        cron("0 0 * * *", "America/New_York", hours=25),
        cron("0 0 * * *", hours=24),
        cron("0 0 * * mon", "Asia/Tokyo", days=7),
        cron("0 0 1,8,15,22,29 * *", days=7),
        cron("0 0 1 * mon", days=7),
    ],
    ids=Schedule.describe,
)
def test_what_is_always_open_has_no_boundary(schedule):
    now = utc("2026-11-16T12:34:56")
    assert schedule.covers(now)
    assert schedule.next_boundary(now) is None
    assert schedule.next_opening(now) is None
    assert schedule.current_window(now).closes == FOREVER


@pytest.mark.parametrize(
    ("schedule", "closes", "reopens"),
    [
        (cron("0 0 * * *", "America/New_York", hours=24), "2027-11-08T04:00", "2027-11-08T05:00"),
        (cron("0 * * * *", "Australia/Lord_Howe", hours=1), "2027-04-03T15:00", "2027-04-03T15:30"),
        (cron("0 0 * * mon", "Europe/Berlin", days=7), "2027-10-31T22:00", "2027-10-31T23:00"),
    ],
    ids=["a day of 25 hours", "an hour and a half", "a week of 169 hours"],
)
def test_only_the_clock_going_back_interrupts_windows_that_just_touch(schedule, closes, reopens):
    now = utc("2027-01-01")
    assert schedule.next_boundary(now) == utc(closes)
    assert schedule.next_boundary(utc(closes)) == utc(reopens)


def test_a_minute_that_daylight_saving_always_skips_never_opens():
    assert cron("*/10 2 8-14 3 */7", "America/New_York").never_opens
    assert cron("*/10 2 8-14 3 */7", "America/New_York").next_boundary(utc("2026-11-16")) is None
    assert not cron("*/10 2 8-14 3 */7", "America/Phoenix").never_opens


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime(1, 1, 2), datetime(9999, 12, 30)])  # noqa: DTZ001, DTZ901
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/New_York"])
def test_the_ends_of_the_calendar_raise_nothing(moment, zone):
    at = moment.replace(tzinfo=UTC)
    for schedule in (week("mon", "9", zone), cron("0 0 29 2 *", zone, days=7), cron("* * * * *", zone)):
        schedule.covers(at)
        schedule.next_boundary(at)
        schedule.current_window(at)
        assert len(list(schedule.windows(at, at))) == 0


def test_a_moment_between_two_seconds_counts_as_after_the_first():
    schedule = week("mon", "9")
    assert not schedule.covers(utc("2026-11-16T08:59:59.999999"))
    assert schedule.next_boundary(utc("2026-11-16T08:59:59.999999")) == utc("2026-11-16T09:00")
    assert schedule.next_boundary(utc("2026-11-16T09:00:00.000001")) == utc("2026-11-16T10:00")


def test_a_moment_in_another_zone_is_the_same_instant():
    local = utc("2026-11-16T14:00").astimezone(brute_force.zone("America/New_York"))
    assert week("mon", "9", "America/New_York").covers(local)
    assert week("mon", "9", "America/New_York").next_boundary(local) == utc("2026-11-16T15:00")


def test_a_naive_moment_is_refused():
    with pytest.raises(TypeError):
        week("mon", "9").covers(datetime(2026, 11, 16))  # noqa: DTZ001


def test_windows_are_whole_unless_cut():
    schedule, noon = week("mon", "9-17"), utc("2026-11-16T12:00")
    whole = Window(utc("2026-11-16T09:00"), utc("2026-11-16T18:00"))
    assert list(schedule.windows(noon, noon + timedelta(hours=1))) == [whole]
    assert list(schedule.windows(noon, noon + timedelta(hours=1), cut=True)) == [
        Window(noon, noon + timedelta(hours=1))
    ]
    assert schedule.current_window(noon) == whole
    assert schedule.current_window(whole.closes) is None


def test_a_whole_window_reaches_back_as_far_as_it_was_open():
    window = cron("0 0 * * *", "America/New_York", hours=24).current_window(utc("2026-10-01"))
    assert window == Window(utc("2025-11-03T05:00"), utc("2026-11-02T04:00"))
    assert week("mon-sun", "").current_window(utc("2026-10-01")) == Window(EVER, FOREVER)


def test_a_wrap_around_on_some_days_only_is_noted():
    assert week("fri", "22-6").wraps_on_partial_days
    assert not week("mon-sun", "22-6").wraps_on_partial_days
    assert not week("fri", "0-6,22-23").wraps_on_partial_days
    assert not week("fri", "22-21").wraps_on_partial_days


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        (week("mon-fri", "9-17"), 9),
        (week("", "22-6"), 9),
        (week("fri", "22-6"), 2),
        (cron("0 9 * * *", hours=8), 8),
        (cron("0,30 9 * * *", hours=8), 8.5),
        (cron("* 22-23,0-5 * * *"), 8),
        (cron("0 9,20 * * *", hours=3), 3),
    ],
)
def test_the_shortest_window_is_known(schedule, hours):
    assert schedule.shortest_window == timedelta(hours=hours)


def test_what_is_always_open_has_no_shortest_window():
    assert cron("* * * * *").shortest_window is None


@pytest.mark.parametrize(
    ("schedule", "overlaps"),
    [
        (cron("* 9-17 * * mon-fri"), False),
        (cron("0 * * * *", hours=1), False),
        (cron("0 * * * *", minutes=61), True),
        (cron("0 0 * * *", hours=24), False),
        (cron("0 0 * * *", hours=25), True),
        (cron("0 0 * * mon", days=7), False),
        (cron("0 0 * * mon,tue", days=7), True),
        (cron("0 0 1 1 *", days=7), False),
        (week("mon", "9"), False),
    ],
)
def test_overlapping_cron_windows_are_noted(schedule, overlaps):
    assert schedule.has_overlapping_windows is overlaps


def test_a_schedule_describes_itself_in_a_line():
    assert week("mon-fri", "9-17", "America/New_York").describe() == "mon-fri 9-17 America/New_York"
    assert week("", "22-6").describe() == "every day 22-6 UTC"
    assert week("sat,sun", "").describe() == "sat-sun all hours UTC"
    assert cron("0 9 * * MON", "Asia/Tokyo", minutes=90).describe() == "cron 0 9 * * mon for 1h30m Asia/Tokyo"


def test_equal_schedules_are_equal_values_and_survive_copying():
    assert week("mon-wed", "9") == week("mon,tue-wed", "09")
    assert hash(cron("0 9 * * 0")) == hash(cron(" 0  9 * * 0"))
    assert cron("0 9 * * 0") != cron("0 9 * * 0", minutes=2)
    for schedule in (week("mon", "9", "Asia/Tokyo"), cron("0 9 * * *", "Asia/Tokyo")):
        assert copy.deepcopy(schedule) == schedule
        assert pickle.loads(pickle.dumps(schedule)) == schedule


@pytest.mark.parametrize(
    "duration", [timedelta(0), timedelta(seconds=-60), timedelta(days=7, seconds=1), timedelta(milliseconds=1500)]
)
def test_durations_out_of_bounds_are_refused(duration):
    with pytest.raises(InvalidValue, match="at most 168h"):
        Schedule.from_cron("0 9 * * *", duration)
