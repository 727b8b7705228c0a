"""Overrides and machines as stored, for the tests of the fleet."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from crds.base import rfc3339
from crds.calendars import CalendarShelf
from service.fleet.overrides import ListedOverrides
from service.fleet.overriding import OverridableMachine
from service.fleet.requests import overridable
from tests.crds.machines import machine

NOON = datetime(2026, 3, 6, 12, 0, tzinfo=UTC)  # a Friday
CREATED = datetime(2026, 3, 6, 8, 0, tzinfo=UTC)
HOURS = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-16"], "timezone": "UTC", "enabled": True}


def at(hour: int, minute: int = 0, *, day: int = 6) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def stored(name: str, state: str, until: datetime, **fields: Any) -> dict[str, Any]:
    """An override of desk-7, as stored; `status` and `created` are not part of its spec."""
    status, created = fields.pop("status", {}), fields.pop("created", CREATED)
    spec = {"machines": ["desk-7"], "state": state, "until": rfc3339(until), **fields}
    if "selector" in spec:
        del spec["machines"]
    metadata = {"name": name, "namespace": "team-a", "uid": name, "creationTimestamp": rfc3339(created)}
    return {"metadata": {**metadata, "generation": 1}, "spec": spec, "status": status}


def desk(*overrides: dict[str, Any], now: datetime = NOON, **metadata: Mapping[str, Any]) -> OverridableMachine:
    """desk-7, open from nine to five on working days, with these overrides."""
    return overridable(desk_as_stored(**metadata), ListedOverrides.read(overrides, now), CalendarShelf())


def punctual_desk(**schedule: Any) -> OverridableMachine:
    """The same, requested ten minutes before an opening and shut down half an hour before a close."""
    raw = desk_as_stored()
    raw["spec"]["schedule"] |= {"startEarly": "10m", "stopEarly": "30m", **schedule}
    return overridable(raw, ListedOverrides(), CalendarShelf())


def london_desk(**schedule: Any) -> OverridableMachine:
    """desk-7 with a schedule on the clock of London."""
    raw = desk_as_stored()
    raw["spec"]["schedule"] = {"timezone": "Europe/London", "enabled": True, **schedule}
    return overridable(raw, ListedOverrides(), CalendarShelf())


def unreadable_desk(*overrides: dict[str, Any]) -> OverridableMachine:
    """The same with these overrides; a calendar of its schedule does not exist."""
    raw = desk_as_stored()
    raw["spec"]["schedule"]["exceptions"] = [{"calendarRef": {"name": "holidays"}, "state": "Closed"}]
    return overridable(raw, ListedOverrides.read(overrides, NOON), CalendarShelf())


def desk_as_stored(**metadata: Any) -> dict[str, Any]:
    """The ScheduledMachine itself."""
    raw = machine(schedule=dict(HOURS))
    raw["metadata"] = {"name": "desk-7", "namespace": "team-a", "labels": {"room": "1"}, **metadata}
    return raw
