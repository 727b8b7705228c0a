"""Which events wake which objects: each method handles one source and adds the keys that it concerns to the queue.

`service.controller.wiring` subscribes these methods to their sources, all in one table.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Final

from crds import names
from crds.calendars import CalendarKind, CalendarReference
from crds.classes import class_of
from crds.status import Phase
from service.clock import Clock
from service.decide.precedence import precedence_of
from service.kube.decode import Object
from service.kube.discovery import MISSING_SECONDS
from service.observe.indexes import calendar_term
from service.observe.observer import Observer
from service.observe.prewarm import Prewarmer
from service.observe.unowned_nodes import UnownedNodes, requests_reclaim
from service.observe.watches import Watches
from service.runtime.cache import Change, EventType
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from service.runtime.queue import URGENT, Queue

SUFFIXES: Final = (names.MACHINE_SUFFIX, names.BOOTSTRAP_SUFFIX, names.INFRASTRUCTURE_SUFFIX)

SERVED_SECONDS: Final = MISSING_SECONDS + 1.0
"""By then every kind that was just defined can be resolved."""

CANDIDATES_WOKEN: Final = 16
"""How many of the objects that want the same host are woken when one of them changes, in order of their claims."""

TURN_HEAD_START: Final = timedelta(minutes=1)
"""An object whose turn came counts as due for so long already: what it waits for takes time, reports can wait."""


@dataclass(slots=True)
class Triggers:
    """Turns events into keys in the queue; the queue drops keys of shards that this replica does not hold."""

    queue: Queue
    watches: Watches
    observer: Observer
    own_writes: OwnWrites
    prewarmer: Prewarmer
    clock: Clock
    owns: Callable[[Key], bool]
    forget: Callable[[Key], None]
    """Called with an object that is gone."""
    class_outline: Callable[[str], Object | None] = lambda _name: None
    """The priority and the kinds of a class."""
    unowned_nodes: UnownedNodes = field(default_factory=UnownedNodes)

    # Changes in the management cluster

    def scheduled_machine_changed(self, change: Change) -> None:
        """Wakes the object itself, and those that want the same host."""
        gone = change.type is EventType.DELETED
        hosts = self.observer.hosts.update(change.key, None if gone else change.object)
        self._wake_candidates(hosts, exclude=change.key)
        if gone:
            self.forget(change.key)
            return
        if change.type is EventType.ADDED:
            self.queue.add(change.key, priority=precedence_of(change.object, self._class_of(change.object)))
        self.own_writes.observed(change.key, str(change.version))
        if _kill_switch_set(change.object):
            self.queue.add(change.key, due=URGENT)
        if not self.owns(change.key):
            self.prewarmer.add_kinds(change.object)
            self._prewarm_class(change.object)

    def _prewarm_class(self, raw: Object) -> None:
        found = self._class_of(raw)
        if found is not None:
            self.prewarmer.add_kinds(found)

    def _class_of(self, raw: Object) -> Object | None:
        name = class_of(raw)
        return self.class_outline(name) if name is not None else None

    def child_changed(self, change: Change) -> None:
        """Wakes the ScheduledMachine that a bootstrap, infrastructure or Machine object is named after."""
        name = change.key.name
        for suffix in (*SUFFIXES, ""):  # without one: see World.other_operators_machine
            owner = Key(change.key.namespace, name.removesuffix(suffix))
            if name.endswith(suffix) and owner in self.watches.scheduled:
                self.own_writes.observed(owner, str(change.version))

    def cluster_changed(self, change: Change) -> None:
        """Wakes the objects in a Cluster, and those that want the same hosts: a valid claim needs a Cluster."""
        named = self.watches.scheduled.keys_by("cluster", change.key.name)
        keys = [key for key in named if key.namespace == change.key.namespace]
        self._wake(keys)
        self._wake_candidates(self.observer.hosts.invalidate(keys))

    def calendar_changed(self, namespace: str, calendar: CalendarReference) -> None:
        """Wakes the objects whose schedules name a calendar, and those that want the same hosts."""
        keys = self.calendar_users(namespace, calendar)
        self._wake(keys)
        self._wake_candidates(self.observer.hosts.invalidate(keys))

    def overrides_changed(self, keys: Iterable[Key]) -> None:
        """Wakes the objects that an override concerns, or has concerned, and those that want the same hosts."""
        concerned = list(keys)
        self._wake(concerned)
        self._wake_candidates(self.observer.hosts.invalidate(concerned))

    def class_user_changed(self, key: Key) -> None:
        """Wakes an object whose class changed, and those that want the same host as before or as now."""
        self.class_user_read(key)
        self.queue.add(key)

    def class_user_read(self, key: Key) -> None:
        """Takes in what the class of an object makes of its host."""
        hosts = {*self.observer.hosts.update(key, self.watches.scheduled.get(key))}
        self._wake_candidates(hosts | self.observer.hosts.invalidate([key]), exclude=key)

    def calendar_users(self, namespace: str, calendar: CalendarReference) -> list[Key]:
        """The objects whose schedules name a calendar."""
        named = self.watches.scheduled.keys_by("calendar", calendar_term(calendar.kind, calendar.name))
        if calendar.kind is CalendarKind.CLUSTER:
            return list(named)
        return [key for key in named if key.namespace == namespace]

    def drain_rule_changed(self, change: Change) -> None:
        """Wakes the objects of a namespace whose Nodes are being drained."""
        self._wake(self.observer.workload.drains.draining(change.key.namespace))

    def definitions_changed(self) -> None:
        """Wakes the objects that may wait for a kind, now and once the API server must serve what was just defined."""
        asyncio.get_running_loop().call_later(SERVED_SECONDS, self._wake_waiting)
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        for phase in (Phase.ERROR, Phase.PENDING):
            self._wake(self.watches.scheduled.keys_by("phase", phase))

    def capi_changed(self) -> None:
        """Wakes every object: another contract of Cluster API is in force."""
        self.observer.hosts.invalidate(self.watches.scheduled)
        self._wake(self.watches.scheduled)

    def clock_set_back(self) -> None:
        """Wakes every object: it may be outside its window now."""
        self._wake(self.watches.scheduled)

    def turn_came(self, key: Key) -> None:
        """Wakes an object that waited in a crowd, ahead of those that only have something to report."""
        self.queue.add(key, due=self.clock.now() - TURN_HEAD_START)

    # Changes in workload clusters

    def node_changed(self, cluster: Key, change: Change) -> None:
        """Wakes the objects on a Node, ahead of everything else if its agent requests an emergency reclaim."""
        users = self.observer.workload.nodes.users(cluster, change.key.name)
        urgent = requests_reclaim(change)
        for key in users:
            self.queue.add(key, due=URGENT if urgent else None)
        if urgent and not users:
            self.unowned_nodes.report(cluster, change.object, self.watches.machines)

    # Our own writes, which watches do not report

    def scheduled_machine_written(self, key: Key) -> None:
        """Wakes the objects whose claim to a host may have changed by our write or read of another one."""
        hosts = self.observer.hosts.update(key, self.watches.scheduled.get(key))
        self._wake_candidates(hosts, exclude=key)

    def node_written(self, cluster: Key, node: str, by: Key) -> None:
        """Wakes the other objects on a Node."""
        self._wake(self.observer.workload.nodes.users(cluster, node) - {by})

    def _wake(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.queue.add(key)

    def _wake_candidates(self, hosts: Iterable[str], exclude: Key | None = None) -> None:
        """Wakes the objects with the first claims to these hosts; the others would only be refused again."""
        now = self.clock.now()
        for host in hosts:
            self._wake(islice(self.observer.hosts.candidates(host, now, exclude), CANDIDATES_WOKEN))


def _kill_switch_set(raw: Object) -> bool:
    """Whether the user has just set the kill switch: it goes before everything else in its namespace."""
    spec = raw.get("spec")
    status = raw.get("status")
    seen = status.get("observedGeneration") if isinstance(status, dict) else None
    return isinstance(spec, dict) and spec.get("killSwitch") is True and seen != raw["metadata"].get("generation")
