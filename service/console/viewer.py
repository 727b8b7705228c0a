"""What one user sees: at most four watches with the user's own rights, reduced to what pages show.

ScheduledMachines, overrides and the two kinds of calendars are watched; all else is read when a page asks for it.
"""

import asyncio
import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from crds.overrides import Override
from crds.partial import read_partial
from service.clock import Clock
from service.console import rights
from service.console.livecalendars import LiveCalendars
from service.fleet.live import LiveView
from service.fleet.overrides import ListedOverride, ListedOverrides
from service.fleet.requests import requester
from service.fleet.summary import Summary
from service.fleet.timeline import TimelinePeriod, timeline
from service.kube.client import Client
from service.kube.resource import (
    CLUSTER_SCHEDULE_CALENDARS,
    SCHEDULE_CALENDARS,
    SCHEDULE_OVERRIDES,
    SCHEDULED_MACHINES,
    Resource,
)
from service.runtime.cache import slim
from service.runtime.key import Key
from service.runtime.packing import packed

Raw = dict[str, Any]
Listener = Callable[[str, Key], None]
FIRST_LIST_SECONDS: Final = 30.0
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "labels")
_SPEC: Final = ("schedule", "gracefulShutdownTimeout")
_STATUS: Final = ("history", "leads")


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """Which part of which cluster is shown, and by which clock; no namespace means all."""

    client: Client
    clock: Clock
    namespace: str | None
    operator_namespace: str


class Viewer:
    """Follows the fleet for one user."""

    def __init__(self, place: ViewPlace) -> None:
        self.client, self.clock, self.namespace = place.client, place.clock, place.namespace
        self.user = ""
        self.still: Callable[[], bool] = lambda: True
        """Whether open pages may go on."""
        self._ended = asyncio.Event()
        self.unread: dict[str, str] = {}
        """By kind: why it is not shown."""
        self.machines = self._view(SCHEDULED_MACHINES, _row, slim=_light)
        self.overrides = self._view(SCHEDULE_OVERRIDES, self._override)
        self.shelf = LiveCalendars(place.client, place.clock, place.operator_namespace, self._dates_changed)
        self.calendars = {each: self._view(each, slim) for each in (SCHEDULE_CALENDARS, CLUSTER_SCHEDULE_CALENDARS)}
        self._listeners: list[Listener] = []
        self._running: list[LiveView[Any]] = []
        self._task: asyncio.Task[None] | None = None

    def _view(self, resource: Resource, reduce: Callable[[Raw], Any], **options: Any) -> LiveView[Any]:
        view: LiveView[Any] = LiveView(self.client, resource, reduce, namespace=self.namespace, **options)
        view.listen(lambda key: self._changed(resource, key))
        return view

    async def start(self) -> None:
        """Asks who the user is and what may be read, and begins to watch that; `KubeError` if nothing can be read."""
        self.user = await requester(self.client)
        views = (self.machines, self.overrides, *self.calendars.values())
        may = await asyncio.gather(*(rights.readable(self.client, each.resource, self.namespace) for each in views))
        self._running = [view for view, allowed in zip(views, may, strict=True) if allowed]
        for view, allowed in zip(views, may, strict=True):
            if not allowed:
                self.unread[view.resource.kind] = f"You may not list and watch {view.resource.label}{self._where()}."
        self._task = asyncio.create_task(self._run())
        for view in self._running:
            await view.synced(FIRST_LIST_SECONDS)

    def seen_by(self, client: Client) -> "Viewer":
        """The same watches for another session of the same user, whose own requests go out by its own client."""
        made = copy.copy(self)
        made.client = client
        return made

    @property
    def ended(self) -> bool:
        """Whether open pages are to be closed."""
        return self._ended.is_set() or not self.still()

    def end(self) -> None:
        """Closes the feeds of open pages."""
        self._ended.set()
        self.wake()

    def wake(self) -> None:
        """Has open pages look whether they may go on."""
        self._tell("", Key("", ""))

    async def stop(self) -> None:
        """Ends the watches and connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self.client.close()

    @property
    def problem(self) -> str:
        """Why a watch is not connected; empty if all are."""
        return next((each.problem for each in self._running if each.problem), "")

    def listen(self, listener: Listener) -> None:
        """Calls `listener` with the kind and the key of everything that changed."""
        self._listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        """Stops calling it."""
        self._listeners.remove(listener)

    def listed_overrides(self, namespace: str | None = None) -> ListedOverrides:
        """All overrides, or those of one namespace."""
        shown: dict[Key, ListedOverride] = self.overrides.shown
        return ListedOverrides(tuple(each for key, each in shown.items() if namespace in (None, key.namespace)))

    def timelines(self, keys: Iterable[Key], period: TimelinePeriod) -> dict[str, Raw]:
        """The lines of some machines; those that are gone are left out."""
        now = self.clock.now()
        found = ((key, self.machines.get(key)) for key in keys)
        by_namespace: dict[str, ListedOverrides] = {}
        lines = {}
        for key, raw in found:
            if raw is not None:
                listed = by_namespace.setdefault(key.namespace, self.listed_overrides(key.namespace))
                lines[str(key)] = self._timeline(key, raw, listed, period, now)
        return lines

    def _timeline(self, key: Key, raw: Raw, listed: ListedOverrides, period: TimelinePeriod, now: datetime) -> Raw:
        schedule = read_partial(raw).schedule
        named = schedule.calendars if schedule else ()
        overrides: tuple[Override, ...] = listed.about(key.namespace, key.name, raw["metadata"].get("labels") or {})
        return timeline(raw, self.shelf.seen_from(key.namespace, named), overrides, period, now)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for view in self._running:
                group.create_task(view.run())
            group.create_task(self.shelf.run())

    def _changed(self, resource: Resource, key: Key) -> None:
        if resource in self.calendars:
            self.shelf.refresh(resource, key, self.calendars[resource].get(key))
        self._tell(resource.kind, key)

    def _dates_changed(self, key: Key) -> None:
        self._tell(SCHEDULE_CALENDARS.kind, key)

    def _tell(self, kind: str, key: Key) -> None:
        for listener in tuple(self._listeners):
            listener(kind, key)

    def _override(self, raw: Raw) -> ListedOverride:
        return ListedOverride.read(raw, self.clock.now())

    def _where(self) -> str:
        return f" in namespace {self.namespace}" if self.namespace else ""


def _row(raw: Raw) -> bytes:
    """A machine's row, packed: ten thousand of them take a few megabytes."""
    return packed(Summary.read(raw).to_json())


def _light(raw: Raw) -> Raw:
    """What lines and reports need."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    return {
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {key: spec[key] for key in _SPEC if key in spec},
        "status": {key: status[key] for key in _STATUS if key in status},
    }
