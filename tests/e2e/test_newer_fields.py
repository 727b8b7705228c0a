"""Objects that a newer version stored, under its definitions: this operator keeps the fields that it does not know."""

from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any

import pytest

from crds.calendarschema import calendar_definitions
from crds.schema import custom_resource_definition
from local.crds import apply
from service.kube.client import Client
from service.kube.resource import SCHEDULE_CALENDARS, SCHEDULED_MACHINES
from tests.e2e.manifests import NINE, SIX, Raw, machine, says
from tests.e2e.operator import Operator, operating
from tests.e2e.reclaims import Workstations, is_over
from tests.e2e.workload import WorkloadSide
from tests.waiting import until

TEXT = {"type": "string"}
NEWER: dict[str, Any] = {"tides": "low"}
"""A field that no version has yet, where a spec, a schedule, a status or a calendar may have it."""


def newer(definition: Raw, *places: str) -> Raw:
    """The definition as a newer version may have it, with a further field in each of these objects."""
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for place in places:
        _inside(schema, place.split("."))["properties"] |= dict.fromkeys(NEWER, TEXT)
    return definition


def _inside(schema: Raw, path: Iterable[str]) -> Raw:
    for part in path:
        schema = schema["properties"][part]
    return schema


@pytest.fixture
async def op(management: Client, namespace: str) -> AsyncIterator[Operator]:
    """An operator that starts under the definitions of a newer version; afterwards they are ours again."""
    await apply(management, newer(custom_resource_definition(), "spec", "spec.schedule", "status"))
    for definition in calendar_definitions():
        await apply(management, newer(definition, "spec", "status"))
    for probe in (machine("probe", **NEWER), {**SCHEDULE_CALENDARS.envelope(), **calendar("probe")}):
        await until(partial(_keeps_newer_fields, management, namespace, probe))
    async with operating(management, namespace, NINE) as operator:
        yield operator
    for definition in (custom_resource_definition(), *calendar_definitions()):
        await apply(management, definition)


async def _keeps_newer_fields(client: Client, namespace: str, probe: Raw) -> bool:
    """Whether the API server has taken up the definition: for a moment after its change it goes on with the old one."""
    resource = SCHEDULED_MACHINES if probe["kind"] == SCHEDULED_MACHINES.kind else SCHEDULE_CALENDARS
    stored = await client.create(resource, probe, namespace=namespace)
    await client.delete(resource, "probe", namespace=namespace)
    return bool(stored["spec"].keys() >= NEWER.keys())


def calendar(name: str) -> Raw:
    return {"metadata": {"name": name}, "spec": {"dates": ["2026-12-24"], **NEWER}}


async def store_newer_status(client: Client, namespace: str) -> None:
    await client.patch(
        SCHEDULED_MACHINES,
        "worker",
        {"status": NEWER},
        namespace=namespace,
        subresource="status",
        field_manager="newer",
    )


def without_switch(spec: Raw) -> Raw:
    """A spec without `schedule.enabled`, which a reclaim sets."""
    schedule = {key: value for key, value in spec["schedule"].items() if key != "enabled"}
    return {**spec, "schedule": schedule}


async def test_every_write_of_a_life_keeps_fields_of_a_newer_spec_and_status(
    op: Operator, workload: WorkloadSide
) -> None:
    await op.apply(machine(**NEWER, nodeTaints=[{"key": "tests.example/ours", "effect": "NoSchedule"}]))
    node = (await op.ready("worker"))["nodeRef"]["name"]
    before = (await op.get("worker"))["spec"]
    await store_newer_status(op.client, op.namespace)
    await Workstations(op, workload.client).ask_back(node)
    await op.until("worker", is_over)
    raw = await op.get("worker")
    assert raw["spec"]["schedule"]["enabled"] is False
    assert without_switch(raw["spec"]) == without_switch(before)
    assert raw["spec"]["tides"] == raw["status"]["tides"] == "low"

    await op.delete("worker")
    await op.gone("worker")


async def test_a_schedule_with_a_newer_field_neither_creates_nor_removes_and_says_why(op: Operator) -> None:
    await op.apply(machine())
    await op.ready("worker")
    await op.edit_spec("worker", schedule=NEWER)
    status = await op.phase("worker", "Error", "InvalidSpec")
    assert "spec.schedule.tides: is not known to this version of 5-Spot" in status["message"]

    late = machine("late")
    late["spec"]["schedule"] |= NEWER
    await op.apply(late)
    await op.phase("late", "Error", "InvalidSpec")

    op.clock.move_to(SIX)
    await op.at_rest()
    assert await op.children("worker")
    assert (await op.get("worker"))["spec"]["schedule"]["tides"] == "low"

    await op.edit_spec("worker", schedule={"tides": None})
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_a_successor_that_knows_less_takes_over_without_a_write_to_the_spec(op: Operator) -> None:
    await op.apply(machine(**NEWER))
    await op.ready("worker")
    before = await op.get("worker")
    async with operating(op.client, op.namespace, op.clock.now()) as successor:
        await successor.at_rest()
        after = await op.get("worker")
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])


async def test_a_calendar_with_a_newer_field_is_not_read_and_stays_as_it_is(op: Operator) -> None:
    body = calendar("shutdown")
    await op.client.create(SCHEDULE_CALENDARS, {**SCHEDULE_CALENDARS.envelope(), **body}, namespace=op.namespace)
    raw = await op.until_object(SCHEDULE_CALENDARS, "shutdown", _is_refused)
    assert raw["spec"] == body["spec"]
    (ready,) = raw["status"]["conditions"]
    assert "spec.tides: is not known to this version of 5-Spot" in ready["message"]


async def test_a_status_of_a_calendar_keeps_a_newer_field_when_it_changes(op: Operator) -> None:
    body = {"metadata": {"name": "shutdown"}, "spec": {"dates": ["2026-12-24"]}}
    await op.client.create(SCHEDULE_CALENDARS, {**SCHEDULE_CALENDARS.envelope(), **body}, namespace=op.namespace)
    await op.until_object(SCHEDULE_CALENDARS, "shutdown", _names("2026-12-24"))
    await op.client.patch(
        SCHEDULE_CALENDARS, "shutdown", {"status": NEWER}, namespace=op.namespace, subresource="status"
    )
    await op.change(SCHEDULE_CALENDARS, "shutdown", {"spec": {"dates": ["2026-12-31"]}})
    raw = await op.until_object(SCHEDULE_CALENDARS, "shutdown", _names("2026-12-31"))
    assert raw["status"]["tides"] == "low"


def _names(date: str) -> Callable[[Raw], bool]:
    return lambda raw: date in str((raw.get("status") or {}).get("nextDates"))


def _is_refused(raw: dict[str, Any]) -> bool:
    return says(raw.get("status") or {}, "Ready", "False", "CalendarInvalid")
