"""Creating the machine and keeping it up to date while its window is open."""

from dataclasses import replace
from datetime import datetime, timedelta

from crds import names
from crds.schedule import EVER
from crds.scheduledmachine import ScheduledMachineSpec
from crds.status import Phase
from service.decide import manifests
from service.decide.openings import with_window_annotation
from service.decide.phases import contradiction, machine_failure, node_is_ours
from service.decide.plan import Action, AddFinalizer, ApplyTaints, Delete, Plan, RecordShutdown
from service.decide.readiness import report_lateness
from service.decide.reasons import AnyReason, Reason
from service.decide.removal import plan_from, remove, uncordon
from service.decide.replacement import or_remediation_pause, replacement
from service.decide.situation import Situation
from service.decide.taints import TaintPlan, noted_taints, owned_taints, plan_taints, write_note
from service.decide.turns import or_turn_to_create
from service.decide.visibility import lasting_failure, unreadable_message, wait_until_readable
from service.decide.world import Node, Problem, Role, Taint, World


def activate(s: Situation, spec: ScheduledMachineSpec) -> Plan:
    """The plan inside a window, for a valid spec."""
    for obstacle in (_no_capi, _previous, _being_deleted, _foreign, _made_by_another_operator, wait_until_readable):
        plan = obstacle(s)
        if plan is not None:
            return plan
    plan = _outdated(s, spec) or _host_conflict(s) or replacement(s, spec)
    return plan or or_turn_to_create(s, or_remediation_pause(s, _ensure(s, spec)))


def _being_deleted(s: Situation) -> Plan | None:
    deleting = [child for child in s.world.children if child.deleting]
    if not deleting:
        return None
    listed = ", ".join(f"{child.kind} {child.name}" for child in deleting)
    message = f"Waiting for the deletion of {listed}, which belongs to the previous machine."
    machine = s.world.our_machine
    if machine is None:
        return Plan(Phase.PENDING, Reason.WAITING_FOR_PREVIOUS_MACHINE, message, shutdown=s.shutdown_started)
    if not machine.deleting:
        message = f"{listed} is being deleted, though Machine {machine.child.name} is not; waiting until it is gone."
        return Plan(
            Phase.PENDING, Reason.WAITING_FOR_PREVIOUS_MACHINE, message, actions=uncordon(s.world)
        )  # the Machine stays, so no shutdown is in progress
    removal = remove(s, at_once=False, why="the previous Machine is being deleted")
    return replace(plan_from(Phase.PENDING, removal), reason=Reason.WAITING_FOR_PREVIOUS_MACHINE, message=message)


def _foreign(s: Situation) -> Plan | None:
    found = foreign_objects(s.world)
    if found is None:
        return None
    actions = uncordon(s.world)
    # Only objects with our label are watched; those of other owners need not have it, so nothing wakes this one.
    return Plan(Phase.ERROR, found.reason, found.message, actions, problem=True, backoff=True)


def foreign_objects(world: World) -> Problem | None:
    """Objects of other owners that have the names that the controller needs."""
    if not world.foreign:
        return None
    listed = ", ".join(f"{child.kind} {child.name}" for child in world.foreign)
    message = f"{listed} exists and belongs to another owner. Delete or rename it, or rename this ScheduledMachine."
    if all(child.labels.get(names.LABEL_OWNER) == world.me.name for child in world.foreign):
        message = (
            f"{listed} exists and is not owned by this ScheduledMachine, though it carries its label. If it was "
            f"restored from a backup, run `5spot adopt {world.me.name} -n {world.me.namespace}`; else delete it."
        )
    return Problem(Reason.FOREIGN_OBJECT, message)


def _made_by_another_operator(s: Situation) -> Plan | None:
    machine = s.world.other_operators_machine
    if machine is None:
        return None
    message = (
        f"Machine {machine} was created for this ScheduledMachine by another operator; a second one would claim "
        "the same host. Let that operator remove it, or delete it."
    )
    return Plan(Phase.ERROR, Reason.FOREIGN_OBJECT, message, problem=True)


def _no_capi(s: Situation) -> Plan | None:
    if s.world.contract is not None:
        return None
    message = "Cluster API is not installed in this cluster; the controller creates the machine once it is."
    if s.world.machine_unknown:
        message = (
            "The API server does not serve Cluster API, so the controller cannot see the Machine; it changes nothing "
            "until it can."
        )
    return Plan(Phase.PENDING, Reason.CAPI_NOT_INSTALLED, message, problem=True)


def _previous(s: Situation) -> Plan | None:
    """Delete the objects of a Machine that is gone; a new Machine never gets them."""
    if s.world.machine is not None or s.world.status.machine_ref is None:
        return None
    if s.world.children:
        removal = remove(s, at_once=False, why="left over from the previous Machine")
        return replace(plan_from(Phase.PENDING, removal), reason=Reason.WAITING_FOR_PREVIOUS_MACHINE)
    # The status drops the old Machine first; else the next objects would count as leftovers of it.
    return Plan(
        Phase.PENDING, Reason.MACHINE_GONE, "The Machine is gone; creating a new one.", requeue_after=timedelta(0)
    )


