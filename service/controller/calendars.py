"""Watches ScheduleCalendars and ClusterScheduleCalendars, works out their dates and reports them in their status.

Every replica reads all calendars, as its ScheduledMachines may name any of them; the replica that holds the shard of a
calendar's own key writes its status. A calendar that changed wakes the ScheduledMachines that name it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, Final

from crds.calendarrules import check_calendar
from crds.calendars import (
    CalendarDates,
    CalendarKind,
    CalendarProblem,
    CalendarReference,
    Calendars,
    CalendarShelf,
    UnreadableCalendar,
)
from crds.expansion import outlook
from crds.reasons import READY
from crds.schedulecalendar import CalendarSpec, CalendarStatus
from service.calendars.expander import Expander
from service.calendars.manifests import text_in
from service.clock import Clock
from service.controller.context import ControllerContext
from service.controller.statuses import retry_later, store_status
from service.decide.plan import Event
from service.decide.reasons import Reason
from service.kube.client import Client
from service.kube.errors import NotFound, Rejected
from service.kube.resource import CLUSTER_SCHEDULE_CALENDARS, CONFIG_MAPS, SCHEDULE_CALENDARS
from service.runtime.cache import Change
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.queue import Queue
from service.runtime.tasks import start
from service.runtime.worker import WorkerPool
from service.settings import Settings

Raw = dict[str, Any]
Place = tuple[str, CalendarReference]
"""The namespace of a calendar, empty for a cluster-scoped one, and how schedules name it."""

RESOURCES: Final = {
    CalendarKind.NAMESPACED: SCHEDULE_CALENDARS,
    CalendarKind.CLUSTER: CLUSTER_SCHEDULE_CALENDARS,
}
CONFIG_MAPS_OFF: Final = (
    "the operator may not read ConfigMaps; set calendars.configMaps in the chart, or use spec.ics.inline"
)


@dataclass(slots=True)
class _Text:
    """A ConfigMap that a calendar takes its ICS from, watched alone."""

    informer: Informer
    task: asyncio.Task[None] | None
    users: set[Place] = field(default_factory=set)


class CalendarController:
    """Holds the dates of all calendars in `shelf`."""

    def __init__(self, client: Client, settings: Settings, clock: Clock, context: ControllerContext) -> None:
        self.shelf = CalendarShelf()
        self._client = client
        self._settings = settings
        self._clock = clock
        self._context = context
        self._dates_changed: Callable[[str, CalendarReference], None] = lambda _namespace, _reference: None
        self._expander = Expander()
        self._queue = Queue(clock)
        self._pool = WorkerPool(self._queue, self._handle, size=1, on_error=self._failed)
        self._informers: dict[CalendarKind, Informer] = {}
        self._texts: dict[Key, _Text] = {}
        self._group: asyncio.TaskGroup | None = None

    def subscribe(self, dates_changed: Callable[[str, CalendarReference], None]) -> None:
        """Calls `dates_changed` with the namespace and name of each calendar whose dates changed."""
        self._dates_changed = dates_changed

    async def run(self) -> None:
        """Follows calendars until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self.definitions_changed()
            await self._pool.run()

    def definitions_changed(self) -> None:
        """Watches each kind of calendar from the moment at which its CustomResourceDefinition exists."""
        for kind, resource in RESOURCES.items():
            if self._group is not None and kind not in self._informers and self._context.defined(resource):
                informer = Informer(self._client, resource, namespaces=self._settings.namespaces)
                informer.listen(lambda change, kind=kind: self._changed(kind, change))  # type: ignore[misc]
                self._informers[kind] = informer
                start(self._group, informer.run(), name=f"watch {resource.plural}")

    def shard_acquired(self) -> None:
        """Looks at every calendar: this replica may have to report some of them now."""
        for kind, informer in self._informers.items():
            for key in informer:
                self._queue.add(_key(key.namespace, CalendarReference(kind, key.name)))

    @property
    def busy(self) -> bool:
        """Whether a calendar is known whose dates are not worked out yet."""
        synced = all(informer.is_synced for informer in self._informers.values())
        return not synced or self._queue.depth + self._queue.running > 0

    # What others ask

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:
        """The calendars that a schedule of a namespace means by these names, as far as they exist."""
        named = tuple(references)
        refused = {each: why for each in named if (why := self._refused(each)) is not None}
        return {**refused, **self.shelf.seen_from(namespace, named)}

    def _refused(self, reference: CalendarReference) -> UnreadableCalendar | None:
        """Why calendars of a kind cannot be listed, such as for a missing permission; None if they can."""
        informer = self._informers.get(reference.kind)
        if informer is None or informer.is_synced or not isinstance(informer.error, Rejected):
            return None
        return UnreadableCalendar(CalendarProblem.INVALID, f"{reference} cannot be read: {informer.error.message}")

    def pending(self, namespace: str, references: Iterable[CalendarReference]) -> bool:
        """Whether a calendar exists, or may exist, whose dates are not worked out yet, as after a start."""
        return any(self._is_pending(namespace, each) for each in references)

    def _is_pending(self, namespace: str, reference: CalendarReference) -> bool:
        informer = self._informers.get(reference.kind)
        if informer is None:
            return self._group is None or self._context.defined(RESOURCES[reference.kind])
        if not informer.is_synced:
            return not isinstance(informer.error, NotFound | Rejected)
        return _object_key(namespace, reference) in informer and not self.shelf.holds(namespace, reference)

    def exists(self, namespace: str, reference: CalendarReference) -> bool | None:
        """Whether there is such a calendar; None while that is not known."""
        informer = self._informers.get(reference.kind)
        if informer is None or not informer.is_synced:
            return None
        return _object_key(namespace, reference) in informer

    # One calendar

    def _changed(self, kind: CalendarKind, change: Change) -> None:
        self._queue.add(_key(change.key.namespace, CalendarReference(kind, change.key.name)))

    async def _handle(self, key: Key) -> None:
        namespace, reference = _place(key)
        raw = self._informers[reference.kind].get(_object_key(namespace, reference))
        if raw is None:
            self._forget_text((namespace, reference))
            self.shelf.drop(namespace, reference)
            self._dates_changed(namespace, reference)
            return
        dates = await self._dates(namespace, reference, raw)
        if self.shelf.seen_from(namespace, [reference]).get(reference) != dates:
            self.shelf.put(namespace, reference, dates)
            self._dates_changed(namespace, reference)
        await self._report(key, raw, dates)
        if isinstance(dates, UnreadableCalendar) and dates.passing:
            self._queue.retry(key)
        else:
            self._queue.succeeded(key)

    async def _dates(
        self, namespace: str, reference: CalendarReference, raw: Raw
    ) -> CalendarDates | UnreadableCalendar:
        verdict = check_calendar(raw, kind=reference.kind, unknown="ignore")
        if verdict.spec is None or verdict.violations:
            wrong = "; ".join(f"{one.field}: {one.message}" for one in verdict.violations)
            return UnreadableCalendar(CalendarProblem.INVALID, f"{reference} is invalid: {wrong}")
        spec = verdict.spec
        if spec.ics and spec.ics.config_map_key_ref and not self._settings.calendar_config_maps:
            return UnreadableCalendar(CalendarProblem.INVALID, f"{reference}: {CONFIG_MAPS_OFF}")
        text = await self._text((namespace, reference), spec)
        today = self._clock.now().astimezone(UTC).date()
        return await self._expander.dates(str(reference), spec, today, text)

    async def _report(self, key: Key, raw: Raw, dates: CalendarDates | UnreadableCalendar) -> None:
        """Stores the status, where this replica holds the shard, and is due again when it will say something else."""
        namespace, reference = _place(key)
        before = CalendarStatus.read(raw.get("status"))
        generation = raw["metadata"].get("generation") or 0
        after, changes_at = outlook(dates, self._clock.now(), generation, before)
        if changes_at is not None:
            self._queue.add(key, due=changes_at)
        own = _object_key(namespace, reference)
        if after == before or not self._context.owns(own) or self._belongs_to_others(reference):
            return
        with self._context.acting_for(own):
            resource = RESOURCES[reference.kind]
            await store_status(self._client, self._informers[reference.kind], resource, raw, after)
        if isinstance(dates, UnreadableCalendar) and _was_ready(before):
            event = Event(Reason.CALENDAR_INVALID, dates.message)
            self._context.events.record_about(resource.envelope() | {"metadata": raw["metadata"]}, event)

    def _belongs_to_others(self, reference: CalendarReference) -> bool:
        """Whether a release that watches some namespaces only may read a calendar, but not write its status."""
        return reference.kind is CalendarKind.CLUSTER and bool(self._settings.namespaces)

    def _failed(self, key: Key, error: Exception) -> None:
        retry_later(self._queue, key, error)

    # ConfigMaps

    async def _text(self, place: Place, spec: CalendarSpec) -> str | None:
        """The text in the ConfigMap that a calendar names; None if it names none, or the ConfigMap has no such text."""
        named = spec.ics.config_map_key_ref if spec.ics else None
        if named is None:
            self._forget_text(place)
            return None
        home = Key(place[0] or self._settings.namespace, named.name)
        self._forget_text(place, keep=home)
        if home not in self._texts:
            self._texts[home] = self._watch_text(home)
        self._texts[home].users.add(place)
        informer = self._texts[home].informer
        if not informer.is_synced and informer.error is None:
            await informer.synced(within=5.0)
        found = informer.get(home)
        return text_in(found, named.key) if found is not None else None

    def _watch_text(self, home: Key) -> _Text:
        fields = f"metadata.name={home.name}"
        informer = Informer(self._client, CONFIG_MAPS, namespaces=(home.namespace,), fields=fields)
        informer.listen(lambda change: self._text_changed(change.key))
        task = start(self._group, informer.run(), name=f"watch ConfigMap {home}") if self._group else None
        return _Text(informer, task)

    def _text_changed(self, home: Key) -> None:
        watched = self._texts.get(home)
        for namespace, reference in watched.users if watched else ():
            self._queue.add(_key(namespace, reference))

    def _forget_text(self, place: Place, keep: Key | None = None) -> None:
        """Watches the ConfigMaps of a calendar no longer, unless another calendar uses them; `keep` stays."""
        for home in [each for each in self._homes_of(place) if each != keep]:
            watched = self._texts[home]
            watched.users.discard(place)
            if not watched.users:
                del self._texts[home]
                if watched.task is not None:
                    watched.task.cancel()

    def _homes_of(self, place: Place) -> Iterator[Key]:
        return (home for home, watched in self._texts.items() if place in watched.users)


def _key(namespace: str, reference: CalendarReference) -> Key:
    """The key of a calendar in the queue, which holds calendars of both kinds."""
    return Key(namespace, f"{reference.kind}/{reference.name}")


def _place(key: Key) -> Place:
    kind, _, name = key.name.partition("/")
    return key.namespace, CalendarReference(CalendarKind(kind), name)


def _object_key(namespace: str, reference: CalendarReference) -> Key:
    return Key("" if reference.kind is CalendarKind.CLUSTER else namespace, reference.name)


def _was_ready(status: CalendarStatus) -> bool:
    """Whether the calendar could be read, or was never looked at: its failure is news then."""
    return not any(each.type == READY and each.status == "False" for each in status.conditions)
