"""The Events of one pass: one for each action that matters to users and for each change of the status."""

from collections.abc import Iterator, Mapping

from crds.status import Condition, ConditionStatus, MachinePhase, Phase, ScheduledMachineStatus
from service.decide.condition_types import ConditionType
from service.decide.outcome import Outcome
from service.decide.plan import (
    Action,
    ApplyTaints,
    Create,
    Delete,
    DisableSchedule,
    Event,
    Patch,
    Plan,
    RecordRemediation,
    RecordShutdown,
)
from service.decide.reasons import AnyReason, Reason, read_reason
from service.decide.world import Role


def new_events(
    before: ScheduledMachineStatus, after: ScheduledMachineStatus, plan: Plan, outcome: Outcome
) -> list[Event]:
    """The Events of one pass, in the order in which things happened."""
    return [
        *_schedule(before, after),
        *_override(before, after),
        *_drain(plan, outcome),
        *(event for action in outcome.done for event in _done(action, plan)),
        *_shutdown(before, after),
        *_phase(before, after, plan),
        *_reclaim(before, after, plan, outcome),
        *_conditions(before, after),
        *_problems(before, after, plan, outcome),
    ]


_SUSPENDED = (Phase.DISABLED, Phase.TERMINATED, Phase.EMERGENCY_REMOVE)
"""Phases in which the machine does not follow its schedule."""


