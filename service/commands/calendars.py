"""The calendars that schedules name, from files or from a cluster; for `5spot preview` and `5spot validate`."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from crds.calendarrules import KINDS
from crds.calendars import (
    CalendarKind,
    CalendarProblem,
    CalendarReference,
    Calendars,
    CalendarShelf,
    Undecidable,
    UnreadableCalendar,
)
from crds.schedulespec import ScheduleSpec
from service.calendars.expander import NO_CONFIG_MAP, Expander
from service.calendars.manifests import config_map_of, reference_of, shelf_of
from service.commands.verdicts import Judged

if TYPE_CHECKING:
    from service.kube.client import Client
    from service.kube.errors import KubeError

Raw = dict[str, Any]


class Place(NamedTuple):
    """A calendar, and the namespace of the schedule that names it; empty for a ClusterScheduleCalendar."""

    namespace: str
    reference: CalendarReference

    def __str__(self) -> str:
        return f"{self.reference} in namespace {self.namespace}" if self.namespace else str(self.reference)


@dataclass(frozen=True, slots=True)
class CalendarSource:
    """The calendars at hand, and what to say of one that is missing."""

    shelf: CalendarShelf
    missing: str
    """What to say of a calendar that is not there."""
    without_config_map: str = ""
    """What to do about a ConfigMap that is not there."""

    def seen_by(self, judged: Judged, schedule: ScheduleSpec) -> Calendars:
        """The calendars that the schedule of a ScheduledMachine means."""
        return self.shelf.seen_from(judged.namespace, schedule.calendars)

    def explained(self, judged: Judged, undecidable: Undecidable) -> Iterator[tuple[CalendarReference, str]]:
        """For each calendar that cannot be read, what is wrong and what to do."""
        for reference, why in undecidable.problems:
            if why.problem is CalendarProblem.NOT_FOUND:
                yield reference, self.missing.format(_place(judged.namespace, reference))
            elif why.message.endswith(NO_CONFIG_MAP):
                yield reference, f"{why.message}{self.without_config_map}"
            else:
                yield reference, why.message


def from_files(
    documents: Iterable[Any], judged: Iterable[Judged], today: date, operator_namespace: str
) -> CalendarSource:
    """The calendars among these documents that a schedule names; others cost nothing."""
    named = {place.reference for place in _named_by(judged)}
    if not named:
        return CalendarSource(CalendarShelf(), "")
    wanted = [each for each in documents if reference_of(each) in named or config_map_of(each)]
    shelf = asyncio.run(shelf_of(wanted, today, Expander(), operator_namespace))
    return CalendarSource(
        shelf,
        missing="{} is not in these files; give its file too",
        without_config_map="; give the file of the ConfigMap too",
    )


@dataclass(slots=True)
class StoredCalendars:
    """What a cluster holds of the calendars that schedules name, as far as the user may read it."""

    documents: list[Raw] = field(default_factory=list)
    refused: dict[Place, str] = field(default_factory=dict)

    def source(self, today: date, operator_namespace: str) -> CalendarSource:
        """The calendars in question."""
        shelf = asyncio.run(shelf_of(self.documents, today, Expander(), operator_namespace))
        for place, message in self.refused.items():
            shelf.put(*place, UnreadableCalendar(CalendarProblem.INVALID, message))
        return CalendarSource(
            shelf,
            missing="there is no {}; create it, or correct calendarRef",
            without_config_map="; create it, or correct configMapKeyRef",
        )


async def read_stored(client: "Client", judged: Iterable[Judged], operator_namespace: str) -> StoredCalendars:
    """Reads the calendars that schedules name, and their ConfigMaps, with the rights of the user."""
    stored = StoredCalendars()
    for place in _named_by(judged):
        await _read(client, place, operator_namespace, stored)
    return stored


async def _read(client: "Client", place: Place, operator_namespace: str, stored: StoredCalendars) -> None:
    from service.kube.errors import KubeError, NotFound  # noqa: PLC0415 - files need no client
    from service.kube.resource import (  # noqa: PLC0415
        CLUSTER_SCHEDULE_CALENDARS,
        CONFIG_MAPS,
        SCHEDULE_CALENDARS,
    )

    namespace, (kind, name) = place
    resource = SCHEDULE_CALENDARS if kind is CalendarKind.NAMESPACED else CLUSTER_SCHEDULE_CALENDARS
    what = str(place)
    try:
        calendar = await client.get(resource, name, namespace=namespace or None)
        stored.documents.append({**resource.envelope(), **calendar})
        home = namespace or operator_namespace
        for config_map in _config_maps(calendar):
            what = f"ConfigMap {config_map} in namespace {home}, which {place} names"
            found = await client.get(CONFIG_MAPS, config_map, namespace=home)
            stored.documents.append({**CONFIG_MAPS.envelope(), **found})
    except NotFound:
        return
    except KubeError as error:
        stored.refused[place] = _refusal(what, error)


def _refusal(what: str, error: "KubeError") -> str:
    from service.kube.errors import Forbidden  # noqa: PLC0415 - files need no client

    if isinstance(error, Forbidden):
        return f"you may not read {what}: {error.message}; ask for the verb get on it"
    return f"cannot read {what}: {error.message}"


def _config_maps(calendar: Raw) -> Iterator[str]:
    """The name of the ConfigMap that a stored calendar refers to, if it does."""
    reference: Any = calendar
    for key in ("spec", "ics", "configMapKeyRef", "name"):
        reference = reference.get(key) if type(reference) is dict else None
    if type(reference) is str and reference:
        yield reference


def with_broken_ics(judged: list[Judged], documents: list[Any], today: date) -> list[Judged]:
    """The verdicts, with a warning for each calendar whose ICS is at hand and cannot be read: admission takes it."""
    return [each.warned(_ics_warnings(each, documents, today)) for each in judged]


def _ics_warnings(judged: Judged, documents: list[Any], today: date) -> list[str]:
    if judged.calendar is None or judged.calendar.ics is None:
        return []
    reference = CalendarReference(KINDS[judged.kind], judged.name)
    beside = [each for each in documents if config_map_of(each)]
    shelf = asyncio.run(shelf_of([judged.document.content, *beside], today, Expander()))
    found = shelf.seen_from(judged.namespace, [reference]).get(reference)
    if not isinstance(found, UnreadableCalendar) or found.message.endswith(NO_CONFIG_MAP):
        return []
    return [f"{found.message}; no schedule can use the calendar until it is corrected"]


def _named_by(judged: Iterable[Judged]) -> list[Place]:
    """All calendars that schedules name, each once."""
    machines = ((each.namespace, each.machine) for each in judged)
    places = (
        _place(namespace, reference)
        for namespace, machine in machines
        if machine is not None
        for reference in machine.spec.schedule.calendars
    )
    return list(dict.fromkeys(places))


def _place(namespace: str, reference: CalendarReference) -> Place:
    return Place("" if reference.kind is CalendarKind.CLUSTER else namespace, reference)
