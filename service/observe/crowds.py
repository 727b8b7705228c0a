"""Whose turn it is, where a Cluster limits how many of its machines are provisioned or drained at once.

A ledger in memory, made from the caches when it is first needed, so that a restart changes nothing. Each pass brings
its own machine up to date and wakes those whose turn it is by then, so nothing polls. Every shard has its own
share of a limit. Machines queue with those of their Cluster only, so no namespace waits for another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from crds import names
from crds.scheduledmachine import DEFAULT_PROVISIONING_TIMEOUT
from service.clock import Clock
from service.decide.outcome import Outcome
from service.decide.plan import Plan, earliest
from service.decide.reasons import Reason
from service.decide.situation import Situation
from service.decide.turns import (
    ANNOTATIONS,
    Queueing,
    awaited,
    draining_until,
    limit_of,
    provisioning_until,
    rank,
    read_limit,
    taken,
)
from service.decide.world import Problem, ReadFailure, Role, Turn, Turns, World
from service.objects import views
from service.objects.subject import Subject
from service.observe.crowd import Crowd, QueuePlace
from service.observe.watches import CapiInformers, Watches
from service.runtime.key import Key

_UNREAD: Final = {
    role: ReadFailure(Problem(Reason.API_UNAVAILABLE, "not read")) for role in (Role.BOOTSTRAP, Role.INFRASTRUCTURE)
}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CrowdOptions:
    """The limits of Clusters that set none themselves, 0 for none, and how objects are spread over shards."""

    max_provisioning: int = 0
    max_draining: int = 0
    shards: int = 1
    shard_number: Callable[[Key], int] = lambda _key: 0

    def limit(self, queueing: Queueing, world: World) -> int:
        """The limit of the Cluster of a machine."""
        default = self.max_provisioning if queueing is Queueing.PROVISIONING else self.max_draining
        annotations = world.cluster.annotations if world.cluster else {}
        return limit_of(queueing, annotations, default)


class CrowdId(NamedTuple):
    """What a crowd queues for, and where."""

    cluster: Key
    shard: int
    queueing: Queueing


class Crowds:
    """The crowds of all Clusters that have a limit; `wake` is called with a key whose turn it is."""

    def __init__(
        self,
        watches: Watches,
        subject: Callable[[Key], Subject | None],
        clock: Clock,
        wake: Callable[[Key], None],
        options: CrowdOptions = CrowdOptions(),  # noqa: B008 - frozen
    ) -> None:
        self._watches = watches
        self._subject = subject
        self._clock = clock
        self._wake = wake
        self._options = options
        self._crowds: dict[CrowdId, Crowd] = {}
        self._clusters: dict[Key, Key] = {}
        """The Cluster in whose crowds an object is."""
        self._unusable: dict[tuple[Key, Queueing], str] = {}
        """Annotations that are no limit and were logged."""

    # One pass: `offer` before the decision, `settle` right after it, `observed` and `finished` at the end

    def offer(self, subject: Subject, world: World) -> World:
        """The world with the turns of its machine; nothing is taken yet."""
        self._check_annotations(subject, world)
        limited = any(self._options.limit(queueing, world) for queueing in Queueing)
        if world.cluster is None or world.dry_run or not (limited or self._crowds):
            return world
        s = Situation.at(subject.intent, world, self._clock.now())
        found = {queueing: self._turn(subject, s, queueing) for queueing in Queueing}
        return replace(world, turns=Turns(found[Queueing.PROVISIONING], found[Queueing.DRAINING]))

    def settle(self, subject: Subject, world: World, plan: Plan) -> None:
        """Takes the turn that the plan uses, and queues the machine for the one that it waits for.

        No other pass may run between `offer` and this, so neither awaits.
        """
        if not self._crowds:
            return
        s = Situation.at(subject.intent, world, self._clock.now())
        for queueing, crowd in self._crowds_of(subject):
            if taken(plan) is queueing:
                crowd.begin(subject.key, _reserved_until(s, queueing))
            elif awaited(plan) is queueing:
                crowd.wait(QueuePlace(rank(s, queueing), subject.key), _ahead(world, queueing))
            else:
                crowd.leave(subject.key)

    def observed(self, subject: Subject, s: Situation, plan: Plan, outcome: Outcome) -> datetime | None:
        """What a pass has left: the machine is on the way, or it is not.

        Returns until when it counts at most: then another pass wakes the next, whatever keeps this machine.
        """
        if outcome.throttled or outcome.interrupted:
            return None  # it goes on soon, and keeps its turn
        counts: datetime | None = None
        for queueing, crowd in self._crowds_of(subject):
            until = _until(s, queueing, plan.shutdown)
            if until is not None:
                crowd.begin(subject.key, until)
            else:
                crowd.end(subject.key)
                self._wake_next(crowd)  # before the report, which the next one need not wait for
            counts = earliest(counts, until)
        return counts

    def failed(self, key: Key) -> None:
        """A pass ended before its decision: until it is repeated, the machine does not hold up those behind it."""
        for crowd in self._crowds_around(key):
            crowd.leave(key)

    def finished(self, key: Key) -> None:
        """A pass is over: wakes those whose turn it is now."""
        for crowd in self._crowds_around(key):
            self._wake_next(crowd)

    # What changes the crowds besides

    def forget(self, key: Key) -> None:
        """An object is gone, or belongs to another replica now."""
        for crowd in self._crowds_around(key):
            crowd.leave(key)
            crowd.end(key)
            self._wake_next(crowd)
        self._clusters.pop(key, None)

    def shard_acquired(self, number: int) -> None:
        """Another replica acted for this shard: its crowds are made from the caches again."""
        self._crowds = {name: crowd for name, crowd in self._crowds.items() if name.shard != number}

    def waiting(self, queueing: Queueing) -> int:
        """How many machines wait."""
        return sum(crowd.waiting for name, crowd in self._crowds.items() if name.queueing is queueing)

    def under_way(self, queueing: Queueing) -> int:
        """How many machines of Clusters with a limit are on the way."""
        now = self._clock.now()
        return sum(crowd.under_way(now) for name, crowd in self._crowds.items() if name.queueing is queueing)

    def _check_annotations(self, subject: Subject, world: World) -> None:
        """Logs once that an annotation of a Cluster is ignored: its owner believes that there is a limit."""
        if world.cluster is None or subject.cluster is None:
            return
        for queueing, name in ANNOTATIONS.items():
            text, known = world.cluster.annotations.get(name), (subject.cluster, queueing)
            if text is None or read_limit(text) is not None:
                self._unusable.pop(known, None)
            elif self._unusable.get(known) != text:
                self._unusable[known] = text
                log.warning("not a number; the setting applies", cluster=str(subject.cluster), annotation=name)

    def _turn(self, subject: Subject, s: Situation, queueing: Queueing) -> Turn | None:
        name = self._name(subject, queueing)
        limit = self._options.limit(queueing, s.world)
        if name is None:
            return None
        if not limit:
            self._crowds.pop(name, None)
            return None
        crowd = self._crowds.get(name) or self._made(name)
        crowd.limit = limit
        crowd.share = -(-limit // self._options.shards)
        return crowd.turn(QueuePlace(rank(s, queueing), subject.key), s.now)

    def _name(self, subject: Subject, queueing: Queueing) -> CrowdId | None:
        cluster = subject.cluster
        return CrowdId(cluster, self._options.shard_number(subject.key), queueing) if cluster else None

    def _crowds_of(self, subject: Subject) -> Iterator[tuple[Queueing, Crowd]]:
        """The crowds of an object's Cluster; it leaves those of another, if it has been moved."""
        cluster, before = subject.cluster, self._clusters.get(subject.key)
        if before is not None and before != cluster:
            self.forget(subject.key)
        for queueing in Queueing:
            name = self._name(subject, queueing)
            crowd = self._crowds.get(name) if name else None
            if crowd is not None and cluster is not None:
                self._clusters[subject.key] = cluster
                yield queueing, crowd

    def _crowds_around(self, key: Key) -> Iterator[Crowd]:
        cluster = self._clusters.get(key)
        if cluster is None:
            return
        number = self._options.shard_number(key)
        for queueing in Queueing:
            crowd = self._crowds.get(CrowdId(cluster, number, queueing))
            if crowd is not None:
                yield crowd

    def _wake_next(self, crowd: Crowd) -> None:
        for key in crowd.next(self._clock.now()):
            self._wake(key)

    # From the caches

    def _made(self, name: CrowdId) -> Crowd:
        """A crowd with the machines that are on the way by what the caches hold; their own passes correct that."""
        crowd = self._crowds[name] = Crowd(limit=0, share=0)
        capi, now = self._watches.capi, self._clock.now()
        for key in self._watches.scheduled.keys_by("cluster", name.cluster.name):
            mine = key.namespace == name.cluster.namespace and self._options.shard_number(key) == name.shard
            s = self._under_way(key, capi, now) if mine and capi else None
            until = _until(s, name.queueing, s.shutdown_started) if s else None
            if until is not None:
                self._clusters[key] = name.cluster
                crowd.begin(key, until)
        return crowd

    def _under_way(self, key: Key, capi: CapiInformers, now: datetime) -> Situation | None:
        """An object with a Machine that is not at rest; most are, and are not parsed."""
        raw = capi.machines.get(Key(key.namespace, f"{key.name}{names.MACHINE_SUFFIX}"))
        stored = self._watches.scheduled.get(key)
        if raw is None or stored is None or _is_at_rest(stored.get("status"), raw["metadata"]["uid"]):
            return None
        subject = self._subject(key)
        if subject is None:
            return None
        # Only the Machine is looked at; the others count neither as present nor as gone.
        world = World(subject.me, subject.status, capi.contract, cluster=None, unreadable=_UNREAD)
        world = views.with_child(world, Role.MACHINE, capi.machines.resource, raw)
        return Situation.at(subject.intent, world, now)


def _is_at_rest(status: object, machine_uid: str) -> bool:
    match status:
        case {"machineRef": {"uid": uid}, "firstReadyTime": str(), **rest}:
            return bool(uid == machine_uid) and "shutdownStartedAt" not in rest
        case _:
            return False


def _until(s: Situation, queueing: Queueing, shutdown: datetime | None) -> datetime | None:
    return provisioning_until(s) if queueing is Queueing.PROVISIONING else draining_until(s, shutdown)


def _reserved_until(s: Situation, queueing: Queueing) -> datetime:
    """For a pass that has only begun: if it fails halfway, the turn is not lost for ever."""
    if queueing is Queueing.DRAINING:
        return s.now + s.intent.grace
    return s.now + (s.intent.spec.provisioning_timeout if s.intent.spec else DEFAULT_PROVISIONING_TIMEOUT)


def _ahead(world: World, queueing: Queueing) -> int:
    turn = world.turns.provisioning if queueing is Queueing.PROVISIONING else world.turns.draining
    return turn.ahead if turn else 0
