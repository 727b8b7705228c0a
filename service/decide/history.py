"""The record of the services of a machine in its status.

It changes only with something else that the status reports, so it never causes a status write of its own.
"""

from datetime import datetime

from crds.history import EndReason, History, ServiceRecord
from crds.overrides import OverrideState
from crds.status import Phase, ScheduledMachineStatus
from service.decide.openings import latest_window
from service.decide.outcome import Outcome
from service.decide.plan import Delete, Plan
from service.decide.readiness import is_new
from service.decide.reasons import Reason
from service.decide.situation import Situation, cluster_problem


def history_after(s: Situation, plan: Plan, outcome: Outcome, after: ScheduledMachineStatus) -> History:
    """The history with what this pass adds; `after` is the rest of the new status."""
    before = s.world.status
    known = before.history
    if _facts(before) == _facts(after):
        return known
    current = known.current
    if current is not None:
        over = after.machine_ref is None or is_new(s.world)
        known = known.replaced(_updated(current, s, plan, outcome, before if is_new(s.world) else after, over=over))
    return known.added(_begun(s, after)) if is_new(s.world) else known


def _facts(status: ScheduledMachineStatus) -> tuple[object, ...]:
    """What a record is made of; it can change only if one of these does."""
    uid = status.machine_ref.uid if status.machine_ref else None
    overridden = _overridden(status)
    return status.phase, status.machine_phase, uid, status.first_ready_time, status.shutdown_started_at, overridden


def _overridden(status: ScheduledMachineStatus) -> bool | None:
    return True if status.override is not None else None


def _begun(s: Situation, after: ScheduledMachineStatus) -> ServiceRecord:
    return ServiceRecord(
        opened=latest_window(s.world),
        requested=after.last_scheduled_time or s.now,
        ready=after.first_ready_time,
        shutdown=after.shutdown_started_at,
        overridden=_overridden(after),
    )


def _updated(
    record: ServiceRecord, s: Situation, plan: Plan, outcome: Outcome, status: ScheduledMachineStatus, *, over: bool
) -> ServiceRecord:
    shutdown = status.shutdown_started_at or (record.shutdown if over else None)
    ended = over or shutdown is not None
    reason = _reason(record, s, plan) if ended else None
    undrained = record.undrained or any(isinstance(action, Delete) and action.undrained for action in outcome.done)
    return ServiceRecord(
        opened=record.opened,
        requested=record.requested,
        ready=status.first_ready_time or record.ready,
        shutdown=shutdown,
        closed=_closed(record, s, reason) if ended else None,
        gone=s.now if over else None,
        reason=reason,
        undrained=True if undrained and ended else None,
        overridden=record.overridden or _overridden(status),
    )


def _reason(record: ServiceRecord, s: Situation, plan: Plan) -> EndReason:
    """Why the service ends; a kill switch or a reclaim cuts short what had begun for another reason."""
    if plan.phase is Phase.TERMINATED:
        return EndReason.KILL_SWITCH
    if plan.phase is Phase.EMERGENCY_REMOVE or plan.reclaimed:
        return EndReason.RECLAIMED
    return record.reason or _first_reason(s, plan)


def _first_reason(s: Situation, plan: Plan) -> EndReason:
    if plan.deleting:
        return EndReason.DELETED
    if cluster_problem(s) is not None:
        return EndReason.CLUSTER_GONE
    if plan.reason in (Reason.REMEDIATING, Reason.SPEC_EDITED):
        return EndReason.REPLACED
    if s.open or plan.phase not in (Phase.SHUTTING_DOWN, Phase.INACTIVE):
        return EndReason.MACHINE_DELETED
    override = s.effective.override(s.now)
    closed = override is not None and override.state is OverrideState.CLOSED
    return EndReason.OVERRIDE_CLOSED if closed else EndReason.WINDOW_CLOSED


def _closed(record: ServiceRecord, s: Situation, reason: EndReason | None) -> datetime | None:
    """The close that the status announced, with its lead; unknown if an edit closed the window."""
    announced = s.world.status.next_cleanup
    if record.shutdown is not None or reason is not EndReason.WINDOW_CLOSED:
        return record.closed
    return announced + s.effective.leads.stop if announced is not None and announced <= s.now else None
