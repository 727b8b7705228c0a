from datetime import UTC, datetime, timedelta

import pytest

from crds.schedule import Schedule
from crds.values import DaySet, HourSet
from service.decide.printer_columns import SCHEDULE_MAX, next_column, schedule_column
from tests.service.decide.builders import CLOSES, EVENING, MORNING, TOMORROW, intent, legible, unreadable_spec

HOUR = timedelta(hours=1)


def week(days: str, hours: str, zone: str = "UTC") -> Schedule:
    return Schedule.weekly(DaySet.parse([days]), HourSet.parse([hours]), zone)


def opens(**schedule):
    return intent(schedule={"daysOfWeek": None, "hoursOfDay": None, **schedule})


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (week("mon-fri", "9-17"), "mon-fri 9-17 UTC"),
        (week("mon-fri", "9-17", "America/New_York"), "mon-fri 9-17 New_York"),
        (week("mon-sun", "22-6", "Europe/Berlin"), "every day 22-6 Berlin"),
        (Schedule.from_cron("0 9 * * mon", timedelta(minutes=90), "Asia/Tokyo"), "cron 0 9 * * mon for 1h…"),
    ],
)
def test_the_schedule_fits_its_column(schedule, text):
    assert schedule_column(schedule) == text
    assert len(text) <= SCHEDULE_MAX


def test_an_open_window_says_when_it_closes():
    assert next_column(intent().effective, MORNING) == f"closes {CLOSES:%a} 18:00"


def test_outside_a_window_it_says_when_the_next_one_opens():
    assert next_column(intent().effective, EVENING) == f"opens {TOMORROW:%a} 09:00"


def test_the_time_is_that_of_the_schedules_zone():
    summer = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert next_column(intent(schedule={"timezone": "Europe/Berlin"}).effective, summer) == "closes Wed 18:00"


def test_a_boundary_far_ahead_has_a_date_and_one_years_ahead_a_year():
    now = datetime(2026, 11, 18, tzinfo=UTC)
    assert next_column(opens(cron="0 9 1 * *", duration="8h").effective, now) == "opens 01 Dec 09:00"
    assert next_column(opens(cron="0 9 29 2 *", duration="8h").effective, now) == "opens 29 Feb 2028"


@pytest.mark.parametrize(
    "schedule",
    [
        {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "Europe/London"},
        {"daysOfWeek": ["sat"]},
        {"cron": "0 9 1,20 * *", "duration": "48h"},
    ],
)
def test_between_two_boundaries_the_text_never_changes(schedule):
    given, now = opens(**schedule), datetime(2026, 3, 20, tzinfo=UTC)
    for _ in range(24 * 60):
        boundary = given.effective.next_change(now)
        if now + HOUR < boundary:
            assert next_column(given.effective, now) == next_column(given.effective, now + HOUR)
        now += HOUR


def test_a_schedule_that_never_closes_or_cannot_be_read_has_nothing_ahead():
    assert next_column(opens(daysOfWeek=["mon-sun"]).effective, MORNING) is None
    assert next_column(legible(unreadable_spec()).effective, MORNING) is None
