"""Removing a machine: cordon, evict, delete the Machine, wait for CAPI, delete the objects that are left.

Only the Machine is deleted: CAPI then drains, removes infrastructure, bootstrap and Node, in that order. If the
infrastructure were deleted at the same time, CAPI would skip its drain.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from crds import names
from crds.status import Phase
from service.decide import contracts
from service.decide.drain import LOST_GRACE_SECONDS, Drain, drain_of, gone_at, progress
from service.decide.phases import node_is_ours
from service.decide.plan import Action, Cordon, Delete, Evict, Patch, Plan, RecordShutdown, Uncordon, earliest
from service.decide.reasons import AnyReason, Reason
from service.decide.situation import Situation
from service.decide.visibility import unreadable_message
from service.decide.world import Machine, Node, World

RETRY_PAUSE: Final = timedelta(seconds=5)
"""Pause before the pods of a Node are listed again after a failure, or an eviction is tried again."""
_NO_CAPI: Final = (
    "The API server does not serve Cluster API, so the controller cannot tell whether the Machine is gone; waiting "
    "until it can."
)


@dataclass(frozen=True, slots=True)
class Removal:
    """The next steps of a removal; `reason` and `message` say where it stands."""

    reason: AnyReason
    message: str
    actions: tuple[Action, ...] = ()
    requeue_at: datetime | None = None
    requeue_after: timedelta | None = None
    shutdown: datetime | None = None
    drain: Drain | None = None


def plan_from(phase: Phase, removal: Removal) -> Plan:
    """The plan that takes these steps."""
    return Plan(
        phase=phase,
        reason=removal.reason,
        message=removal.message,
        actions=removal.actions,
        requeue_at=removal.requeue_at,
        requeue_after=removal.requeue_after,
        shutdown=removal.shutdown,
        drain=removal.drain,
    )


def remove(s: Situation, *, at_once: bool, why: str) -> Removal:
    """The next steps to remove all our objects; with `at_once` neither grace nor drain."""
    machine = s.world.our_machine
    if machine is None:
        return _clear_up(s, why)
    if machine.deleting:
        return _recorded(s, _wait_for_capi(s, machine, at_once=at_once))
    step = _delete_machine(s, machine, at_once=True, why=why) if at_once else _drain_first(s, machine, why)
    return _recorded(s, step)


def delete_machine(s: Situation, machine: Machine, why: str) -> Removal:
    """Delete a Machine that is to be replaced; CAPI drains the pods that may still run on it."""
    return _recorded(s, _delete_machine(s, machine, why=why))


def with_recorded_start(s: Situation, removal: Removal) -> Removal:
    """The removal with its start stored, also if no Machine exists."""
    return removal if removal.shutdown is not None else _recorded(s, removal)


def _recorded(s: Situation, step: Removal) -> Removal:
    """The step, after the start of the shutdown is stored: every deadline counts from there."""
    first = () if s.shutdown_started else (RecordShutdown(started_at=s.now),)
    return replace(step, actions=(*first, *step.actions), shutdown=s.shutdown_started or s.now)


def _clear_up(s: Situation, why: str) -> Removal:
    """The Machine is gone: delete the objects that CAPI left behind."""
    if s.world.machine_unknown:
        message = unreadable_message(s.world) or _NO_CAPI
        # The Machine may exist: deleting its infrastructure would take a running host away from it.
        return Removal(Reason.CAPI_NOT_INSTALLED, message, shutdown=s.shutdown_started)
    left = s.world.children
    deletes = tuple(
        Delete(role=child.role, name=child.name, uid=child.uid, why=why) for child in left if not child.deleting
    )
    waiting = _waiting(s.world)
    return Removal(
        reason=Reason.REMOVING_OBJECTS,
        message=f"{waiting} {unreadable_message(s.world)}".strip(),
        actions=deletes,
        shutdown=s.shutdown_started,
    )


def _waiting(world: World) -> str:
    listed = ", ".join(f"{child.kind} {child.name}" for child in world.children)
    if listed:
        return f"Waiting for the deletion of {listed}."
    return "" if world.unreadable else "All objects are gone."


def _wait_for_capi(s: Situation, machine: Machine, *, at_once: bool) -> Removal:
    """The Machine is being deleted; after the grace period CAPI must not wait for pods or volumes either."""
    hurry = at_once or s.now >= s.grace_deadline
    patch = _exclude_drain(machine) if hurry else None
    waiting = f"says: {machine.waiting_for}" if machine.waiting_for else "waits for its provider."
    return Removal(
        reason=Reason.DELETING_MACHINE,
        message=f"Machine {machine.child.name} is being deleted; Cluster API {waiting}",
        actions=(patch,) if patch else (),
        requeue_at=None if hurry else s.grace_deadline,
    )


def _drain_first(s: Situation, machine: Machine, why: str) -> Removal:
    if _nothing_to_drain(s.world, machine):
        return _delete_machine(s, machine, why=why)
    if s.now >= s.drain_deadline:
        return _time_is_up(s, machine, why)
    if s.world.workload is None or not s.world.workload.reachable or s.world.node is None:
        return _wait_for_workload(s)
    return _drain(s, machine, why)


def _nothing_to_drain(world: World, machine: Machine) -> bool:
    """No Node has joined, it is gone, or the Node of that name is another host."""
    if machine.node_name is None:
        return True
    reachable = world.workload is not None and world.workload.reachable
    return reachable and not node_is_ours(world)


def _time_is_up(s: Situation, machine: Machine, why: str) -> Removal:
    """Delete the Machine without a cordon, which could fail; a Node without pods counts as drained, even if late."""
    state = drain_of(s.world, s.now) if s.world.pods is not None else None
    drained = state is not None and state.done
    return replace(_delete_machine(s, machine, why=why, undrained=not drained), drain=state if drained else None)


def _wait_for_workload(s: Situation) -> Removal:
    workload = s.world.workload
    detail = workload.message if workload else "not connected yet"
    return Removal(
        reason=Reason.WORKLOAD_CLUSTER_UNREACHABLE,
        message=f"Cannot drain: the workload cluster is unreachable ({detail}). {_deadline_message(s)}",
        actions=_cordon(s.world),
        requeue_at=s.drain_deadline,
    )


def _drain(s: Situation, machine: Machine, why: str) -> Removal:
    node = s.world.node
    assert node is not None, "checked by the caller"  # noqa: S101 - narrows the type
    cordon = _cordon(s.world)
    if s.world.pods is None:
        # The observer lists pods only once the start of the shutdown is stored, so in the next pass.
        return Removal(Reason.DRAINING, f"Draining Node {node.name}.", cordon, s.drain_deadline, timedelta(0))
    state = drain_of(s.world, s.now)
    if state.done:
        deleted = _delete_machine(s, machine, why=why, completed=bool(state.completed))
        return replace(deleted, actions=(*cordon, *deleted.actions), drain=state)
    return Removal(
        reason=Reason.DRAINING,
        message=f"Draining Node {node.name}: {progress(state)}. {_deadline_message(s)}",
        actions=(*cordon, *_evict(node, state)),
        requeue_at=earliest(s.drain_deadline, _warning(s), gone_at(state) if node.unreachable else None),
        requeue_after=_sooner(state.retry_after, s.world.pods_requeue_after),
        drain=state,
    )


def _evict(node: Node, state: Drain) -> tuple[Action, ...]:
    grace = LOST_GRACE_SECONDS if node.unreachable else None
    return (Evict(pods=state.to_evict, grace_seconds=grace),) if state.to_evict else ()


def _warning(s: Situation) -> datetime | None:
    """When the drain counts as blocked, unless it does already."""
    return s.drain_warning if s.now < s.drain_warning else None


def _sooner(*pauses: timedelta | None) -> timedelta | None:
    return min((pause for pause in pauses if pause is not None), default=None)


def _deadline_message(s: Situation) -> str:
    return f"The Machine is deleted at {s.drain_deadline:%H:%M:%S} UTC anyway."


def _cordon(world: World) -> tuple[Action, ...]:
    node = world.node
    if node is None or node.unschedulable or not node_is_ours(world):
        return ()
    return (Cordon(node=node.name, uid=node.uid, resource_version=node.resource_version),)


def uncordon(world: World) -> tuple[Action, ...]:
    """Undo a cordon of ours, after a cancelled shutdown or one of an earlier Machine.

    A cordon of another ScheduledMachine on the same Node stays.
    """
    node = world.node
    if node is None or not node_is_ours(world) or names.ANNOTATION_CORDONED not in node.annotations:
        return ()
    if node.annotations[names.ANNOTATION_CORDONED] in world.others_on_node:
        return ()
    return (Uncordon(node=node.name, uid=node.uid),)


def _delete_machine(
    s: Situation,
    machine: Machine,
    *,
    why: str,
    at_once: bool = False,
    undrained: bool = False,
    completed: bool = False,
) -> Removal:
    """Limit CAPI's own waits to the time that is left of ours, then delete.

    With `completed`, the Node is drained and has pods that have completed. CAPI would wait until they are deleted, so
    it skips its drain.
    """
    left = timedelta(0) if at_once else s.grace_deadline - s.now
    hurry = left < timedelta(seconds=1)
    bound = _exclude_drain(machine) if hurry else _bound_waits(s, machine, left, drained=completed)
    child = machine.child
    delete = Delete(role=child.role, name=child.name, uid=child.uid, why=why, undrained=undrained)
    reason, message = Reason.DELETING_MACHINE, f"Deleting Machine {child.name}."
    if undrained:
        reason, message = Reason.DRAIN_TIMED_OUT, f"Deleting Machine {child.name}; not all pods left in time."
    return Removal(
        reason=reason,
        message=message,
        actions=(bound, delete) if bound else (delete,),
        requeue_at=s.grace_deadline if left > timedelta(0) else None,
    )


def _bound_waits(s: Situation, machine: Machine, left: timedelta, *, drained: bool) -> Patch | None:
    assert s.world.contract is not None, "a Machine was seen, so CAPI is there"  # noqa: S101 - narrows the type
    drain_left = min(left, s.drain_deadline - s.now)
    seconds = contracts.at_least_a_second(drain_left), contracts.at_least_a_second(left)
    body: dict[str, Any] = {}
    if seconds != (machine.drain_seconds, machine.detach_seconds):
        body["spec"] = contracts.timeouts(s.world.contract, drain_left, left)
    annotations = contracts.waits(machine.child.annotations, drained=drained)
    if annotations:
        body["metadata"] = {"annotations": annotations}
    return _patch(machine, body) if body else None


def _exclude_drain(machine: Machine) -> Patch | None:
    """Have Cluster API wait neither for pods nor for volumes."""
    missing = {key: value for key, value in contracts.UNDRAINED.items() if key not in machine.child.annotations}
    return _patch(machine, {"metadata": {"annotations": missing}}) if missing else None


def _patch(machine: Machine, body: dict[str, Any]) -> Patch:
    return Patch(role=machine.child.role, name=machine.child.name, uid=machine.child.uid, body=body, why="deletion")
