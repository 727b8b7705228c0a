"""The spine: observe, decide, act, report and requeue, for one ScheduledMachine at a time. Called by the workers."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from crds.status import Phase, ScheduledMachineStatus
from service import metrics
from service.act.events import EventRecorder
from service.act.measure import measure
from service.act.perform import Performer
from service.act.report import status_changes
from service.act.writer import Writer
from service.clock import Clock
from service.decide.closing import with_closes_at
from service.decide.events import new_events
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.plan import Event, Plan, ReleaseFinalizer
from service.decide.precedence import precedence
from service.decide.reasons import Reason
from service.decide.report import report, report_failed_read, should_defer
from service.decide.requeue import Requeue, failed, report_failed, requeue
from service.decide.situation import Situation
from service.decide.world import Problem, World
from service.kube.errors import Conflict, KubeError, NotFound, Rejected, Unavailable
from service.notify.notifier import Notifier
from service.objects.subject import Subject
from service.observe.crowds import Crowds
from service.observe.observer import Observer
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from service.runtime.slots import Slots
from service.sharding.fence import ShardNotHeldError

log = structlog.get_logger(__name__)


class Pass(NamedTuple):
    """The result of one pass: a label for the metrics, and when the object is due again; None if it is gone."""

    result: str
    requeue: Requeue | None


class Reported(NamedTuple):
    """Whether the status is stored, else the object was edited meanwhile; and when a notice about it is due."""

    stored: bool
    look_again: datetime | None


class Actors(NamedTuple):
    """The parts that carry out the plan of a pass."""

    performer: Performer
    writer: Writer
    events: EventRecorder
    own_writes: OwnWrites
    slots: Slots
    crowds: Crowds
    notifier: Notifier


class Reconciler:
    """Brings one ScheduledMachine closer to what its spec asks for at the time."""

    def __init__(
        self, observer: Observer, actors: Actors, clock: Clock, shown_shard: Callable[[Key], str | None]
    ) -> None:
        self._observer = observer
        self._performer = actors.performer
        self._writer = actors.writer
        self._events = actors.events
        self._own_writes = actors.own_writes
        self._slots = actors.slots
        self._crowds = actors.crowds
        self._notifier = actors.notifier
        self._clock = clock
        self._shown_shard = shown_shard

    async def __call__(self, key: Key) -> Requeue | None:
        """One pass over one object; when it is due again, or None if it is gone."""
        started = time.perf_counter()
        result = "error"
        self._own_writes.begin(key)
        with structlog.contextvars.bound_contextvars(object=str(key)):
            try:
                result, found = await self._pass(key)
            finally:
                self._own_writes.end(key)
                self._slots.finished(key, waits=result == "waiting")
                self._crowds.finished(key)
                metrics.RECONCILE_DURATION.observe(time.perf_counter() - started)
                metrics.RECONCILES.labels(result).inc()
        return found

    async def _pass(self, key: Key) -> Pass:
        subject = self._observer.subject(key)
        if subject is None:
            return Pass("gone", None)
        boundary = subject.intent.effective.look_again(self._clock.now())
        try:
            done = await self._reconcile(subject)
        except KubeError as error:
            done = Pass("error", failed(error.message, _pause(error)))
        except ShardNotHeldError:
            raise
        except Exception as error:
            log.exception("a bug in handling this object")
            done = Pass("error", failed(repr(error), None))
        found = done.requeue or Requeue()
        return Pass(done.result, found.no_later_than(boundary))

    async def _reconcile(self, subject: Subject) -> Pass:
        world = await self._observe(subject)
        now = self._clock.now()
        if self._writer.is_superseded(subject):
            # Observing takes long if a workload cluster is slow: the user may have edited the object meanwhile.
            return Pass("unchanged", Requeue(at=now))
        world = self._crowds.offer(subject, world)
        situation = Situation.at(subject.intent, world, now)
        plan = with_closes_at(decide(subject.intent, world, now), situation)
        self._crowds.settle(subject, world, plan)  # without an await since the offer: another pass may want the turn
        metrics.SCHEDULE_EVALUATIONS.labels(str(subject.intent.covers(now)).lower()).inc()
        try:
            before = world
            world, outcome = await self._performer.perform(subject, world, plan)
            if world is not before:
                situation = Situation.at(subject.intent, world, now)
            counts_until = self._crowds.observed(subject, situation, plan, outcome)
            stored, look_again = await self._report(subject, situation, plan, outcome)
        except Unavailable as error:
            return Pass("error", report_failed(plan, error.message, _pause(error)))
        except KubeError as error:
            return Pass("error", failed(error.message, _pause(error), plan.requeue_at))
        found = requeue(world, plan, outcome, now).no_later_than(look_again).no_later_than(counts_until)
        if not stored:
            found = found.no_later_than(now)
        priority = precedence(subject.intent.priority, has_machine=bool(world.children))
        return Pass(_result(outcome, found), replace(found, priority=priority))

    async def _observe(self, subject: Subject) -> World:
        """Observes; an error that a person must correct, such as a missing permission, goes into the status."""
        try:
            return await self._observer.observe(subject)
        except Exception as error:
            self._crowds.failed(subject.key)
            if isinstance(error, Rejected):
                await self._report_rejected(subject, error)
            raise

    async def _report_rejected(self, subject: Subject, error: Rejected) -> None:
        problem = Problem(reason=Reason.for_error(type(error)), message=error.message)
        after = report_failed_read(subject.status, problem, subject.me.generation, self._clock.now())
        changes = status_changes(subject.status, after)
        if changes:
            await self._writer.write_status(subject, changes)
            self._events.record(subject.me, Event(problem.reason, problem.message))

    async def _report(self, subject: Subject, situation: Situation, plan: Plan, outcome: Outcome) -> Reported:
        """Stores the status and records Events and notices."""
        before = subject.status
        if should_defer(situation, plan, outcome) or _is_not_worth_a_write(before, outcome):
            return Reported(stored=True, look_again=self._notifier.announce(situation, before))
        after = report(situation, plan, outcome).model_copy(update={"shard": self._shown_shard(subject.key)})
        try:
            stored = await self._store(subject, after, outcome)
        except KubeError as error:
            self._record(situation, before, before, plan, outcome)
            if not isinstance(error, Conflict):
                raise
            # The user edited it meanwhile: the actions are recorded now, the next pass writes the status.
            await self._writer.refresh(subject)
            return Reported(stored=False, look_again=None)
        if stored:
            self._record(situation, before, after, plan, outcome)
        return Reported(stored=True, look_again=self._notifier.announce(situation, after))

    async def _store(self, subject: Subject, after: ScheduledMachineStatus, outcome: Outcome) -> bool:
        """Writes the status if it changed; False if the object is gone, so that no Events are recorded."""
        changes = status_changes(subject.status, after)
        released = outcome.did(ReleaseFinalizer)
        gone = released and not subject.finalizers
        if not changes or gone:
            return True
        try:
            await self._writer.write_status(subject, changes)
        except NotFound:
            return released
        return True

    def _record(
        self,
        situation: Situation,
        before: ScheduledMachineStatus,
        after: ScheduledMachineStatus,
        plan: Plan,
        outcome: Outcome,
    ) -> None:
        """Records Events, notices, log lines and metrics of one pass."""
        events = new_events(before, after, plan, outcome)
        for event in events:
            self._events.record(situation.world.me, event)
            log.info(event.message, reason=event.reason, warning=event.warning)
        self._notifier.record(situation, after, events)
        if before.phase != after.phase:
            log.info("phase changed", before=before.phase, after=after.phase, reason=plan.reason)
        measure(before, after, plan, outcome, self._clock)


def _result(outcome: Outcome, found: Requeue) -> str:
    """The label of a pass in the metrics."""
    if found.failure is not None:
        return "error"
    if outcome.throttled is not None:
        return "waiting"
    return "changed" if outcome.done else "unchanged"


def _is_not_worth_a_write(before: ScheduledMachineStatus, outcome: Outcome) -> bool:
    """Whether the pass only waits for a slot: for a short time, or while the status reports the provider's error."""
    waits = outcome.throttled
    if waits is None or outcome.done:
        return False
    return not waits.slow or before.phase is Phase.ERROR


def _pause(error: KubeError) -> timedelta | None:
    return timedelta(seconds=error.retry_after) if error.retry_after else None
