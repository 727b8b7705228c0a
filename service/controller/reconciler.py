"""The spine: observe, decide, act, report, for one ScheduledMachine at a time. Called by the workers."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from crds.status import Phase, ScheduledMachineStatus
from service import metrics
from service.act.events import EventRecorder
from service.act.measure import measure
from service.act.perform import Performer
from service.act.report import status_changes
from service.clock import Clock
from service.decide import removal
from service.decide.events import new_events
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.plan import Delete, Event, Plan, ReleaseFinalizer
from service.decide.precedence import precedence
from service.decide.reasons import Reason
from service.decide.report import report, report_failed_read, should_defer
from service.decide.situation import Situation
from service.decide.visibility import unreadable_message
from service.decide.world import Problem, World
from service.kube.errors import Conflict, KubeError, NotFound, Rejected, Unavailable
from service.observe.observer import Observer
from service.observe.subject import Subject
from service.runtime.backoff import Backoff, Failures
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from service.runtime.queue import URGENT, Queue
from service.runtime.slots import SLOW_SECONDS

CONFLICT_PAUSES: Final = Backoff(base=0.1, cap=30.0)
"""Somebody was quicker: look again at once; where that never ends, such as behind a webhook, ever less often."""
WAITING: Final = "waiting"
"""The result of a pass that goes on when a provider has answered others."""
TELL_SECONDS: Final = 2 * SLOW_SECONDS
"""A wait for a provider that lasts so long is told in the status."""
EMERGENCY_PAUSE: Final = timedelta(seconds=2)
"""Somebody waits for his machine: no back-off."""

log = structlog.get_logger(__name__)


class TroubleError(Exception):
    """An action failed; it has been reported, and the object is to be looked at again later."""

    def __init__(self, message: str, retry_after: timedelta | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Reconciler:
    """Brings one ScheduledMachine closer to what its spec and the time ask for."""

    def __init__(
        self, queue: Queue, observer: Observer, performer: Performer, events: EventRecorder, clock: Clock
    ) -> None:
        self._queue = queue
        self._observer = observer
        self._performer = performer
        self._events = events
        self._clock = clock
        self._conflicts = Failures(CONFLICT_PAUSES)
        self.echoes = OwnWrites(queue.add)
        observer.on_written = lambda key, raw: self.echoes.wrote(key, raw["metadata"]["resourceVersion"])
        self.shown_shard: Callable[[Key], str | None] = lambda _key: None
        self.on_finished: Callable[[Key, bool], None] = lambda _key, _waits: None
        """Told when a pass is over, or an object gone, and whether the rest of the pass waits for its turn."""

    async def __call__(self, key: Key) -> None:
        """One pass over one object."""
        started, result = time.perf_counter(), "error"
        self.echoes.begin(key)
        with structlog.contextvars.bound_contextvars(object=str(key)):
            try:
                result = await self._pass(key)
            finally:
                self.echoes.end(key)
                self.on_finished(key, result == WAITING)
                metrics.RECONCILE_DURATION.observe(time.perf_counter() - started)
                metrics.RECONCILES.labels(result).inc()

    async def _pass(self, key: Key) -> str:
        subject = self._observer.subject(key)
        if subject is None:
            self._queue.discard(key)
            self.forget(key)  # also what a pass took hold of that was under way when it went
            return "gone"
        # Before anything can go wrong: a back-off must not reach beyond a boundary.
        self._remind(key, subject.intent.next_boundary(self._clock.now()))
        world = await self._observe(subject)
        if self._observer.is_superseded(subject):
            # To look takes long if a workload cluster is slow: what was called off meanwhile must not be done.
            self._queue.add(key)
            return "unchanged"
        now = self._clock.now()
        plan = decide(subject.intent, world, now)
        self._remind(key, plan.requeue_at)
        metrics.SCHEDULE_EVALUATIONS.labels(str(subject.intent.covers(now)).lower()).inc()
        world, outcome = await self._performer.perform(subject, world, plan)
        try:
            await self._report(subject, world, plan, outcome, now)
        except Unavailable as error:
            asked = timedelta(seconds=error.retry_after) if error.retry_after else None
            raise TroubleError(error.message, asked or _hurry(plan)) from error
        priority = precedence(subject.intent.priority, has_machine=bool(world.children))
        self._remind(key, plan.requeue_at, priority)
        self._look_again(key, plan, outcome)
        self._look_for_what_nobody_tells(key, world, plan, outcome)
        if outcome.throttled is not None:
            return WAITING
        return "changed" if outcome.done else "unchanged"

    async def _observe(self, subject: Subject) -> World:
        """Looks; what a human must mend before we can see, such as a missing permission, is said in the status."""
        try:
            return await self._observer.observe(subject)
        except Rejected as error:
            failure = Problem(reason=Reason.for_error(type(error)), message=error.message)
            after = report_failed_read(subject.status, failure, subject.me.generation, self._clock.now())
            changes = status_changes(subject.status, after)
            if changes:
                await self._observer.write_status(subject, changes)
                self._events.record(subject.me, Event(failure.reason, failure.message))
            raise

    async def _report(self, subject: Subject, world: World, plan: Plan, outcome: Outcome, now: datetime) -> None:
        before, situation = subject.status, Situation.at(subject.intent, world, now)
        if should_defer(situation, plan, outcome) or _passes_unnoticed(before, outcome):
            return
        told = report(situation, plan, outcome)
        after = told.model_copy(update={"shard": self.shown_shard(subject.key)})
        changes = status_changes(before, after)
        let_go = outcome.did(ReleaseFinalizer) and not subject.finalizers
        if changes and not let_go:  # after that there is nothing left to write to, unless others hold it
            try:
                await self._observer.write_status(subject, changes)
            except NotFound:
                if not outcome.did(ReleaseFinalizer):
                    return  # it is gone, and with it whoever would read what we have to tell
            except Conflict:
                # Edited meanwhile: what was done is told, the status and what it tells are worked out anew.
                self._tell(subject, before, before, plan, outcome)
                await self._observer.catch_up(subject)
                self._queue.add(subject.key)
                return
            except KubeError:
                self._tell(subject, before, before, plan, outcome)
                raise
        self._tell(subject, before, after, plan, outcome)

    def _tell(
        self,
        subject: Subject,
        before: ScheduledMachineStatus,
        after: ScheduledMachineStatus,
        plan: Plan,
        outcome: Outcome,
    ) -> None:
        for notice in new_events(before, after, plan, outcome):
            self._events.record(subject.me, notice)
            log.info(notice.message, reason=notice.reason, warning=notice.warning)
        if before.phase != after.phase:
            log.info("phase changed", before=before.phase, after=after.phase, reason=plan.reason)
        measure(before, after, plan, outcome, self._clock)

    def _remind(self, key: Key, due: datetime | None, priority: int | None = None) -> None:
        if due is not None:
            self._queue.add(key, due=due, priority=priority)

    def _look_again(self, key: Key, plan: Plan, outcome: Outcome) -> None:
        if plan.agent_requeue_after is not None:
            a_second = self._clock.real_seconds(timedelta(seconds=1))
            self._queue.add(key, due=self._clock.now() + plan.agent_requeue_after / a_second)
        if not outcome.interrupted:
            self._conflicts.succeeded(key)
        if outcome.interrupted:
            self._queue.retry(key, after=self._conflicts.failed(key))
        elif outcome.failure is not None:
            # A drain does not wait for a back-off.
            soon = outcome.failure.retry_after or _hurry(plan) or plan.requeue_after or _drain_pause(plan)
            raise TroubleError(outcome.failure.message, soon)
        elif outcome.throttled is not None and not outcome.throttled.slow:
            self._queue.retry(key, after=TELL_SECONDS)  # a slot that is free wakes it before; else the user is told
        else:
            self._look_soon(key, plan, outcome)

    def _look_soon(self, key: Key, plan: Plan, outcome: Outcome) -> None:
        if outcome.postponed:
            self._queue.retry(key)  # besides: a drain does not wait for what has failed for hours
        if plan.requeue_after == timedelta(0):
            self._queue.add(key, due=URGENT if _hurry(plan) else None)
            return
        for pause in (plan.requeue_after, *(blocker.retry_after for blocker in outcome.blockers)):
            if pause is not None:
                self._queue.retry(key, after=pause.total_seconds())

    def _look_for_what_nobody_tells(self, key: Key, world: World, plan: Plan, outcome: Outcome) -> None:
        if _vanished(world, outcome):
            self._queue.add(key)
        elif world.unreadable and plan.requeue_after is None:
            raise TroubleError(unreadable_message(world), None)
        elif plan.backoff:
            raise TroubleError(plan.message, None)

    def forget(self, key: Key) -> None:
        """A ScheduledMachine is gone, or somebody else's now."""
        self._conflicts.succeeded(key)
        self.on_finished(key, False)  # noqa: FBT003 - as for every listener
        self._observer.forget(key)


def _passes_unnoticed(before: ScheduledMachineStatus, outcome: Outcome) -> bool:
    """Whether a wait is too short to be worth a write, or the status says already what is wrong with the provider."""
    waits = outcome.throttled
    return waits is not None and not outcome.done and (not waits.slow or before.phase is Phase.ERROR)


def _hurry(plan: Plan) -> timedelta | None:
    return EMERGENCY_PAUSE if plan.phase is Phase.EMERGENCY_REMOVE else None


def _drain_pause(plan: Plan) -> timedelta | None:
    return removal.RETRY_PAUSE if plan.drain is not None and not plan.drain.done else None


def _vanished(world: World, outcome: Outcome) -> bool:
    """Whether something that we deleted went at once: our own writes wake nobody, and what is next can be done now."""
    return any(isinstance(action, Delete) and world.child(action.role) is None for action in outcome.done)
