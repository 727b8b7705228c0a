"""Watches ScheduleOverrides, knows which of them count, reports their status and deletes them a day after their end.

Every replica indexes all overrides, as they may be about any of its ScheduledMachines; the replica that holds the shard
of an override's own key writes its status. An override that changed wakes the machines that it is about; when it begins
or ends, the timers of those machines do.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog

from crds.overridelife import OverrideOutlook, outlook
from crds.overrides import Override, OverrideState
from crds.reasons import ACCEPTED
from crds.scheduleoverride import OverrideStatus
from service import metrics
from service.clock import Clock
from service.controller.context import ControllerContext
from service.controller.statuses import retry_later, store_status
from service.kube.client import Client
from service.kube.errors import NotFound, Rejected, Unavailable
from service.kube.resource import SCHEDULE_OVERRIDES
from service.objects.overrides import read_override
from service.observe.overrides import IndexedOverride, OverrideIndex, machines_of
from service.runtime.cache import Change, EventType
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.queue import Queue
from service.runtime.tasks import start
from service.runtime.worker import WorkerPool
from service.settings import Settings

Raw = dict[str, Any]

STARTED_SECONDS: Final = 0.05
LISTED_SECONDS: Final = 1.0
WOKEN_AT_ONCE: Final = 500

log = structlog.get_logger(__name__)


class OverrideController:
    """An OverrideSource of all accepted overrides."""

    def __init__(
        self, client: Client, settings: Settings, clock: Clock, context: ControllerContext, scheduled: Informer
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._context = context
        self._scheduled = scheduled
        self._changed_machines: Callable[[Iterable[Key]], None] = lambda _keys: None
        self._index = OverrideIndex()
        self._decided = False
        """Whether a machine may have been decided about: before that, none has to be woken."""
        self._changed_entries: dict[Key, list[IndexedOverride]] = {}
        """Entries that counted, or count now, and whose machines are to be woken."""
        self._queue = Queue(clock)
        self._pool = WorkerPool(self._queue, self._handle, size=1, on_error=self._failed)
        self._informer: Informer | None = None
        self._group: asyncio.TaskGroup | None = None

    def subscribe(self, machines_changed: Callable[[Iterable[Key]], None]) -> None:
        """Calls `machines_changed` with the ScheduledMachines that an override is about, whenever that changes."""
        self._changed_machines = machines_changed

    async def run(self) -> None:
        """Follows overrides until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self.definitions_changed()
            await self._pool.run()

    def definitions_changed(self) -> None:
        """Watches overrides from the moment at which their CustomResourceDefinition exists."""
        if self._group is None or self._informer is not None or not self._context.defined(SCHEDULE_OVERRIDES):
            return
        informer = Informer(self._client, SCHEDULE_OVERRIDES, namespaces=self._settings.namespaces)
        informer.listen(self._changed)
        self._informer = informer
        start(self._group, informer.run(), name=f"watch {SCHEDULE_OVERRIDES.plural}")

    def look_again(self) -> None:
        """Looks at every override: this replica may have to report some of them now, or the clock was set back."""
        for key in self._informer or ():
            self._queue.add(key)

    # What others ask

    def about(self, namespace: str, name: str, labels: Mapping[str, str]) -> tuple[Override, ...]:
        """The accepted ones that name or select a machine and have not ended, or ended within a day, in any order."""
        return self._index.about(namespace, name, labels)

    @property
    def pending(self) -> bool:
        """Whether there may be overrides that are not listed yet, as after a start: no machine is decided about then.

        If the operator may not list them, there are none for it.
        """
        informer = self._informer
        if informer is None:
            return self._group is None or self._context.defined(SCHEDULE_OVERRIDES)
        return not informer.is_synced and not isinstance(informer.error, NotFound | Rejected)

    async def listed(self) -> None:
        """Waits until the overrides are known; before each pass."""
        while self.pending:
            await self._sync()
        self._decided = True

    async def _sync(self) -> None:
        if self._informer is None:
            await asyncio.sleep(STARTED_SECONDS)
            return
        try:
            await self._informer.synced(within=LISTED_SECONDS)
        except Unavailable as error:
            log.warning("waiting for the overrides", error=error.message)

    @property
    def busy(self) -> bool:
        """Whether an override is known that was not looked at yet."""
        return self.pending or self._queue.depth + self._queue.running > 0

    def in_force(self, state: OverrideState) -> int:
        """How many are in force, of those whose shard this replica holds: the replicas together count each once."""
        now = self._clock.now()
        return sum(
            each.state is state and each.in_force(now) and self._context.owns(key) for key, each in list(self._index)
        )

    # One override

    def _changed(self, change: Change) -> None:
        """Indexes an override at once, so that passes see it as soon as the cache has it; the rest waits its turn."""
        self._look(change.key, None if change.type is EventType.DELETED else change.object)
        self._queue.add(change.key)

    def _look(self, key: Key, raw: Raw | None) -> OverrideOutlook | None:
        """What becomes of an override now; keeps the index right."""
        seen, entry = self._judged(raw) if raw is not None else (None, None)
        changed = self._index.put(key, entry)
        if changed and self._decided:
            self._changed_entries.setdefault(key, []).extend(changed)
        return seen

    def _judged(self, raw: Raw) -> tuple[OverrideOutlook, IndexedOverride | None]:
        now = self._clock.now()
        stored = read_override(raw, now)
        seen = outlook(stored, OverrideStatus.read(raw.get("status")), now, self._settings.max_override)
        if seen.counts is None or stored.spec is None:
            return seen, None
        return seen, IndexedOverride(seen.counts, stored.spec.machines, stored.spec.selector)

    async def _handle(self, key: Key) -> None:
        informer = self._informer
        if informer is None or informer.unreadable(key):
            return
        raw = informer.get(key)
        seen = self._look(key, raw)
        await self._wake_machines(key)
        if raw is None or seen is None:
            self._queue.succeeded(key)
            return
        if seen.changes_at is not None:
            self._queue.add(key, due=seen.changes_at)
        if not self._context.owns(key):
            return
        with self._context.acting_for(key):
            if seen.delete:
                await self._delete(key, raw)
            else:
                await self._report(key, raw, seen.status, informer)
        self._queue.succeeded(key)
        await self._wake_machines(key)

    async def _wake_machines(self, key: Key) -> None:
        """Wakes the machines that an override is about, and those that it was about."""
        for entry in self._changed_entries.pop(key, ()):
            woken: list[Key] = []
            for machine in machines_of(entry, key.namespace, self._scheduled):
                woken.append(machine)
                if len(woken) % WOKEN_AT_ONCE == 0:
                    await asyncio.sleep(0)  # a selector may select thousands
            self._changed_machines(woken)

    async def _report(self, key: Key, raw: Raw, status: OverrideStatus, informer: Informer) -> None:
        before = OverrideStatus.read(raw.get("status"))
        if status == before:
            return
        stored = await store_status(self._client, informer, SCHEDULE_OVERRIDES, raw, status)
        if stored is None:
            return
        self._look(key, stored)
        _count(before, status)

    async def _delete(self, key: Key, raw: Raw) -> None:
        metadata = raw["metadata"]
        try:
            await self._client.delete(
                SCHEDULE_OVERRIDES,
                key.name,
                namespace=key.namespace,
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )
        except NotFound:
            return  # deleted meanwhile
        metrics.OVERRIDES_DELETED.inc()
        log.info("deleted an override that ended a day ago", override=str(key))

    def _failed(self, key: Key, error: Exception) -> None:
        retry_later(self._queue, key, error)


def _count(before: OverrideStatus, after: OverrideStatus) -> None:
    """Counts an override that was accepted or refused, once for each time that this changes."""
    was, now = before.condition(ACCEPTED), after.condition(ACCEPTED)
    if now is not None and (was is None or was.reason != now.reason):
        metrics.OVERRIDES_JUDGED.labels(now.reason).inc()
