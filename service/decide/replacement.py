"""When a Machine gives way to a new one inside its window: a MachineHealthCheck asks, or a failed one was edited."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from crds import names
from crds.scheduledmachine import ScheduledMachineSpec
from crds.status import Phase
from service.decide import manifests
from service.decide.phases import failure_is_certain, machine_failure
from service.decide.plan import Plan, RecordRemediation
from service.decide.removal import let_capi_remove, plan_of, uncordon
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
        return _remediate(s, machine)
    failed = machine_failure(s.world) if failure_is_certain(s.world) else None
    made_from = machine.child.annotations.get(names.ANNOTATION_SPEC_HASH)
    if failed and made_from != manifests.spec_hash(spec):
        message = f"Replacing the failed Machine ({failed.reason}), as its specs were edited."
        return _swap(s, machine, "SpecEdited", message)
    return None


def _remediate(s: Situation, machine: Machine) -> Plan:
    done = s.world.status.remediation
    plan = _swap(s, machine, "Remediating", "Replacing the Machine, as a MachineHealthCheck asks for it.")
    if done and done.machine_uid == machine.child.uid:
        return plan  # stored already, and cut short before the Machine was deleted
    count = done.count if done else 0
    # One from far ahead was made by a clock that was wrong: nobody waits until that time really comes.
    allowed = done.at + pause_after(count) if done and done.at - s.now < SMALL_STEP_BACK else s.now
    if s.now < allowed:
        message = f"A MachineHealthCheck asks for a new Machine; the next one is due at {allowed:%H:%M} UTC."
        actions = uncordon(s.world)
        return Plan(Phase.ERROR, "RemediationPaused", message, actions, look_again_at=allowed, problem=True)
    record = RecordRemediation(count=count + 1, at=s.now, machine_uid=machine.child.uid)
    return replace(plan, actions=(record, *plan.actions))


def pause_after(count: int) -> timedelta:
    """How long to wait before replacing once more: 10 min, doubling."""
    return REMEDIATION_PAUSE * (1 << min(max(count, 1) - 1, REMEDIATION_DOUBLINGS))


def _swap(s: Situation, machine: Machine, reason: str, message: str) -> Plan:
    plan = plan_of(Phase.PENDING, let_capi_remove(s, machine, why=message.rstrip(".")))
    return replace(plan, reason=reason, message=message)
