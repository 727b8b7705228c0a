"""The calendars that schedules name, from a cluster, with the rights of the user."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from crds.calendars import CalendarKind, CalendarProblem, CalendarShelf, UnreadableCalendar
from service.calendars.expander import Expander
from service.calendars.manifests import shelf_of
from service.commands.calendars import AvailableCalendars, CalendarPlace, named_by
from service.commands.verdicts import Judged
from service.kube.client import Client
from service.kube.errors import Forbidden, KubeError, NotFound
from service.kube.resource import CLUSTER_SCHEDULE_CALENDARS, CONFIG_MAPS, SCHEDULE_CALENDARS

Raw = dict[str, Any]


@dataclass(slots=True)
class StoredCalendars:
    """What a cluster holds of the calendars that schedules name, as far as the user may read it."""

    documents: list[Raw] = field(default_factory=list)
    refused: dict[CalendarPlace, str] = field(default_factory=dict)

    def source(self, today: date, operator_namespace: str) -> AvailableCalendars:
        """The calendars in question, and what to say of one that is missing."""
        return AvailableCalendars(
            asyncio.run(self.shelf(today, operator_namespace)),
            missing="there is no {}; create it, or correct calendarRef",
            without_config_map="; create it, or correct configMapKeyRef",
        )

    async def shelf(self, today: date, operator_namespace: str) -> CalendarShelf:
        """The calendars in question; one that the user may not read is there as unreadable."""
        shelf = await shelf_of(self.documents, today, Expander(), operator_namespace)
        for place, message in self.refused.items():
            shelf.put(*place, UnreadableCalendar(CalendarProblem.INVALID, message))
        return shelf


async def read_stored(client: Client, judged: Iterable[Judged], operator_namespace: str) -> StoredCalendars:
    """Reads the calendars that schedules name, and their ConfigMaps, with the rights of the user."""
    stored = StoredCalendars()
    for place in named_by(judged):
        await _read(client, place, operator_namespace, stored)
    return stored


async def _read(client: Client, place: CalendarPlace, operator_namespace: str, stored: StoredCalendars) -> None:
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


def _refusal(what: str, error: KubeError) -> str:
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
