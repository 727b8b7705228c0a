"""`5spot preview` of objects that a real API server holds."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds import names
from crds.calendarschema import calendar_definitions
from crds.overrideschema import override_definition
from local.cluster import LocalCluster
from local.crds import apply
from service.cli import main
from service.clock import SimulatedClock
from service.kube.client import Client
from service.kube.resource import (
    CLUSTER_SCHEDULE_CALENDARS,
    CONFIG_MAPS,
    SCHEDULE_CALENDARS,
    SCHEDULE_OVERRIDES,
    SCHEDULED_MACHINES,
)
from tests.corpus import base
from tests.integration.api_door import moved, served
from tests.integration.readers import reader
from tests.service.calendars.events import all_day, calendar

PERIOD = ("--from", "2026-03-09", "--days", "1")


async def store_desk(client: Client, namespace: str, **schedule: Any) -> None:
    body = moved(base(), namespace)
    body["metadata"]["name"] = "desk-7"
    hours = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "Europe/London"}
    body["spec"]["schedule"] = hours | schedule
    await client.create(SCHEDULED_MACHINES, body, namespace=namespace)


@pytest.fixture
async def desk(small_cluster: LocalCluster, namespace: str) -> str:
    async with served(small_cluster) as client:
        await store_desk(client, namespace)
    return namespace


@pytest.fixture
async def empty(small_cluster: LocalCluster, namespace: str) -> str:
    """A namespace without ScheduledMachines, on a server that has the kind."""
    async with served(small_cluster):
        return namespace


@pytest.fixture
async def closed_desk(small_cluster: LocalCluster, namespace: str) -> str:
    """desk-7 is closed on the dates of two calendars, neither of which exists yet."""
    ours = {"name": "holidays"}
    theirs = {"kind": "ClusterScheduleCalendar", "name": namespace}
    async with served(small_cluster) as client:
        for definition in calendar_definitions():
            await apply(client, definition)
        exceptions = [{"calendarRef": each, "state": "Closed"} for each in (ours, theirs)]
        await store_desk(client, namespace, exceptions=exceptions)
    return namespace


async def store_calendars(client: Client, namespace: str) -> None:
    """Public holidays in the namespace, and the cluster's calendar with its events in a ConfigMap."""
    holidays = {**SCHEDULE_CALENDARS.envelope(), "metadata": {"name": "holidays"}}
    await client.create(SCHEDULE_CALENDARS, holidays | {"spec": {"holidays": {"country": "GB"}}}, namespace=namespace)
    events = {"configMapKeyRef": {"name": "company", "key": "company.ics"}}
    company = {**CLUSTER_SCHEDULE_CALENDARS.envelope(), "metadata": {"name": namespace}, "spec": {"ics": events}}
    await client.create(CLUSTER_SCHEDULE_CALENDARS, company)
    text = calendar(all_day("20261224", "SUMMARY:Company day"))
    config_map = {**CONFIG_MAPS.envelope(), "metadata": {"name": "company"}, "data": {"company.ics": text}}
    await client.create(CONFIG_MAPS, config_map, namespace=namespace)


CHRISTMAS = ("--from", "2026-12-23", "--days", "3")


async def preview(cluster: LocalCluster, *words: str) -> int:
    return await asyncio.to_thread(main, ["preview", "--kubeconfig", str(cluster.kubeconfig), *PERIOD, *words])


async def test_a_stored_object_is_shown_by_name_or_with_all_of_its_namespace(
    small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["desk-7", "-n", desk], ["-n", desk]):
        assert await preview(small_cluster, *words) == 0
        title, _scale, monday = capsys.readouterr().out.splitlines()
        assert title == f"{desk}/desk-7: mon-fri 9-17 Europe/London"
        assert monday.endswith("  09:00-18:00")


async def test_the_contexts_namespace_is_the_default(
    small_cluster: LocalCluster, desk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = yaml.safe_load(small_cluster.kubeconfig.read_text())
    for entry in config["contexts"]:
        entry["context"]["namespace"] = desk
    own = tmp_path / "config"
    own.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(own))
    assert await asyncio.to_thread(main, ["preview", "desk-7", *PERIOD]) == 0


