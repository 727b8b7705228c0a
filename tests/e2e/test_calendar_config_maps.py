"""Calendars whose ICS is in a ConfigMap, on real servers, under the roles that the chart adds for them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from crds.calendarschema import calendar_definitions
from local.binaries import Assets
from local.crds import apply
from local.plane import ControlPlane
from service.kube.client import Client
from service.kube.credentials import Token
from service.kube.resource import CLUSTER_SCHEDULE_CALENDARS, CONFIG_MAPS, SCHEDULE_CALENDARS
from service.settings import Settings
from tests import accounts
from tests.accounts import Account
from tests.charts.helm import Helm
from tests.e2e.manifests import NINE, Raw, machine, says
from tests.e2e.operator import Operator, operating
from tests.service.calendars.events import all_day, calendar
from tests.waiting import until

TODAY, ANOTHER_DAY = "20260306", "20261224"
CALENDAR, KEY = "shutdown", "days.ics"


@pytest.fixture(scope="module")
def reader(plane: ControlPlane, helm: Helm, assets: Assets) -> Account:
    """An operator that may read ConfigMaps, because the chart's values say so."""
    values = {"fullnameOverride": "with-config-maps", "calendars": {"configMaps": True}}
    return accounts.install(helm, plane.management, assets.kubectl, values, "with-config-maps")


@pytest.fixture
async def op(management: Client, namespace: str, reader: Account) -> AsyncIterator[Operator]:
    for definition in calendar_definitions():
        await apply(management, definition)
    log, token = reader.log(), Token(reader.token)
    async with operating(management, namespace, NINE, credentials=token, calendar_config_maps=True) as operator:
        yield operator
    assert log.refused() == []


def closed_by(kind: str, name: str = CALENDAR) -> Raw:
    body = machine()
    body["spec"]["schedule"]["exceptions"] = [{"calendarRef": {"kind": kind, "name": name}, "state": "Closed"}]
    return body


def ics_of(config_map: str) -> Raw:
    return {"ics": {"configMapKeyRef": {"name": config_map, "key": KEY}}}


async def store_calendar(op: Operator, config_map: str) -> None:
    body = {**SCHEDULE_CALENDARS.envelope(), "metadata": {"name": CALENDAR}, "spec": ics_of(config_map)}
    await op.client.create(SCHEDULE_CALENDARS, body, namespace=op.namespace)


async def store_days(op: Operator, config_map: str, *days: str, home: str | None = None) -> None:
    body = {**CONFIG_MAPS.envelope(), "metadata": {"name": config_map}, "data": {KEY: text(*days)}}
    await op.client.create(CONFIG_MAPS, body, namespace=home or op.namespace)


def text(*days: str) -> str:
    return calendar(*(all_day(day, uid=day) for day in days))


async def test_a_config_map_that_is_missing_holds_the_machine_back_and_its_edit_ends_the_service(op: Operator) -> None:
    await store_calendar(op, "days")
    await op.apply(closed_by("ScheduleCalendar"))
    status = await op.phase("worker", "Error", "CalendarInvalid")
    assert "the ConfigMap or key" in status["message"]

    await store_days(op, "days", ANOTHER_DAY)
    await op.ready("worker")

    await op.change(CONFIG_MAPS, "days", {"data": {KEY: text(ANOTHER_DAY, TODAY)}})
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_a_machine_whose_config_map_is_deleted_stays_until_another_is_named(op: Operator) -> None:
    for name, day in (("days", ANOTHER_DAY), ("others", TODAY)):
        await store_days(op, name, day)
    await store_calendar(op, "days")
    await op.apply(closed_by("ScheduleCalendar"))
    await op.ready("worker")

    await op.remove(CONFIG_MAPS, "days")
    await op.phase("worker", "Error", "CalendarInvalid")
    assert await op.children("worker")

    await op.change(SCHEDULE_CALENDARS, CALENDAR, {"spec": ics_of("others")})
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_the_config_map_of_a_cluster_scoped_calendar_is_in_the_operators_namespace(op: Operator) -> None:
    name, home = op.namespace, Settings().namespace
    await store_days(op, name, ANOTHER_DAY, home=home)
    body = {**CLUSTER_SCHEDULE_CALENDARS.envelope(), "metadata": {"name": name}, "spec": ics_of(name)}
    await op.client.create(CLUSTER_SCHEDULE_CALENDARS, body)
    try:
        await op.apply(closed_by("ClusterScheduleCalendar", name))
        await op.ready("worker")
    finally:
        await op.client.delete(CLUSTER_SCHEDULE_CALENDARS, name)
        await op.client.delete(CONFIG_MAPS, name, namespace=home)


async def test_a_config_map_that_no_calendar_names_any_more_is_not_watched(op: Operator) -> None:
    for name in ("days", "others"):
        await store_days(op, name, ANOTHER_DAY)
    await store_calendar(op, "days")
    second = {**SCHEDULE_CALENDARS.envelope(), "metadata": {"name": "second"}, "spec": ics_of("others")}
    await op.client.create(SCHEDULE_CALENDARS, second, namespace=op.namespace)
    for name in (CALENDAR, "second"):
        await op.until_object(SCHEDULE_CALENDARS, name, _is_read)
    watched: dict[Any, Any] = op.controller.calendars._texts
    assert {home.name for home in watched} == {"days", "others"}

    await op.change(SCHEDULE_CALENDARS, CALENDAR, {"spec": ics_of("others")})
    await until(lambda: {home.name for home in watched} == {"others"})


def _is_read(raw: Raw) -> bool:
    return says(raw.get("status") or {}, "Ready", "True", "CalendarRead")
