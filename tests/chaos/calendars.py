"""A calendar that closes the machine under test: what users do with it, and what the operator must conclude."""

from collections.abc import Awaitable, Callable
from typing import Any

from service.kube.resource import SCHEDULE_CALENDARS
from tests.chaos.stage import CHILDREN, NAME, Stage
from tests.e2e import manifests

Raw = dict[str, Any]
Goal = Callable[[Stage], Awaitable[bool]]
CALENDAR = "shutdown"
TODAY, ANOTHER_DAY = "2026-03-06", "2026-12-24"
NOT_ICS = {"ics": {"inline": "this is no calendar"}}
CLOSED_BY_CALENDAR: Raw = {
    "schedule": {
        "daysOfWeek": ["mon-fri"],
        "hoursOfDay": ["9-17"],
        "exceptions": [{"calendarRef": {"name": CALENDAR}, "state": "Closed"}],
    }
}


# Events


async def store(stage: Stage, **spec: Any) -> None:
    body = {"metadata": {"name": CALENDAR}, "spec": spec or {"dates": [ANOTHER_DAY]}}
    await stage.create(SCHEDULE_CALENDARS, body)


async def store_for_another_day(stage: Stage) -> None:
    await store(stage)


async def store_broken(stage: Stage) -> None:
    await store(stage, **NOT_ICS)


async def add_today(stage: Stage) -> None:
    await _edit(stage, {"dates": [ANOTHER_DAY, TODAY]})


async def mend(stage: Stage) -> None:
    await _edit(stage, {"ics": None, "dates": [ANOTHER_DAY]})


async def delete_calendar(stage: Stage) -> None:
    await stage.client.delete(SCHEDULE_CALENDARS, CALENDAR, namespace=stage.namespace)


async def _edit(stage: Stage, spec: Raw) -> None:
    await stage.client.patch(
        SCHEDULE_CALENDARS, CALENDAR, {"spec": spec}, namespace=stage.namespace, field_manager="kubectl-edit"
    )


# Goals


def held(reason: str) -> Goal:
    """The machine stays as it is, and its status says what is wrong with its calendar."""

    async def reached(stage: Stage) -> bool:
        status = ((await stage.machine(NAME)) or {}).get("status") or {}
        return (
            manifests.says(status, "ReferencesValid", "False", reason)
            and (await stage.children()).keys() == CHILDREN.keys()
        )

    return reached


def says(ready: str) -> Goal:
    """The calendar reports whether it can be read, as it is stored now."""

    async def reached(stage: Stage) -> bool:
        raw = await stage.find(SCHEDULE_CALENDARS, CALENDAR) or {}
        status = raw.get("status") or {}
        return (
            manifests.says(status, "Ready", ready) and status.get("observedGeneration") == raw["metadata"]["generation"]
        )

    return reached


def both(one: Goal, other: Goal) -> Goal:
    async def reached(stage: Stage) -> bool:
        return await one(stage) and await other(stage)

    return reached
