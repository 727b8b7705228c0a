"""Replacing a Machine inside its window: a MachineHealthCheck asks for it, or a failed Machine's specs were edited."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from crds import names
from crds.scheduledmachine import ScheduledMachineSpec
from crds.status import Phase
from service.decide import manifests
from service.decide.phases import failure_is_certain, machine_failure
from service.decide.plan import Action, Delete, Patch, Plan, RecordRemediation, RecordShutdown
from service.decide.reasons import Reason
from service.decide.removal import delete_machine, plan_from
from service.decide.situation import SMALL_STEP_BACK, Situation
from service.decide.world import Machine

REMEDIATION_PAUSE: Final = timedelta(minutes=10)
REMEDIATION_DOUBLINGS: Final = 5


def replacement(s: Situation, spec: ScheduledMachineSpec) -> Plan | None:
    """A Machine that a MachineHealthCheck marked, or that failed and whose specs were edited since."""
    machine = s.world.our_machine
    if machine is None:
        return None
    if machine.remediation_requested:
        return None if remediation_due(s) else _remediate(s, machine)
    failed = machine_failure(s.world) if failure_is_certain(s.world) else None
    made_from = machine.child.annotations.get(names.ANNOTATION_SPEC_HASH)
    if failed and made_from != manifests.spec_hash(spec):
        message = f"Replacing the failed Machine ({failed.reason}): its specs were edited."
        return _replace_machine(s, machine, Reason.SPEC_EDITED, message, why="it failed, and its specs were edited")
    return None


def _remediate(s: Situation, machine: Machine) -> Plan:
    done = s.world.status.remediation
    why = "its MachineHealthCheck failed"
    plan = _replace_machine(s, machine, Reason.REMEDIATING, f"Replacing the Machine: {why}.", why=why)
    again = done is not None and done.machine_uid == machine.child.uid
    counted = done.count if done else 0
    record = RecordRemediation(count=counted if again else counted + 1, at=s.now, machine_uid=machine.child.uid)
    if again and s.shutdown_started:
        stored: tuple[Action, ...] = ()  # the pass that stored it ended before it deleted the Machine
    else:
        stored = (record,)
    # After the shutdown: a replacement that the status has without a shutdown was cancelled.
    first = tuple(action for action in plan.actions if isinstance(action, RecordShutdown))
    rest = tuple(_as_seen(action, machine) for action in plan.actions if action not in first)
    return replace(plan, actions=(*first, *stored, *rest))


def _as_seen(action: Action, machine: Machine) -> Action:
    """The action, only if the Machine is unchanged: its health check may have succeeded since."""
    match action:
        case Patch():
            return replace(action, resource_version=machine.child.resource_version)
        case Delete():
            return replace(action, unchanged=True)
        case _:
            return action


def remediation_due(s: Situation) -> datetime | None:
    """When the next replacement is due; None if it is due now, or no health check asks for one."""
    machine, done = s.world.our_machine, s.world.status.remediation
    if machine is None or not machine.remediation_requested or done is None:
        return None
    # A time far ahead comes from a clock that was wrong, and does not count.
    if done.machine_uid == machine.child.uid or done.at - s.now >= SMALL_STEP_BACK:
        return None
    due = done.at + pause_after(done.count)
    return due if s.now < due else None


def or_remediation_pause(s: Situation, plan: Plan) -> Plan:
    """The plan of a Machine that stays; if a health check asks for a replacement, it says when that is due."""
    due = remediation_due(s)
    if due is None:
        return plan
    message = f"The MachineHealthCheck of the Machine failed; the next replacement is due at {due:%H:%M} UTC."
    return replace(
        plan, phase=Phase.ERROR, reason=Reason.REMEDIATION_PAUSED, message=message, requeue_at=due, problem=True
    )


def pause_after(count: int) -> timedelta:
    """How long to wait before replacing once more: 10 min, doubling."""
    return REMEDIATION_PAUSE * (1 << min(max(count, 1) - 1, REMEDIATION_DOUBLINGS))


def _replace_machine(s: Situation, machine: Machine, reason: Reason, message: str, *, why: str) -> Plan:
    plan = plan_from(Phase.PENDING, delete_machine(s, machine, why=why))
    return replace(plan, reason=reason, message=message)