def _outdated(s: Situation, spec: ScheduledMachineSpec) -> Plan | None:
    """Delete objects whose spec was edited before the Machine was created, so that it gets the current ones."""
    old = () if s.world.machine is not None else manifests.outdated(spec, s.world)
    if not old:
        return None
    why = "its spec was edited before the Machine was created"
    deletes = tuple(Delete(role=child.role, name=child.name, uid=child.uid, why=why) for child in old)
    listed = ", ".join(f"{child.kind} {child.name}" for child in old)
    return Plan(
        Phase.PENDING,
        Reason.WAITING_FOR_PREVIOUS_MACHINE,
        f"{listed} was created from specs that have been edited since; creating it again.",
        deletes,
    )


def _host_conflict(s: Situation) -> Plan | None:
    other = s.world.host_conflict
    if other is None or s.world.our_machine is not None:
        return None
    message = f"The host is taken by {conflicting_name(s.world)}; no Machine is created until the host is free."
    return Plan(Phase.PENDING, Reason.HOST_CONFLICT, message, problem=True)


def conflicting_name(world: World) -> str:
    """The other ScheduledMachine on our host, named only if it is in our own namespace."""
    other = world.host_conflict
    if other is None:
        return ""
    own = other.namespace == world.me.namespace
    return f"ScheduledMachine {other.name}" if own else "a ScheduledMachine in another namespace"


def _ensure(s: Situation, spec: ScheduledMachineSpec) -> Plan:
    creations = _creations(s, spec)
    actions: tuple[Action, ...] = (*_before_creation(s.world), *creations, *manifests.repairs(spec, s.world))
    taints = taints_for(s.world, spec)
    if taints and s.world.node and _must_write(taints, s.world):
        node = s.world.node
        note = write_note(s.world.me.uid, taints.owned, node, s.world.others_on_node)
        actions = (*actions, ApplyTaints(node.name, node.uid, node.resource_version, taints.taints, note))
    # Last: it changes the Node's resourceVersion, and taints are written only to the version that was read.
    actions = (*actions, *uncordon(s.world))
    failure = machine_failure(s.world)
    if failure:
        return Plan(
            Phase.ERROR, failure.reason, failure.message or failure.reason, actions, problem=True, taints=taints
        )
    unread = lasting_failure(s.world)
    if unread:
        return Plan(
            Phase.ACTIVE, unread.failure.reason, unreadable_message(s.world), actions, problem=True, taints=taints
        )
    return report_lateness(s, spec, Plan(Phase.ACTIVE, *_progress(s.world), actions=actions, taints=taints))


def _before_creation(world: World) -> tuple[Action, ...]:
    """What is stored first: our finalizer, and that the shutdown of the previous Machine is over."""
    finalizer = () if world.me.finalized else (AddFinalizer(),)
    stale = world.status.shutdown_started_at is not None and world.machine is None
    return (*finalizer, RecordShutdown(started_at=None)) if stale else finalizer


def _creations(s: Situation, spec: ScheduledMachineSpec) -> tuple[Action, ...]:
    world, machine = s.world, s.world.our_machine
    if world.unreadable:
        return ()  # an object that cannot be read may exist
    missing = manifests.creations(spec, world)
    opens = _opening(s) if missing else None
    wanted = tuple(with_window_annotation(create, opens) for create in missing)
    if machine is None or machine.provider_id is None:
        return wanted
    # The host is provisioned: a new infrastructure object would be a second host under the same Machine.
    return tuple(create for create in wanted if create.role is not Role.INFRASTRUCTURE)


def _opening(s: Situation) -> datetime | None:
    """When the window opens, or has opened, for which a machine is created; None if it has always been open."""
    window = s.effective.window(s.now)
    return None if window is None or window.opens == EVER else window.opens


def _progress(world: World) -> tuple[AnyReason, str]:
    """Reason and message of a machine that is being provisioned or runs."""
    machine, wrong, workload = world.our_machine, contradiction(world), world.workload
    if wrong:
        return wrong.reason, wrong.message
    if world.node is not None:
        return _node_progress(world.node)
    named = machine.node_name if machine else None
    if workload is not None and not workload.reachable:
        what = f"Node {named}" if named else "The host's Node"
        return Reason.WORKLOAD_CLUSTER_UNREACHABLE, f"{what} cannot be seen: {workload.message}"
    if named:
        known = world.status.node_ref is not None and world.status.node_ref.uid is not None
        gone = f"Node {named} is no longer in the workload cluster."
        return Reason.WAITING_FOR_NODE, gone if known and workload else f"Node {named} has not been seen yet."
    waiting = f" ({machine.waiting_for})" if machine and machine.waiting_for else ""
    return Reason.MACHINE_PROVISIONING, f"The machine is being provisioned{waiting}."


def _node_progress(node: Node) -> tuple[AnyReason, str]:
    if not node.provider_id:
        return Reason.WAITING_FOR_NODE, f"Node {node.name} has no providerID yet."
    if not node.ready:
        return Reason.NODE_NOT_READY, f"Node {node.name} is not ready."
    return Reason.MACHINE_RUNNING, f"Machine is running as Node {node.name}."


def taints_for(world: World, spec: ScheduledMachineSpec) -> TaintPlan | None:
    """The taints that the Node should have; None until our Node is Ready."""
    node = world.node
    if node is None or not node.ready or not node_is_ours(world):
        return None
    wanted = (Taint(taint.key, taint.effect.value, taint.value or "") for taint in spec.node_taints)
    return plan_taints(wanted, owned_taints(world.status, node, world.others_on_node), node)


def _must_write(taints: TaintPlan, world: World) -> bool:
    assert world.node is not None, "checked by the caller"  # noqa: S101 - narrows the type
    return taints.changed or set(noted_taints(world.node, world.others_on_node)) != set(taints.owned)
