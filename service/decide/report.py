"""The status of one ScheduledMachine, derived from what was observed, decided and done."""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from crds.classes import ClassProblem
from crds.fields import TAINTS_MAX
from crds.overrides import deciding
from crds.schedule import EVER, FOREVER
from crds.status import (
    AppliedTaint,
    Condition,
    Effect,
    NodeReference,
    ObjectReference,
    OverrideInForce,
    PastReclaim,
    Phase,
    Reclaim,
    Remediation,
    ScheduledMachineStatus,
    WindowTimes,
)
from crds.text import one_line
from service.decide.condition_types import ConditionType
from service.decide.conditions import conditions
from service.decide.history import history_after
from service.decide.hosts import recorded
from service.decide.outcome import Outcome, explain
from service.decide.phases import contradiction, machine_phase, node_is_ours
from service.decide.plan import (
    ApplyTaints,
    ClearReclaimRequest,
    Create,
    DisableSchedule,
    Plan,
    RecordReclaim,
    RecordRemediation,
    RecordShutdown,
)
from service.decide.printer_columns import next_column, schedule_column
from service.decide.readiness import is_new
from service.decide.reasons import Reason
from service.decide.reclaim import has_stale_request
from service.decide.replacement import REMEDIATION_PAUSE
from service.decide.situation import SMALL_STEP_BACK, Situation
from service.decide.taints import owned_taints
from service.decide.turns import Queueing, awaited, waiting_since
from service.decide.visibility import only_transient_failures
from service.decide.world import Child, Problem, Role, Taint, World

MESSAGE_MAX = 1024


def report(s: Situation, plan: Plan, outcome: Outcome) -> ScheduledMachineStatus:
    """The status after a plan; `s.world` includes what the plan created."""
    after = _without_history(s, plan, outcome)
    leads = s.intent.lead_rules.stored(s.leads)
    return after.model_copy(update={"history": history_after(s, plan, outcome, after), "leads": leads})


def _without_history(s: Situation, plan: Plan, outcome: Outcome) -> ScheduledMachineStatus:
    world, before = s.world, s.world.status
    found = conditions(s, plan, outcome)
    return ScheduledMachineStatus(
        phase=phase_after(before, plan, outcome),
        message=one_line(explain(plan, outcome), MESSAGE_MAX),
        in_schedule=s.intent.covers(s.now) if s.intent.schedule else None,
        window=_window(s),
        override=_override(s),
        conditions=found,
        machine_phase=before.machine_phase if world.machine_unknown else machine_phase(world),
        machine_ref=_machine_ref(world),
        bootstrap_ref=_ref(world, Role.BOOTSTRAP),
        infrastructure_ref=_ref(world, Role.INFRASTRUCTURE),
        node_ref=_node_ref(world, plan, outcome),
        provider_id=_provider_id(world),
        host_hash=_host(s),
        applied_node_taints=_applied(world, plan, outcome),
        last_scheduled_time=_last_scheduled(s),
        first_ready_time=_first_ready(world, found),
        schedule=_schedule(s),
        next_change=_next_change(s),
        next_activation=_next_activation(s),
        next_cleanup=_next_cleanup(s, plan),
        shutdown_started_at=_shutdown(before, plan, outcome),
        waiting_since=waiting_since(s) if awaited(plan) else None,
        reclaim=_reclaim(s, plan, outcome),
        last_reclaim=_last_reclaim(s, plan),
        remediation=_remediation(s, plan, outcome),
        observed_generation=world.me.generation,
    )


def should_defer(s: Situation, plan: Plan, outcome: Outcome) -> bool:
    """Whether to write no status yet, because it would lack a Node that only has not been read yet.

    After a start that is so until the workload cluster's first answer, which wakes the object within seconds.
    """
    world, machine = s.world, s.world.our_machine
    if not s.effective.is_known(s.now) and s.intent.calendars_pending and outcome == Outcome():
        return plan.reason is Reason.CALENDAR_NOT_FOUND
    if _class_pending(s) and outcome == Outcome():
        return plan.reason is Reason.CLASS_NOT_FOUND
    awaited = world.workload is None and s.intent.cluster_name is not None
    known = machine is not None and machine.node_name is not None and world.status.node_ref is not None
    nothing_new = outcome == Outcome() and plan.phase is world.status.phase and not is_new(world)
    return (awaited and known and nothing_new) or only_transient_failures(s, outcome)


def _class_pending(s: Situation) -> bool:
    """Whether the controller has only not read the class yet."""
    return s.intent.class_problem is not None and s.intent.class_problem.problem is ClassProblem.UNKNOWN


