"""When the next pass over an object is due, unless a watch event comes first; a pure function of what a pass found."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from crds.status import Phase
from service.decide import removal
from service.decide.outcome import Outcome
from service.decide.plan import Delete, Plan, earliest
from service.decide.visibility import unreadable_message
from service.decide.world import World

EMERGENCY_PAUSE: Final = timedelta(seconds=2)
"""The owner of a reclaimed host waits for it: failures there are retried at this pace, without back-off."""
TURN_PAUSE: Final = timedelta(seconds=2)
"""A wait for a turn at a provider that lasts so long is reported in the status; a free slot wakes the object before."""


class BackoffKind(Enum):
    """Which back-off delays the next pass: each counts the passes that ended so in a row."""

    CONFLICT = auto()
    """An object changed between observation and write: from a tenth of a second."""
    FAILURE = auto()
    """Something failed: from half a minute."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """When an object is due again; the earliest of all that is set counts."""

    at: datetime | None = None
    """On the schedule's clock."""
    after: timedelta | None = None
    """In real time."""
    backoff: BackoffKind | None = None
    urgent: bool = False
    """Due now, ahead of everything else that is due in its namespace."""
    priority: int | None = None
    """Which of several objects that are due at once goes first; None leaves it as it is."""
    failure: str | None = None
    """What failed, for the log."""

    def no_later_than(self, instant: datetime | None) -> "Requeue":
        """The same, but due at `instant` at the latest: no back-off may reach beyond a boundary of the schedule."""
        return replace(self, at=earliest(self.at, instant))


def failed(message: str, pause: timedelta | None, at: datetime | None = None) -> Requeue:
    """After a failure: in `pause` if that is known, such as by Retry-After, else by back-off."""
    return Requeue(at=at, after=pause, backoff=None if pause else BackoffKind.FAILURE, failure=message)


def requeue(world: World, plan: Plan, outcome: Outcome, now: datetime) -> Requeue:
    """After a pass that has stored its report; `world` is how the pass left it."""
    if outcome.interrupted:
        found = Requeue(backoff=BackoffKind.CONFLICT)
    elif outcome.failure is not None:
        found = failed(outcome.failure.message, outcome.failure.retry_after or failure_pause(plan))
    elif outcome.throttled is not None and not outcome.throttled.slow:
        found = Requeue(after=TURN_PAUSE)
    else:
        found = _unfinished(plan, outcome, now)
    after = _earliest(found.after, plan.agent_requeue_after)
    return _unwatched(replace(found, after=after), world, plan, outcome, now).no_later_than(plan.requeue_at)


def report_failed(plan: Plan, message: str, retry_after: timedelta | None) -> Requeue:
    """After a pass whose report the API server did not store for want of an answer."""
    return failed(message, retry_after or _emergency(plan), plan.requeue_at)


def failure_pause(plan: Plan) -> timedelta | None:
    """How soon a failed action is tried again; a drain and an emergency do not wait for a back-off."""
    draining = plan.drain is not None and not plan.drain.done
    return _emergency(plan) or plan.requeue_after or (removal.RETRY_PAUSE if draining else None)


def _emergency(plan: Plan) -> timedelta | None:
    return EMERGENCY_PAUSE if plan.phase is Phase.EMERGENCY_REMOVE else None


def _unfinished(plan: Plan, outcome: Outcome, now: datetime) -> Requeue:
    """Nothing failed: what the plan asks for, the refused evictions, and what was left for later."""
    # A drain does not wait for what has failed for hours, so the back-off comes on top of the pauses.
    backoff = BackoffKind.FAILURE if outcome.postponed else None
    if plan.requeue_after == timedelta(0):
        return Requeue(at=now, backoff=backoff, urgent=_emergency(plan) is not None)
    after = _earliest(plan.requeue_after, *(blocker.retry_after for blocker in outcome.blockers))
    return Requeue(after=after, backoff=backoff)


def _unwatched(found: Requeue, world: World, plan: Plan, outcome: Outcome, now: datetime) -> Requeue:
    """For what no watch reports."""
    if found.failure is not None:
        return found
    if _deleted_at_once(world, outcome):
        return found.no_later_than(now)
    if found.backoff is BackoffKind.CONFLICT:
        return found
    if world.unreadable and plan.requeue_after is None:
        return replace(found, backoff=BackoffKind.FAILURE, failure=unreadable_message(world))
    if plan.backoff:
        return replace(found, backoff=BackoffKind.FAILURE, failure=plan.message)
    return found


def _deleted_at_once(world: World, outcome: Outcome) -> bool:
    """Whether an object that we deleted is gone already: no watch event follows, and the next step is possible."""
    return any(isinstance(action, Delete) and world.child(action.role) is None for action in outcome.done)


def _earliest(*pauses: timedelta | None) -> timedelta | None:
    return min((pause for pause in pauses if pause is not None), default=None)
