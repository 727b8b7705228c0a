"""Schedules with calendars on real servers: a calendar that is edited, deleted, broken or mended in mid-window."""

from datetime import timedelta

import pytest

from crds import names
from crds.calendarschema import calendar_definitions
from local.crds import apply
from service.kube.resource import SCHEDULE_CALENDARS
from tests.e2e.manifests import EIGHT, MONDAY_NINE, NINE, SIX, Raw, condition, machine, moment, says
from tests.e2e.operator import Operator, operating
from tests.waiting import until

TODAY = "2026-03-06"
ANOTHER_DAY = "2026-12-24"
HOUR = timedelta(hours=1)


def calendar(*dates: str, **spec: object) -> Raw:
    found = {"dates": list(dates)} if dates else {}
    return {**SCHEDULE_CALENDARS.envelope(), "metadata": {"name": "shutdown"}, "spec": {**found, **spec}}


def closed_by_calendar(name: str = "worker") -> Raw:
    body = machine(name)
    body["spec"]["schedule"]["exceptions"] = [{"calendarRef": {"name": "shutdown"}, "state": "Closed"}]
    return body


@pytest.fixture
async def op(op: Operator) -> Operator:
    """With the calendars' definitions installed."""
    for definition in calendar_definitions():
        await apply(op.client, definition)
    return op


async def store(op: Operator, body: Raw) -> Raw:
    return await op.client.create(SCHEDULE_CALENDARS, body, namespace=op.namespace)


async def edit(op: Operator, **spec: object) -> Raw:
    return await op.change(SCHEDULE_CALENDARS, "shutdown", {"spec": spec})


async def test_on_a_date_of_the_calendar_no_machine_is_created_and_the_next_window_opens_the_day_after(
    op: Operator,
) -> None:
    op.clock.move_to(EIGHT)
    await store(op, calendar(TODAY))
    await op.apply(closed_by_calendar())
    status = await op.phase("worker", "Inactive", "OutsideSchedule")
    assert moment(status["nextActivation"]) == MONDAY_NINE
    op.clock.move_to(NINE + HOUR)
    await op.at_rest()
    assert (await op.get("worker"))["status"]["phase"] == "Inactive"


async def test_the_calendar_reports_its_next_dates(op: Operator) -> None:
    await store(op, calendar(ANOTHER_DAY, yearly=["12-25"]))
    raw = await op.until_object(SCHEDULE_CALENDARS, "shutdown", lambda raw: (raw.get("status") or {}).get("nextDates"))
    assert [each["date"] for each in raw["status"]["nextDates"][:2]] == ["2026-12-24", "2026-12-25"]
    assert says(raw["status"], "Ready", "True", "CalendarRead")


async def test_a_calendar_that_names_today_in_mid_window_ends_the_service(op: Operator) -> None:
    await store(op, calendar(ANOTHER_DAY))
    await op.apply(closed_by_calendar())
    await op.ready("worker")
    await edit(op, dates=[TODAY])
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_a_machine_whose_calendar_is_deleted_stays_beyond_its_window_until_the_calendar_is_back(
    op: Operator,
) -> None:
    await store(op, calendar(ANOTHER_DAY))
    await op.apply(closed_by_calendar())
    await op.ready("worker")
    await op.remove(SCHEDULE_CALENDARS, "shutdown")
    status = await op.phase("worker", "Error", "CalendarNotFound")
    assert says(status, "ReferencesValid", "False", "CalendarNotFound")
    assert "there is no ScheduleCalendar shutdown" in status["message"]
    op.clock.move_to(SIX + HOUR)
    await op.at_rest()
    assert await op.children("worker")

    await store(op, calendar(ANOTHER_DAY))
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_a_calendar_that_is_missing_at_first_delays_the_creation_only(op: Operator) -> None:
    await op.apply(closed_by_calendar())
    await op.phase("worker", "Error", "CalendarNotFound")
    await store(op, calendar(ANOTHER_DAY))
    await op.ready("worker")


async def test_a_broken_calendar_says_what_is_wrong_and_neither_creates_nor_removes(op: Operator) -> None:
    await store(op, calendar(ANOTHER_DAY))
    await op.apply(closed_by_calendar())
    await op.ready("worker")
    await edit(op, ics={"inline": "this is no calendar"})
    status = await op.phase("worker", "Error", "CalendarInvalid")
    assert "iCalendar" in status["message"]
    raw = await op.until_object(SCHEDULE_CALENDARS, "shutdown", lambda raw: says(raw["status"], "Ready", "False"))
    assert condition(raw["status"], "Ready")["reason"] == "CalendarInvalid"
    assert (await op.events("shutdown"))["CalendarInvalid"] == 1
    assert await op.children("worker")

    await edit(op, ics=None)
    await op.ready("worker")


async def test_the_kill_switch_does_not_wait_for_a_calendar(op: Operator) -> None:
    await store(op, calendar(ANOTHER_DAY))
    await op.apply(closed_by_calendar())
    await op.ready("worker")
    await op.remove(SCHEDULE_CALENDARS, "shutdown")
    await op.phase("worker", "Error", "CalendarNotFound")
    await op.edit_spec("worker", killSwitch=True)
    await op.phase("worker", "Terminated")
    await op.childless("worker")


async def test_a_controller_that_starts_takes_no_calendar_for_missing_that_it_has_not_read_yet(op: Operator) -> None:
    await store(op, calendar(ANOTHER_DAY, holidays={"country": "GB"}))
    await op.apply(closed_by_calendar())
    await op.ready("worker")
    before = (await op.get("worker"))["metadata"]["resourceVersion"]
    async with operating(op.client, op.namespace, NINE + HOUR) as successor:
        await successor.at_rest()
        await until(lambda: not successor.controller.calendars.busy)
        await successor.at_rest()
    assert (await op.get("worker"))["metadata"]["resourceVersion"] == before
    assert not [reason for reason in await op.events("worker") if "Calendar" in reason]


def test_the_names_of_the_kinds_are_those_of_the_definitions() -> None:
    assert {each["spec"]["names"]["kind"] for each in calendar_definitions()} == {
        names.CALENDAR_KIND,
        names.CLUSTER_CALENDAR_KIND,
    }