def report_failed_read(
    before: ScheduledMachineStatus, failure: Problem, generation: int, now: datetime
) -> ScheduledMachineStatus:
    """The status if the objects could not be read: what is known stays, and Ready says what failed."""
    others = tuple(condition for condition in before.conditions if condition.type != ConditionType.READY)
    known = next((condition for condition in before.conditions if condition.type == ConditionType.READY), None)
    flipped = known is None or known.status != "False"
    message = one_line(failure.message, MESSAGE_MAX)
    ready = Condition(
        type=ConditionType.READY,
        status="False",
        reason=failure.reason,
        message=message,
        last_transition_time=now if flipped or known is None else known.last_transition_time,
        observed_generation=generation,
    )
    phase = before.phase if before.machine_ref else Phase.ERROR
    return before.model_copy(update={"phase": phase, "message": message, "conditions": (ready, *others)})


def phase_after(before: ScheduledMachineStatus, plan: Plan, outcome: Outcome) -> Phase:
    """A creation that failed is an Error; any other failure leaves the phase of the plan.

    If a reclaim could not be stored, none is in progress: the phase and `status.reclaim` agree.
    """
    undone = [action for action in plan.actions if action not in outcome.done]
    if any(isinstance(action, RecordReclaim) for action in undone):
        return before.phase or Phase.PENDING
    if not any(isinstance(action, Create) for action in undone):
        return plan.phase
    return Phase.ERROR if outcome.failure else Phase.PENDING


def _shutdown(before: ScheduledMachineStatus, plan: Plan, outcome: Outcome) -> datetime | None:
    """A shutdown counts once its start is stored; its end needs no storing first."""
    planned = [action for action in plan.actions if isinstance(action, RecordShutdown)]
    return plan.shutdown if all(action in outcome.done for action in planned) else before.shutdown_started_at


def _remediation(s: Situation, plan: Plan, outcome: Outcome) -> Remediation | None:
    """The count starts again with the next window; the shortest pause holds across windows."""
    action = next((action for action in outcome.done if isinstance(action, RecordRemediation)), None)
    if action is not None:
        return Remediation(count=action.count, at=action.at, machine_uid=action.machine_uid)
    known = s.world.status.remediation
    if known is None or plan.phase is not Phase.INACTIVE:
        return known
    return known.model_copy(update={"count": 1}) if s.now < known.at + REMEDIATION_PAUSE else None


def _last_scheduled(s: Situation) -> datetime | None:
    """A time far ahead comes from a clock that was wrong, and is replaced."""
    known = s.world.status.last_scheduled_time
    if is_new(s.world):
        return s.now
    far_ahead = known is not None and known - s.now >= SMALL_STEP_BACK
    return s.now if far_ahead and s.world.our_machine is not None else known


def _first_ready(world: World, found: tuple[Condition, ...]) -> datetime | None:
    """Kept for as long as the Machine exists; if the status lacks it, the time since which Ready is True."""
    if world.our_machine is None and not world.machine_unknown:
        return None
    known = None if is_new(world) else world.status.first_ready_time
    ready = next((one for one in found if one.type == ConditionType.READY and one.status == "True"), None)
    return known or (ready.last_transition_time if ready else None)


def _ref(world: World, role: Role) -> ObjectReference | None:
    if role in world.unreadable:
        return _recorded(world.status, role)
    child = world.child(role)
    return _reference(child) if child is not None and child.ours else None


def _recorded(before: ScheduledMachineStatus, role: Role) -> ObjectReference | None:
    refs = {
        Role.MACHINE: before.machine_ref,
        Role.BOOTSTRAP: before.bootstrap_ref,
        Role.INFRASTRUCTURE: before.infrastructure_ref,
    }
    return refs[role]


def _machine_ref(world: World) -> ObjectReference | None:
    """Kept until all objects are gone, so that leftovers never count as parts of a new machine."""
    kept = None if world.all_gone else world.status.machine_ref
    return _ref(world, Role.MACHINE) or kept


def _reference(child: Child) -> ObjectReference:
    return ObjectReference(
        api_version=child.api_version, kind=child.kind, name=child.name, namespace=child.namespace, uid=child.uid
    )


def _node_ref(world: World, plan: Plan, outcome: Outcome) -> NodeReference | None:
    machine, before = world.our_machine, world.status.node_ref
    if world.machine_unknown:
        return before
    if machine is None:
        # A reclaim in progress needs the uid to remove the request from the Node.
        return before if world.status.reclaim is not None and not plan.reclaimed else None
    if contradiction(world) is not None:
        return before
    if machine.node_name is None:
        return None
    same = not is_new(world) and before is not None and before.name == machine.node_name
    known = before if same else None
    uid = known.uid if known else None
    if world.node is not None and world.node.name == machine.node_name:
        uid = world.node.uid
    if has_stale_request(world) and not outcome.did(ClearReclaimRequest):
        uid = None  # with the uid in the status, the stale request would count as a new one
    return NodeReference(name=machine.node_name, uid=uid)


