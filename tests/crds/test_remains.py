from datetime import timedelta

import pytest

from crds.remains import remains_of
from tests.crds.machines import machine, scheduled


def test_the_schedule_and_timeouts_of_an_invalid_object_still_count():
    remains = remains_of(machine(clusterName="Not Valid", nodeDrainTimeout="2m", gracefulShutdownTimeout="soon"))
    assert remains.schedule is not None
    assert str(remains.schedule.hours_of_day) == "9-17"
    assert remains.node_drain_timeout == timedelta(minutes=2)
    assert remains.graceful_shutdown_timeout == timedelta(minutes=5)
    assert remains.cluster_name == "Not Valid"
    assert remains.metadata.name == "worker"


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
    assert remains_of(scheduled(**schedule)).schedule is None


def test_windows_and_exceptions_of_an_invalid_object_still_count():
    exceptions = [{"calendarRef": {"name": "uk"}, "state": "Closed"}]
    raw = scheduled(windows=[{"from": "18:30", "to": "07:00"}], exceptions=exceptions)
    raw["spec"]["clusterName"] = "Not Valid"
    schedule = remains_of(raw).schedule
    assert schedule is not None
    assert [str(each) for each in schedule.calendars] == ["ScheduleCalendar uk"]


def test_unknown_fields_do_not_spoil_a_schedule():
    assert remains_of(scheduled(daysOfWeek=["mon"], holidays="none")).schedule is not None


@pytest.mark.parametrize("raw", [{}, {"spec": None}, {"spec": [], "metadata": 3, "status": "x"}])
def test_nothing_at_all_is_read_as_nothing(raw):
    remains = remains_of(raw)
    assert remains.schedule is None
    assert remains.kill_switch is False


def test_the_kill_switch_counts_only_when_it_is_true():
    assert remains_of(machine(killSwitch=True)).kill_switch
    assert not remains_of(machine(killSwitch="true")).kill_switch