def _schedule(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> Iterator[Event]:
    if after.phase in _SUSPENDED:
        return
    if after.in_schedule and not before.in_schedule:
        yield Event(Reason.SCHEDULE_ACTIVATED, "The window opened.")
    if before.in_schedule and after.in_schedule is False:
        yield Event(Reason.SCHEDULE_DEACTIVATED, "The window closed.")


def _override(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> Iterator[Event]:
    """When another override begins to decide, and when one ceases to."""
    old, new = before.override, after.override
    if old is not None and (new is None or new.name != old.name):
        yield Event(Reason.OVERRIDE_ENDED, f"ScheduleOverride {old.name} ({old.state}) is no longer in force.")
    if new is not None and (old is None or new.name != old.name):
        by = f", requested by {new.by}" if new.by else ""
        why = f": {new.reason}" if new.reason else "."
        until = f"{new.until:%Y-%m-%d %H:%M:%S} UTC"
        yield Event(
            Reason.OVERRIDE_BEGAN, f"ScheduleOverride {new.name} ({new.state}) is in force until {until}{by}{why}"
        )


def _done(action: Action, plan: Plan) -> Iterator[Event]:
    match action:
        case Create(role=Role.MACHINE, manifest=manifest):
            yield Event(
                Reason.MACHINE_CREATED,
                f"Created Machine {manifest['metadata']['name']} with its bootstrap and infrastructure objects.",
            )
        case Create(role=role, manifest=manifest):
            if plan.phase is not Phase.ACTIVE or not _creates_machine(plan):
                yield Event(Reason.OBJECT_CREATED, f"Created the missing {role} object {manifest['metadata']['name']}.")
        case Delete(role=Role.MACHINE, name=name, why=why):
            yield Event(Reason.MACHINE_DELETED, f"Deleting Machine {name}: {why}.")
        case RecordShutdown(started_at=started) if started is not None and plan.phase is Phase.SHUTTING_DOWN:
            yield Event(
                Reason.SHUTDOWN_STARTED,
                "Shutting down: draining the Node, if one has joined, then deleting the Machine.",
            )
        case RecordRemediation(count=count):
            yield Event(
                Reason.REMEDIATED, f"Replacing an unhealthy Machine, replacement number {count} in this window."
            )
        case ApplyTaints():
            yield Event(Reason.NODE_TAINTS_APPLIED, f"Wrote the taints of Node {action.node}.")
        case Patch(subresource="status", name=name):
            message = f"The MachineHealthCheck of Machine {name} succeeds again; the Machine stays."
            yield Event(Reason.REMEDIATION_CANCELLED, message)
        case Patch(why=why, role=role, name=name) if why != "deletion":
            yield Event(Reason.DRIFT_REPAIRED, f"Restored {why} of the {role} object {name}.")
        case _:
            return


def _drain(plan: Plan, outcome: Outcome) -> Iterator[Event]:
    for action in outcome.done:
        if isinstance(action, Delete) and action.undrained:
            yield Event(Reason.DRAIN_TIMED_OUT, "Not all pods left in time; the Machine is deleted anyway.")
        elif isinstance(action, Delete) and action.role is Role.MACHINE and plan.drain and plan.drain.done:
            yield Event(Reason.NODE_DRAINED, "All pods that must leave have left the Node.")


def _creates_machine(plan: Plan) -> bool:
    return any(isinstance(action, Create) and action.role is Role.MACHINE for action in plan.actions)


def _shutdown(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> Iterator[Event]:
    same_machine = before.machine_ref is not None and before.machine_ref == after.machine_ref
    ended = before.shutdown_started_at is not None and after.shutdown_started_at is None
    stays = same_machine and after.machine_phase not in (None, MachinePhase.DELETING)
    interrupted = any(condition.type == ConditionType.PAUSED for condition in after.conditions)
    if ended and stays and not interrupted and after.phase is not Phase.SHUTTING_DOWN:
        yield Event(Reason.SHUTDOWN_CANCELLED, "Cancelled the shutdown before the Machine was deleted.")
    if before.machine_ref and not after.machine_ref:
        yield Event(Reason.MACHINE_REMOVED, f"Machine {before.machine_ref.name} and its objects are gone.")


def _phase(before: ScheduledMachineStatus, after: ScheduledMachineStatus, plan: Plan) -> Iterator[Event]:
    if after.phase == before.phase:
        return
    if after.phase is Phase.DISABLED and before.phase is not Phase.EMERGENCY_REMOVE:
        yield Event(Reason.SCHEDULE_DISABLED, _disabled(after))
    if after.phase is Phase.TERMINATED:
        yield Event(Reason.KILL_SWITCH, "The kill switch is on; removing the machine at once.")
    if before.phase in _SUSPENDED and after.phase not in _SUSPENDED and not plan.deleting:
        yield Event(Reason.SCHEDULE_RESUMED, "The machine follows its schedule again.")


def _disabled(after: ScheduledMachineStatus) -> str:
    if after.machine_ref is None:
        return "The schedule is disabled."
    return f"The schedule is disabled; Machine {after.machine_ref.name} keeps running."


def _reclaim(
    before: ScheduledMachineStatus, after: ScheduledMachineStatus, plan: Plan, outcome: Outcome
) -> Iterator[Event]:
    """From what is stored rather than from what was done, so that a crash in between does not lose an Event."""
    # The kill switch outranks a reclaim: when it is off again, the reclaim goes on and is not a new one.
    goes_on = before.phase is Phase.TERMINATED and before.reclaim is not None
    if after.phase is Phase.EMERGENCY_REMOVE and before.phase is not Phase.EMERGENCY_REMOVE and not goes_on:
        yield Event(Reason.EMERGENCY_RECLAIM, plan.message)
    # A reclaim can be over before a status says that it disabled the schedule: the write of that status was lost.
    is_disabled = plan.reclaimed or (after.reclaim is not None and after.reclaim.disabled_at is not None)
    if is_disabled and not (before.reclaim and before.reclaim.disabled_at):
        yield Event(Reason.EMERGENCY_RECLAIM_DISABLED_SCHEDULE, _DISABLED)
    elif outcome.did(DisableSchedule) and before.reclaim and before.reclaim.disabled_at and not plan.reverted_by:
        yield Event(Reason.EMERGENCY_RECLAIM_DISABLED_SCHEDULE, _DISABLED_AGAIN)
    accepted = before.last_reclaim is not None and after.last_reclaim is None
    if plan.reverted_by and (accepted or outcome.did(DisableSchedule)):
        message = f"{plan.reverted_by} enabled the schedule soon after an emergency reclaim had disabled it. {_IGNORE}"
        yield Event(Reason.RECLAIM_REVERTED, message)


_DISABLED = "Set spec.schedule.enabled to false: the machine stays out of service until a user sets it to true."
_DISABLED_AGAIN = (
    "The schedule was enabled during the reclaim, and is disabled again. Enable it once the phase is Disabled."
)
_IGNORE = "If it manages this object, configure it to ignore spec.schedule.enabled."
_WARN_WHEN: Mapping[str, ConditionStatus] = {
    ConditionType.REFERENCES_VALID: "False",
    ConditionType.WORKLOAD_CLUSTER_REACHABLE: "False",
    ConditionType.HOST_CONFLICT: "True",
    ConditionType.CAPI_AVAILABLE: "False",
}


_AGENT_MISSING = (Reason.AGENT_NAMESPACE_MISSING, Reason.AGENT_DAEMON_SET_MISSING)
_CONTRADICTIONS = (Reason.PROVIDER_ID_CHANGED, Reason.NODE_REF_CHANGED, Reason.NODE_OF_ANOTHER_HOST)


def _conditions(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> Iterator[Event]:
    old = {condition.type: condition for condition in before.conditions}
    for condition in after.conditions:
        was = old.get(condition.type)
        if was is not None and (was.status, was.reason) == (condition.status, condition.reason):
            continue
        yield from _changed(condition, was)


def _changed(condition: Condition, was: Condition | None) -> Iterator[Event]:
    if _WARN_WHEN.get(condition.type) == condition.status:
        yield Event(read_reason(condition.reason), condition.message)
    if condition.type == ConditionType.READY and condition.status == "True" and (was is None or was.status != "True"):
        yield Event(Reason.MACHINE_READY, condition.message)
    if condition.type == ConditionType.NODE_TAINTED and condition.reason in (
        Reason.TAINT_OWNERSHIP_CONFLICT,
        Reason.PATCH_FAILED,
    ):
        yield Event(read_reason(condition.reason), condition.message)
    if condition.type == ConditionType.MACHINE_READY and condition.reason in _CONTRADICTIONS:
        yield Event(read_reason(condition.reason), condition.message)
    if condition.type == ConditionType.RECLAIM_AGENT_READY and condition.reason in _AGENT_MISSING:
        yield Event(read_reason(condition.reason), condition.message)
    if condition.type == ConditionType.DRAINED and condition.reason == Reason.DRAIN_BLOCKED:
        yield Event(read_reason(condition.reason), condition.message)
    if condition.type == ConditionType.DRY_RUN and condition.reason != Reason.NOTHING_TO_DO:
        yield Event(read_reason(condition.reason), condition.message)
    if condition.type == ConditionType.PAUSED and was is None:
        yield Event(Reason.PAUSED, condition.message)


def _problems(
    before: ScheduledMachineStatus, after: ScheduledMachineStatus, plan: Plan, outcome: Outcome
) -> Iterator[Event]:
    """One Warning when a problem starts or changes its reason."""
    if after == before:
        return  # nothing new, or the status could not be stored: the Event comes with it
    if outcome.failure and isinstance(outcome.failure.action, ApplyTaints):
        return  # the condition NodeTainted reports it
    reason = _problem(plan, outcome)
    if reason is None or reason in _reported_by_conditions(after):
        return
    ready_before = next((c.reason for c in before.conditions if c.type == ConditionType.READY), None)
    if reason != ready_before:
        yield Event(reason, after.message or reason)


def _reported_by_conditions(after: ScheduledMachineStatus) -> set[str]:
    return {c.reason for c in after.conditions if _WARN_WHEN.get(c.type) == c.status}


def _problem(plan: Plan, outcome: Outcome) -> AnyReason | None:
    if outcome.failure:
        return outcome.failure.reason
    return plan.reason if plan.problem else None
