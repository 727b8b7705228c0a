"""A machine that is not Ready in time: reported, and left to Cluster API and a MachineHealthCheck.

The time counts from the creation of the Machine, as `status.lastScheduledTime` has it, until its Node is Ready for the
first time. A Node that was Ready before does not count as late.
"""

from dataclasses import replace
from datetime import datetime
from typing import Final

from crds.scheduledmachine import ScheduledMachineSpec
from crds.values import format_duration
from service.decide.plan import Create, Plan, earliest
from service.decide.reasons import Reason
from service.decide.situation import Situation
from service.decide.world import Machine, Role, World

NOT_READY_YET: Final = frozenset(
    {Reason.MACHINE_PROVISIONING, Reason.WAITING_FOR_NODE, Reason.NODE_NOT_READY, Reason.WORKLOAD_CLUSTER_UNREACHABLE}
)
"""The reasons that a machine has until its Node is Ready."""


def report_lateness(s: Situation, spec: ScheduledMachineSpec, plan: Plan) -> Plan:
    """The plan for a machine that is not Ready yet: it is requeued for its deadline, and reported after it."""
    if plan.reason not in NOT_READY_YET or not _is_awaited(s.world):
        return plan
    due = _created_at(s, plan) + spec.provisioning_timeout
    if s.now < due:
        return replace(plan, requeue_at=earliest(plan.requeue_at, due))
    machine, timeout = s.world.our_machine, format_duration(spec.provisioning_timeout)
    message = f"The machine is not Ready {timeout} after its creation. {plan.message}{_in_other_words(machine, plan)}"
    return replace(plan, reason=Reason.NOT_READY_IN_TIME, message=message, problem=True)


def is_new(world: World) -> bool:
    """Whether the Machine has not been reported before; also if the operator crashed right after it created it."""
    known, machine = world.status.machine_ref, world.our_machine
    return machine is not None and (known is None or known.uid != machine.child.uid)


def _is_awaited(world: World) -> bool:
    """Whether the Node has never been Ready, as far as it can be seen."""
    machine, workload = world.our_machine, world.workload
    if world.status.first_ready_time is not None and not is_new(world) and machine is not None:
        return False
    unseen = workload is None or not workload.reachable
    return machine is None or machine.node_name is None or not unseen


def _created_at(s: Situation, plan: Plan) -> datetime:
    """When the Machine was created; now, if this plan creates it or the status does not have it yet."""
    made_now = any(isinstance(action, Create) and action.role is Role.MACHINE for action in plan.actions)
    known = None if made_now or is_new(s.world) else s.world.status.last_scheduled_time
    return known or s.now


def _in_other_words(machine: Machine | None, plan: Plan) -> str:
    """What Cluster API says, unless it is quoted already."""
    quoted = machine is None or not machine.waiting_for or machine.waiting_for in plan.message
    return "" if quoted or machine is None else f" Cluster API says: {machine.waiting_for}"
