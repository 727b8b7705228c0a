"""Updates the metrics after a pass, such as how late it was after the boundary of the window that caused it."""

from datetime import datetime, timedelta
from typing import Final

from prometheus_client import Histogram

from crds.history import ServiceRecord
from crds.status import Phase, ScheduledMachineStatus
from service import metrics
from service.clock import Clock
from service.decide.condition_types import ConditionType
from service.decide.outcome import Outcome
from service.decide.plan import Action, Create, Delete, Evict, Plan, RecordReclaim, RecordShutdown
from service.decide.reasons import DRY_RUN_REASONS
from service.decide.world import Role

ON_TIME: Final = timedelta(minutes=5)
"""A machine that is requested longer after the opening is late for another reason: an edit, or an outage."""

metrics.start_at_zero(metrics.DRY_RUNS, *DRY_RUN_REASONS)


def measure(
    before: ScheduledMachineStatus, after: ScheduledMachineStatus, plan: Plan, outcome: Outcome, clock: Clock
) -> None:
    """Measures one pass; `before` still holds the boundaries that the status announced."""
    now = clock.now()
    _time_to_ready(before, after, clock)
    if before.history != after.history:
        _services(before, after, clock)
    _dry_run(before, after)
    for action in outcome.done:
        _count(action, plan, outcome)
        match action:
            case _ if before.waiting_since is not None:
                continue  # it waited for its turn, and is not late
            case Create(role=Role.MACHINE):
                _lateness(metrics.ACTIVATION_LATENESS, before.next_activation, now, clock)
            case RecordShutdown(started_at=started) if started is not None:
                _lateness(metrics.REMOVAL_LATENESS, before.next_cleanup, now, clock)


def _lateness(histogram: Histogram, boundary: datetime | None, now: datetime, clock: Clock) -> None:
    """Measures nothing if the clock did not cause the pass, but an edit or a new object."""
    if boundary is not None and boundary <= now:
        histogram.observe(clock.real_seconds(now - boundary))


def _time_to_ready(before: ScheduledMachineStatus, after: ScheduledMachineStatus, clock: Clock) -> None:
    """Once for each Machine; one that was Ready before the status had `firstReadyTime` has been so for a while."""
    created = after.last_scheduled_time
    ready = after.first_ready_time
    host = after.infrastructure_ref
    was_ready = any(one.type == "Ready" and one.status == "True" for one in before.conditions)
    if was_ready or ready == before.first_ready_time or created is None or ready is None or host is None:
        return
    seconds = clock.real_seconds(max(ready - created, timedelta(0)))
    metrics.TIME_TO_READY.labels(metrics.kind_label(host.kind)).observe(seconds)


def _services(before: ScheduledMachineStatus, after: ScheduledMachineStatus, clock: Clock) -> None:
    """What the history says now and did not say before."""
    known = {record.requested: record for record in before.history.records}
    for record in after.history.records:
        was = known.get(record.requested)
        if record.ready is not None and (was is None or was.ready is None):
            _ready_lateness(record, record.ready, clock)
        if record.gone is not None and (was is None or was.gone is None):
            _ended(record, record.gone, clock)


def _ready_lateness(record: ServiceRecord, ready: datetime, clock: Clock) -> None:
    opened = record.opened
    if opened is not None and record.requested <= opened + ON_TIME:
        metrics.READY_LATENESS.observe(clock.real_seconds(max(ready - opened, timedelta(0))))


def _ended(record: ServiceRecord, gone: datetime, clock: Clock) -> None:
    if record.closed is not None:
        metrics.GONE_LATENESS.observe(clock.real_seconds(max(gone - record.closed, timedelta(0))))
    if record.ready is not None:
        served = max((record.shutdown or gone) - record.ready, timedelta(0))
        metrics.SERVED_SECONDS.inc(clock.real_seconds(served))


def _dry_run(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> None:
    """Counts what a dry run begins to report."""
    reported, known = _dry_run_reason(after), _dry_run_reason(before)
    if reported != known and reported in DRY_RUN_REASONS:
        metrics.DRY_RUNS.labels(reported).inc()


def _dry_run_reason(status: ScheduledMachineStatus) -> str | None:
    return next((one.reason for one in status.conditions if one.type == ConditionType.DRY_RUN), None)


def _count(action: Action, plan: Plan, outcome: Outcome) -> None:
    match action:
        case Delete(role=Role.MACHINE, undrained=undrained):
            metrics.DRAINS.labels(_drain_result(plan, undrained=undrained)).inc()
            if plan.phase is Phase.TERMINATED:
                metrics.KILL_SWITCHES.inc()
        case RecordReclaim():
            metrics.EMERGENCY_RECLAIMS.inc()
        case Evict(pods=pods):
            metrics.EVICTIONS.labels("blocked").inc(len(outcome.blockers))
            metrics.EVICTIONS.labels("accepted").inc(len(pods) - len(outcome.blockers))


def _drain_result(plan: Plan, *, undrained: bool) -> str:
    if undrained:
        return "timed_out"
    return "completed" if plan.drain is not None and plan.drain.done else "skipped"
