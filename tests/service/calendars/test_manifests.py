"""Calendars from files: as the operator would read them, without a cluster."""

from datetime import date
from typing import Any

from crds.calendars import CalendarDates, CalendarKind, CalendarReference, CalendarShelf, UnreadableCalendar
from service.calendars.expander import Expander
from service.calendars.manifests import shelf_of
from tests.corpus import base, calendar
from tests.service.calendars.events import all_day
from tests.service.calendars.events import calendar as ics

TODAY = date(2026, 11, 18)
HOLIDAYS = CalendarReference(CalendarKind.NAMESPACED, "holidays")
BANK = CalendarReference(CalendarKind.CLUSTER, "bank")


async def shelf(*documents: Any) -> CalendarShelf:
    return await shelf_of(documents, TODAY, Expander())


def config_map(namespace: str, **data: str) -> dict[str, Any]:
    metadata = {"name": "team", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"team.ics": ics(), **data}}


def from_config_map(**changes: Any) -> dict[str, Any]:
    return calendar() | {"spec": {"ics": {"configMapKeyRef": {"name": "team", "key": "team.ics"}}}} | changes


async def test_a_calendar_is_seen_from_its_own_namespace_only():
    found = await shelf(base(), calendar(), None, "text")
    assert isinstance(found.seen_from("default", [HOLIDAYS])[HOLIDAYS], CalendarDates)
    assert found.seen_from("other", [HOLIDAYS]) == {}
    assert found.holds("default", HOLIDAYS)
    assert not found.holds("other", HOLIDAYS)


async def test_a_calendar_of_the_cluster_is_seen_from_everywhere():
    given = calendar() | {"kind": "ClusterScheduleCalendar", "metadata": {"name": "bank"}}
    found = await shelf(given)
    assert isinstance(found.seen_from("anywhere", [BANK])[BANK], CalendarDates)
    found.drop("", BANK)
    assert found.seen_from("anywhere", [BANK]) == {}


async def test_an_invalid_calendar_cannot_be_read():
    found = await shelf(calendar() | {"spec": {"dates": ["2026-02-30"]}})
    assert isinstance(found.seen_from("default", [HOLIDAYS])[HOLIDAYS], UnreadableCalendar)


async def test_a_config_map_lies_beside_its_calendar():
    text = ics(all_day("20261224"))
    found = await shelf(config_map("default", **{"team.ics": text}), from_config_map())
    assert isinstance(found.seen_from("default", [HOLIDAYS])[HOLIDAYS], CalendarDates)


async def test_a_config_map_of_another_namespace_does_not_count():
    found = await shelf(config_map("other"), from_config_map())
    missing = found.seen_from("default", [HOLIDAYS])[HOLIDAYS]
    assert isinstance(missing, UnreadableCalendar)
    assert "configMapKeyRef" in missing.message


async def test_for_a_calendar_of_the_cluster_it_is_that_of_the_operator():
    given = from_config_map(kind="ClusterScheduleCalendar", metadata={"name": "bank"})
    text = ics(all_day("20261224"))
    found = await shelf(config_map("5spot-system", **{"team.ics": text}), given)
    assert isinstance(found.seen_from("any", [BANK])[BANK], CalendarDates)
