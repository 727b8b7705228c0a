"""The dates of calendars, worked out in the background whenever a watched calendar changes."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC
from typing import Any, Final

from crds.calendarrules import check_calendar
from crds.calendars import (
    CalendarKind,
    CalendarProblem,
    CalendarReference,
    Calendars,
    CalendarShelf,
    UnreadableCalendar,
)
from service.calendars.expander import Expander
from service.calendars.manifests import text_in
from service.clock import Clock
from service.kube.client import Client
from service.kube.errors import KubeError
from service.kube.resource import CLUSTER_SCHEDULE_CALENDARS, CONFIG_MAPS, Resource
from service.runtime.key import Key

Raw = dict[str, Any]
SETTLE_SECONDS: Final = 5.0


class LiveCalendars:
    """Works out the dates of calendars that a viewer watches; calls `changed` when they are known."""

    def __init__(self, client: Client, clock: Clock, operator_namespace: str, changed: Callable[[Key], None]) -> None:
        self._client = client
        self._clock = clock
        self._operator_namespace = operator_namespace
        self._changed = changed
        self.shelf = CalendarShelf()
        self._expander = Expander()
        self._due: dict[tuple[str, CalendarReference], Raw | None] = {}
        self._bell = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:
        """The calendars that a schedule of a namespace means by these names."""
        return self.shelf.seen_from(namespace, references)

    def refresh(self, resource: Resource, key: Key, raw: Raw | None) -> None:
        """A calendar changed, or is gone."""
        kind = CalendarKind.CLUSTER if resource is CLUSTER_SCHEDULE_CALENDARS else CalendarKind.NAMESPACED
        self._due[key.namespace, CalendarReference(kind, key.name)] = raw
        self._settled.clear()
        self._bell.set()

    async def settle(self) -> None:
        """Waits until the dates of all calendars are known, at most five seconds: a large calendar takes longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._settled.wait()

    async def run(self) -> None:
        """Works out what changed, one calendar after the other, until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            while self._due:
                (namespace, reference), raw = self._due.popitem()
                await self._put(namespace, reference, raw)
                self._changed(Key(namespace, reference.name))
            self._settled.set()

    async def _put(self, namespace: str, reference: CalendarReference, raw: Raw | None) -> None:
        if raw is None:
            self.shelf.drop(namespace, reference)
            return
        spec = check_calendar(raw, kind=reference.kind, unknown="ignore").spec
        if spec is None:
            self.shelf.put(namespace, reference, _broken(f"{reference} is invalid"))
            return
        named = spec.ics.config_map_key_ref if spec.ics else None
        try:
            text = await self._text(namespace, named.name, named.key) if named else None
        except KubeError as error:
            self.shelf.put(namespace, reference, _broken(f"{reference}: {error.message}"))
            return
        today = self._clock.now().astimezone(UTC).date()
        self.shelf.put(namespace, reference, await self._expander.dates(str(reference), spec, today, text))

    async def _text(self, namespace: str, name: str, key: str) -> str | None:
        found = await self._client.get(CONFIG_MAPS, name, namespace=namespace or self._operator_namespace)
        return text_in(found, key)


def _broken(why: str) -> UnreadableCalendar:
    return UnreadableCalendar(CalendarProblem.INVALID, why)