async def test_on_a_local_control_plane_the_period_begins_at_the_time_of_its_operator(
    small_cluster: LocalCluster, desk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimulatedClock.starting(datetime(2031, 3, 10, tzinfo=UTC)).to_json()
    config = yaml.safe_load(small_cluster.kubeconfig.read_text())
    for entry in config["contexts"]:
        entry["context"]["extensions"] = [{"name": names.CLOCK_EXTENSION, "extension": clock}]
    own = tmp_path / "config"
    own.write_text(yaml.safe_dump(config))
    words = ["preview", "--kubeconfig", str(own), "desk-7", "-n", desk, "--days", "1", "-o", "json"]
    assert await asyncio.to_thread(main, words) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert [each["opens"] for each in entry["windows"]] == ["2031-03-10T09:00:00Z"]


async def test_what_the_cluster_does_not_have_exits_2(
    small_cluster: LocalCluster, empty: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await preview(small_cluster, "desk-8", "-n", empty) == 2
    assert 'scheduledmachines.5spot.finos.org "desk-8" not found' in capsys.readouterr().err
    assert await preview(small_cluster, "-n", empty) == 2
    assert f"there is no ScheduledMachine in namespace {empty}" in capsys.readouterr().err


async def test_calendars_of_the_cluster_close_days_and_are_named_in_the_table(
    small_cluster: LocalCluster, closed_desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with small_cluster.client() as client:
        await store_calendars(client, closed_desk)
    assert (
        await preview(small_cluster, "desk-7", "-n", closed_desk, "--operator-namespace", closed_desk, *CHRISTMAS) == 0
    )
    _title, _scale, *days = capsys.readouterr().out.splitlines()
    assert [day.partition("  ")[2] for day in days] == [
        "09:00-18:00",
        "[closed: Company day]",
        "[closed: Christmas Day]",
    ]


async def test_a_calendar_that_the_cluster_does_not_have_is_named_with_what_to_do(
    small_cluster: LocalCluster, closed_desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await preview(small_cluster, "desk-7", "-n", closed_desk, "-o", "json", *CHRISTMAS) == 1
    (entry,) = json.loads(capsys.readouterr().out)
    assert [each["message"] for each in entry["undecidable"]] == [
        f"there is no ScheduleCalendar holidays in namespace {closed_desk}; create it, or correct calendarRef",
        f"there is no ClusterScheduleCalendar {closed_desk}; create it, or correct calendarRef",
    ]


async def test_a_calendar_that_the_user_may_not_read_is_named_with_the_right_that_he_needs(
    small_cluster: LocalCluster, closed_desk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with small_cluster.client() as client:
        await store_calendars(client, closed_desk)
        user = await reader(client, small_cluster, closed_desk, tmp_path)
    words = ["preview", "--kubeconfig", str(user), "desk-7", "-n", closed_desk, *CHRISTMAS]
    assert await asyncio.to_thread(main, words) == 1
    shown = capsys.readouterr().out
    assert f"you may not read ScheduleCalendar holidays in namespace {closed_desk}" in shown
    assert "ask for the verb get on it" in shown


async def test_overrides_of_the_cluster_are_drawn_for_who_may_list_them(
    small_cluster: LocalCluster, desk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"machines": ["desk-7"], "state": "Open", "from": "2026-03-09T18:00:00Z", "until": "2026-03-09T20:00:00Z"}
    body = {**SCHEDULE_OVERRIDES.envelope(), "metadata": {"name": "tonight"}, "spec": spec}
    async with small_cluster.client() as client:
        await apply(client, override_definition())
        await client.create(SCHEDULE_OVERRIDES, body, namespace=desk)
        user = await reader(client, small_cluster, desk, tmp_path)
    assert await preview(small_cluster, "desk-7", "-n", desk) == 0
    _title, _scale, monday, legend = capsys.readouterr().out.splitlines()
    assert "█" * 18 + "▓" * 4 in monday
    assert legend.endswith("x out of service by one: tonight")

    words = ["preview", "--kubeconfig", str(user), "desk-7", "-n", desk, *PERIOD]
    assert await asyncio.to_thread(main, words) == 0
    shown = capsys.readouterr()
    assert "▓" not in shown.out
    assert shown.err == f"you may not list ScheduleOverrides in namespace {desk}: they are not shown\n"
