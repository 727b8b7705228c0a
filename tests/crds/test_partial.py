from datetime import timedelta

import pytest

from crds.partial import read_partial
from tests.crds.machines import machine, scheduled


def test_the_schedule_and_timeouts_of_an_invalid_object_still_count():
    partial = read_partial(machine(clusterName="Not Valid", nodeDrainTimeout="2m", gracefulShutdownTimeout="soon"))
    assert partial.schedule is not None
    assert str(partial.schedule.hours_of_day) == "9-17"
    assert partial.node_drain_timeout == timedelta(minutes=2)
    assert partial.graceful_shutdown_timeout == timedelta(minutes=5)
    assert partial.cluster_name == "Not Valid"
    assert partial.metadata.name == "worker"


@pytest.mark.parametrize(
    "schedule",
    [
        {},
        {"daysOfWeek": ["someday"]},
        {"cron": "0 9 * * *", "daysOfWeek": ["mon"]},
        {"cron": "0 0 30 2 *"},
        {"daysOfWeek": ["mon"], "timezone": "Nowhere"},
        {"daysOfWeek": ["mon"], "windows": [{"from": "09:00", "to": "17:30"}]},
        {"windows": [{"from": "09:00", "to": "25:00"}]},
        {"daysOfWeek": ["mon"], "exceptions": [{"state": "Closed"}]},
        {"daysOfWeek": ["mon"], "exceptions": [{"dates": ["2026-02-30"], "state": "Closed"}]},
        {
            "daysOfWeek": ["mon"],
            "exceptions": [{"dates": ["2026-12-24"], "calendarRef": {"name": "uk"}, "state": "Closed"}],
        },
    ],
)
def test_a_schedule_without_one_clear_meaning_does_not_count(schedule):
    assert read_partial(scheduled(**schedule)).schedule is None


def test_windows_and_exceptions_of_an_invalid_object_still_count():
    exceptions = [{"calendarRef": {"name": "uk"}, "state": "Closed"}]
    raw = scheduled(windows=[{"from": "18:30", "to": "07:00"}], exceptions=exceptions)
    raw["spec"]["clusterName"] = "Not Valid"
    schedule = read_partial(raw).schedule
    assert schedule is not None
    assert [str(each) for each in schedule.calendars] == ["ScheduleCalendar uk"]


def test_a_schedule_with_a_field_of_a_later_version_does_not_count():
    assert read_partial(scheduled(daysOfWeek=["mon"], seasons=["winter"])).schedule is None
    assert read_partial(scheduled(daysOfWeek=["mon"], seasons=None)).schedule is not None


@pytest.mark.parametrize("raw", [{}, {"spec": None}, {"spec": [], "metadata": 3, "status": "x"}])
def test_nothing_at_all_is_read_as_nothing(raw):
    partial = read_partial(raw)
    assert partial.schedule is None
    assert partial.kill_switch is False


def test_the_kill_switch_counts_only_when_it_is_true():
    assert read_partial(machine(killSwitch=True)).kill_switch
    assert not read_partial(machine(killSwitch="true")).kill_switch
