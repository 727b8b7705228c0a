"""Counts what a pass did; how late it was against the boundary that called for it is the figure users care for."""

from datetime import datetime, timedelta

from prometheus_client import Histogram

from crds.status import Phase, ScheduledMachineStatus
from service import metrics
from service.clock import Clock
from service.decide.outcome import Outcome
from service.decide.plan import Action, Create, Delete, Evict, Plan, RecordReclaim, RecordShutdown
from service.decide.world import Role


def measure(
    before: ScheduledMachineStatus, after: ScheduledMachineStatus, plan: Plan, outcome: Outcome, clock: Clock
) -> None:
    """Takes down one pass; `before` still holds the boundaries that were announced."""
    now = clock.now()
    _time_to_ready(before, after, clock)
    for action in outcome.done:
        _count(action, plan, outcome)
        match action:
            case Create(role=Role.MACHINE):
                _lateness(metrics.ACTIVATION_LATENESS, before.next_activation, now, clock)
            case RecordShutdown(started_at=started) if started is not None:
                _lateness(metrics.REMOVAL_LATENESS, before.next_cleanup, now, clock)


def _lateness(histogram: Histogram, boundary: datetime | None, now: datetime, clock: Clock) -> None:
    """Nothing to measure where something else than the clock called, such as an edit or a new object."""
    if boundary is not None and boundary <= now:
        histogram.observe(clock.real_seconds(now - boundary))


def _time_to_ready(before: ScheduledMachineStatus, after: ScheduledMachineStatus, clock: Clock) -> None:
    """Once for each Machine; one that was Ready before this was written down has been so for a while."""
    made, ready, host = after.last_scheduled_time, after.first_ready_time, after.infrastructure_ref
    was_ready = any(one.type == "Ready" and one.status == "True" for one in before.conditions)
    if was_ready or ready == before.first_ready_time or made is None or ready is None or host is None:
        return
    seconds = clock.real_seconds(max(ready - made, timedelta(0)))
    metrics.TIME_TO_READY.labels(metrics.kind_label(host.kind)).observe(seconds)


def _count(action: Action, plan: Plan, outcome: Outcome) -> None:
    match action:
        case Delete(role=Role.MACHINE, undrained=undrained):
            drained = plan.drain is not None and plan.drain.done
            metrics.DRAINS.labels("timed_out" if undrained else "completed" if drained else "skipped").inc()
            if plan.phase is Phase.TERMINATED:
                metrics.KILL_SWITCHES.inc()
        case RecordReclaim():
            metrics.EMERGENCY_RECLAIMS.inc()
        case Evict(pods=pods):
            metrics.EVICTIONS.labels("blocked").inc(len(outcome.blockers))
            metrics.EVICTIONS.labels("accepted").inc(len(pods) - len(outcome.blockers))