def _reclaim(s: Situation, plan: Plan, outcome: Outcome) -> Reclaim | None:
    recorded = next((action.reclaim for action in outcome.done if isinstance(action, RecordReclaim)), None)
    under_way = recorded or s.world.status.reclaim
    if under_way is None or plan.reclaimed:
        return None
    disabled = outcome.did(DisableSchedule) or not s.intent.enabled
    if under_way.disabled_at is not None or not disabled or recorded is not None:
        return under_way
    return under_way.model_copy(update={"disabled_at": s.now})


def _last_reclaim(s: Situation, plan: Plan) -> PastReclaim | None:
    """Kept for as long as the schedule is disabled because of it."""
    under_way = s.world.status.reclaim
    if plan.reclaimed and under_way is not None:
        return PastReclaim(at=under_way.disabled_at or s.now, reason=under_way.reason, node=under_way.node)
    return None if s.intent.enabled and not s.world.paused else s.world.status.last_reclaim


def _provider_id(world: World) -> str | None:
    machine = world.our_machine
    if machine is None:
        return world.status.provider_id if world.machine_unknown else None
    return world.status.provider_id if contradiction(world) else machine.provider_id


def _host(s: Situation) -> str | None:
    """The host that the Machine was created for; it is in use even if the spec names another by now."""
    world = s.world
    known = None if world.all_gone else recorded(world.status.host_hash)
    if world.our_machine is None or (known and not is_new(world)):
        return known
    return world.host


def _applied(world: World, plan: Plan, outcome: Outcome) -> tuple[AppliedTaint, ...]:
    if world.our_machine is None:
        return world.status.applied_node_taints if world.machine_unknown else ()
    failed = outcome.failure is not None and isinstance(outcome.failure.action, ApplyTaints)
    skipped = any(isinstance(action, ApplyTaints) for action in plan.actions) and not outcome.did(ApplyTaints)
    if plan.taints is not None and not failed and not skipped:
        return _as_status(plan.taints.owned)
    if world.node is None or not node_is_ours(world):
        return world.status.applied_node_taints
    return _as_status(owned_taints(world.status, world.node, world.others_on_node))


def _as_status(taints: Iterable[Taint]) -> tuple[AppliedTaint, ...]:
    applied = (AppliedTaint(key=taint.key, value=taint.value or None, effect=Effect(taint.effect)) for taint in taints)
    return tuple(islice(applied, TAINTS_MAX))


def _returns(s: Situation) -> bool:
    """Whether the object follows its schedule at present."""
    suspended = s.intent.kill_switch or s.world.me.deleting_since is not None or s.world.status.reclaim is not None
    return s.intent.enabled and not suspended


def _window(s: Situation) -> WindowTimes | None:
    """The window that is open, else the next; an end that it does not have is left out."""
    found = s.effective.window(s.now) if _returns(s) else None
    if found is None:
        return None
    opens = None if found.opens == EVER else found.opens
    closes = None if found.closes == FOREVER else found.closes
    return WindowTimes(opens=opens, closes=closes) if opens or closes else None


def _override(s: Situation) -> OverrideInForce | None:
    found = deciding(s.intent.overrides, s.now)
    if found is None:
        return None
    return OverrideInForce(
        name=found.name, state=found.state, until=found.ends, by=found.requested_by or None, reason=found.reason or None
    )


def _schedule(s: Situation) -> str | None:
    return schedule_column(s.intent.schedule) if s.intent.schedule else None


def _next_change(s: Situation) -> str | None:
    return next_column(s.effective, s.now) if _returns(s) else None


def _next_activation(s: Situation) -> datetime | None:
    return s.effective.next_start(s.now) if _returns(s) else None


def _was_due(s: Situation) -> datetime:
    """When a shutdown was due that waits for its turn."""
    announced = s.world.status.next_cleanup
    return announced if announced is not None and announced <= s.now else waiting_since(s)


def _next_cleanup(s: Situation, plan: Plan) -> datetime | None:
    if plan.shutdown is not None and s.world.children:
        at_once = s.intent.kill_switch or plan.phase is Phase.EMERGENCY_REMOVE
        return plan.shutdown if at_once else plan.shutdown + s.intent.grace
    if awaited(plan) is Queueing.DRAINING:
        return _was_due(s)
    return s.effective.next_change(s.now) if s.open and _returns(s) else None
