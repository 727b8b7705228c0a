"""The conditions of a ScheduledMachine; each function drafts one, or returns None if it does not apply."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from crds import names
from crds.classes import ClassProblem
from crds.overrides import OverrideState, deciding
from crds.status import Condition, ConditionStatus, MachinePhase, Phase
from crds.text import one_line
from service.decide import manifests
from service.decide.activation import conflicting_name, foreign_objects, taints_for
from service.decide.condition_types import REASONS_OF, ConditionType
from service.decide.outcome import Outcome, explain
from service.decide.phases import contradiction, machine_failure, machine_phase, node_is_ours
from service.decide.plan import ApplyTaints, Delete, InstallAgent, Plan
from service.decide.reasons import DRY_RUN_REASONS, AnyReason, Reason, read_reason
from service.decide.reclaim import current_reclaim, disabling_reclaim, reclaim_message, unacknowledged_message
from service.decide.situation import Situation, cluster_problem
from service.decide.visibility import lasting_failure
from service.decide.world import Problem

INVALID_REFERENCES: Final = frozenset(REASONS_OF[ConditionType.REFERENCES_VALID]["False"])


class ConditionDraft(NamedTuple):
    """A condition without its bookkeeping."""

    type: ConditionType
    status: ConditionStatus
    reason: AnyReason
    message: str


class ReportInput(NamedTuple):
    """What conditions are made from."""

    s: Situation
    plan: Plan
    outcome: Outcome

    @property
    def reason(self) -> AnyReason:
        """The reason to report: that of a failure, a slow provider, or the plan."""
        if self.outcome.failure is not None:
            return self.outcome.failure.reason
        if self.outcome.throttled is not None and self.outcome.throttled.slow:
            return Reason.WAITING_FOR_PROVIDER
        return self.plan.reason

    @property
    def message(self) -> str:
        """The sentence to go with it."""
        return explain(self.plan, self.outcome)


def conditions(s: Situation, plan: Plan, outcome: Outcome) -> tuple[Condition, ...]:
    """All conditions that apply; `lastTransitionTime` moves only when `status` flips."""
    given = ReportInput(s, plan, outcome)
    before = {condition.type: condition for condition in s.world.status.conditions}
    drafts = (draft(given) for draft in _CONDITIONS)
    return tuple(_stamp(one, before.get(one.type), s.now, s.world.me.generation) for one in drafts if one)


def _stamp(draft: ConditionDraft, before: Condition | None, now: datetime, generation: int) -> Condition:
    kept = before is not None and before.status == draft.status
    return Condition(
        type=draft.type,
        status=draft.status,
        reason=draft.reason,
        message=one_line(draft.message, 1024),
        last_transition_time=before.last_transition_time if kept and before else now,
        observed_generation=generation,
    )


def _yes(value: bool) -> ConditionStatus:  # noqa: FBT001 - a mapping from bool is the point
    return "True" if value else "False"


def _ready(a: ReportInput) -> ConditionDraft:
    node, seen = a.s.world.node, lasting_failure(a.s.world) is None
    serves = node is not None and node.ready and node_is_ours(a.s.world) and seen
    # The phase alone is not enough: during a pause it stays, even if the Machine fails.
    running = a.plan.phase is Phase.ACTIVE and machine_phase(a.s.world) is MachinePhase.RUNNING
    return ConditionDraft(
        ConditionType.READY, _yes(running and serves and a.outcome.failure is None), a.reason, a.message
    )


def _scheduled(a: ReportInput) -> ConditionDraft:
    intent = a.s.intent
    if intent.schedule is None:
        return ConditionDraft(
            ConditionType.SCHEDULED, "Unknown", Reason.INVALID_SCHEDULE, "The controller cannot read the schedule."
        )
    described = intent.schedule.describe()
    cause = disabling_reclaim(a.s.world)
    if intent.unacknowledged is not None:
        message = unacknowledged_message(a.s)
        return ConditionDraft(ConditionType.SCHEDULED, "False", Reason.RECLAIM_NOT_ACKNOWLEDGED, message)
    if not intent.enabled and cause:
        return ConditionDraft(ConditionType.SCHEDULED, "False", Reason.EMERGENCY_RECLAIM, reclaim_message(cause, a.s))
    if not intent.enabled:
        return ConditionDraft(
            ConditionType.SCHEDULED, "False", Reason.SCHEDULE_DISABLED, f"The schedule ({described}) is disabled."
        )
    if intent.covers(a.s.now):
        return ConditionDraft(
            ConditionType.SCHEDULED, "True", Reason.SCHEDULE_ACTIVE, f"Current time is within schedule: {described}"
        )
    return ConditionDraft(
        ConditionType.SCHEDULED, "False", Reason.OUTSIDE_SCHEDULE, f"Current time is outside schedule: {described}"
    )


_BY_STATE: Final = {
    OverrideState.OPEN: (Reason.OVERRIDE_OPEN, "keeps the machine in service"),
    OverrideState.CLOSED: (Reason.OVERRIDE_CLOSED, "keeps the machine out of service"),
    OverrideState.SCHEDULED: (Reason.OVERRIDE_SCHEDULED, "lets the machine follow its schedule"),
}


def _overridden(a: ReportInput) -> ConditionDraft | None:
    override = deciding(a.s.intent.overrides, a.s.now)
    if override is None:
        return None
    reason, does = _BY_STATE[override.state]
    text = f"ScheduleOverride {override.name} {does} until {override.ends:%Y-%m-%d %H:%M:%S} UTC"
    stronger = outranking(a.s)
    if stronger is not None:
        return ConditionDraft(
            ConditionType.OVERRIDDEN,
            "False",
            Reason.OVERRIDE_OUTRANKED,
            f"{text}, but {stronger}, which outranks it.",
        )
    by = f" Requested by {override.requested_by}." if override.requested_by else ""
    why = f" Reason: {override.reason}" if override.reason else ""
    return ConditionDraft(ConditionType.OVERRIDDEN, "True", reason, f"{text}.{by}{why}")


_BY_PHASE: Final = {
    MachinePhase.PROVISIONING: Reason.MACHINE_PROVISIONING,
    MachinePhase.PROVISIONED: Reason.MACHINE_PROVISIONED,
    MachinePhase.DELETING: Reason.MACHINE_DELETING,
    MachinePhase.FAILED: Reason.MACHINE_FAILED,
}


def _machine_ready(a: ReportInput) -> ConditionDraft:
    world = a.s.world
    phase = machine_phase(world)
    wrong = contradiction(world) or machine_failure(world)
    if wrong:
        return ConditionDraft(ConditionType.MACHINE_READY, "False", wrong.reason, wrong.message or wrong.reason)
    if world.machine_unknown:
        message = "The API server does not serve Cluster API, so the controller cannot see the Machine."
        return ConditionDraft(ConditionType.MACHINE_READY, "Unknown", Reason.CAPI_NOT_INSTALLED, message)
    if phase is None:
        return ConditionDraft(ConditionType.MACHINE_READY, "False", Reason.NO_MACHINE, "No Machine exists.")
    if phase is not MachinePhase.RUNNING:
        return ConditionDraft(ConditionType.MACHINE_READY, "False", _BY_PHASE[phase], f"The CAPI Machine is {phase}.")
    return ConditionDraft(ConditionType.MACHINE_READY, "True", Reason.MACHINE_READY, "CAPI Machine is in Running state")


def _references_valid(a: ReportInput) -> ConditionDraft:
    known = _known(a, ConditionType.REFERENCES_VALID)
    if a.s.world.paused and known is not None:
        return known  # nothing was tried, so nothing is new
    if a.reason in INVALID_REFERENCES:
        return ConditionDraft(ConditionType.REFERENCES_VALID, "False", a.reason, a.message)
    if a.s.intent.invalid:
        return ConditionDraft(
            ConditionType.REFERENCES_VALID,
            "False",
            Reason.INVALID_SPEC,
            f"The spec is invalid: {'; '.join(a.s.intent.problems)}",
        )
    # Rules that come first, such as a disabled schedule, need no Cluster, but the condition reports it.
    broken = _class_problem(a.s) or _calendar_problem(a.s) or cluster_problem(a.s) or foreign_objects(a.s.world)
    if broken:
        return ConditionDraft(ConditionType.REFERENCES_VALID, "False", broken.reason, broken.message)
    if a.s.world.contract is None:
        message = "Cluster API is not installed in this cluster, so the controller cannot check the references."
        return ConditionDraft(ConditionType.REFERENCES_VALID, "Unknown", Reason.CAPI_NOT_INSTALLED, message)
    return ConditionDraft(
        ConditionType.REFERENCES_VALID,
        "True",
        Reason.REFERENCES_VALID,
        "Cluster, bootstrap and infrastructure are valid.",
    )


def outranking(s: Situation) -> str | None:
    """What decides about the machine in spite of every override, for a sentence; None if nothing does."""
    cluster = cluster_problem(s)
    found = {
        "the machine is paused": s.world.paused,
        "the ScheduledMachine is being deleted": s.world.me.deleting_since is not None,
        "the kill switch is on": s.intent.kill_switch,
        "an emergency reclaim is in progress": current_reclaim(s) is not None,
        "a reclaim is not acknowledged": s.intent.unacknowledged is not None,
        "the schedule is disabled": not s.intent.enabled,
        "its Cluster is missing or being deleted": cluster is not None,
        "the spec is invalid": s.intent.invalid,
    }
    return next((text for text, applies in found.items() if applies), None)


def _class_problem(s: Situation) -> Problem | None:
    found = s.intent.class_problem
    if found is None:
        return None
    unread = found.problem is ClassProblem.UNKNOWN
    return Problem(Reason.CLASS_NOT_FOUND if unread else read_reason(found.problem), f"{found.message}.")


def _calendar_problem(s: Situation) -> Problem | None:
    found = s.intent.undecidable
    return Problem(read_reason(found.problem), f"{found.message}.") if found else None


def _node_tainted(a: ReportInput) -> ConditionDraft | None:
    world, spec = a.s.world, a.s.intent.spec
    owned = a.plan.taints.owned if a.plan.taints else world.status.applied_node_taints
    declared = bool(spec and spec.node_taints) or bool(owned)
    if not declared or (world.our_machine is None and not world.machine_unknown):
        return None
    if world.node is None or not node_is_ours(world):
        unseen = "cannot be seen at present" if world.status.node_ref else "has not been seen yet"
        return ConditionDraft(
            ConditionType.NODE_TAINTED, "Unknown", Reason.NO_NODE_YET, f"The Node of this machine {unseen}."
        )
    if not world.node.ready:
        return ConditionDraft(
            ConditionType.NODE_TAINTED, "False", Reason.NODE_NOT_READY, f"Node {world.node.name} is not ready."
        )
    return _taint_result(a)


def _taint_result(a: ReportInput) -> ConditionDraft | None:
    failure, spec = a.outcome.failure, a.s.intent.spec
    if failure and isinstance(failure.action, ApplyTaints):
        return ConditionDraft(ConditionType.NODE_TAINTED, "False", Reason.PATCH_FAILED, failure.message)
    # Rules that leave taints alone, such as a disabled schedule, plan none; those on the Node are reported anyway.
    found = a.plan.taints or (taints_for(a.s.world, spec) if spec else None)
    unwritten = found is None or (found.changed and not a.outcome.did(ApplyTaints))
    known = _known(a, ConditionType.NODE_TAINTED)
    if unwritten and known and known.reason == Reason.PATCH_FAILED:
        return known
    if found and found.conflicts:
        listed = ", ".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in found.conflicts)
        message = f"Set by another owner and left as it is: {listed}. Remove it from the Node or from spec.nodeTaints."
        return ConditionDraft(ConditionType.NODE_TAINTED, "False", Reason.TAINT_OWNERSHIP_CONFLICT, message)
    if unwritten:
        return None
    return ConditionDraft(ConditionType.NODE_TAINTED, "True", Reason.APPLIED, "All declared taints are on the Node.")


def _known(a: ReportInput, kind: ConditionType) -> ConditionDraft | None:
    """The condition as the status has it."""
    found = next((one for one in a.s.world.status.conditions if one.type == kind), None)
    return ConditionDraft(kind, found.status, read_reason(found.reason), found.message) if found else None


def _paused(a: ReportInput) -> ConditionDraft | None:
    return ConditionDraft(ConditionType.PAUSED, "True", Reason.PAUSED, a.plan.message) if a.s.world.paused else None


def _dry_run(a: ReportInput) -> ConditionDraft | None:
    """Only where the dry run decides: what acts in spite of it is reported as ever."""
    s = a.s
    acts = s.world.paused or s.intent.kill_switch or not s.intent.enabled or s.world.me.deleting_since is not None
    if not s.world.dry_run or acts or current_reclaim(s) is not None:
        return None
    if a.plan.reason in DRY_RUN_REASONS:
        return ConditionDraft(ConditionType.DRY_RUN, "True", a.plan.reason, a.plan.message)
    return ConditionDraft(
        ConditionType.DRY_RUN, "True", Reason.NOTHING_TO_DO, "Dry run: the controller would do nothing now."
    )


def _up_to_date(a: ReportInput) -> ConditionDraft | None:
    machine, spec = a.s.world.our_machine, a.s.intent.spec
    if machine is None or machine.deleting or spec is None:
        return None
    if machine.child.annotations.get(names.ANNOTATION_SPEC_HASH) != manifests.spec_hash(spec):
        specs = "bootstrapSpec, infrastructureSpec" if spec.class_ref is None else "the class, parameters"
        edited = f"{specs}, or machineTemplate's version or failureDomain"
        message = f"{edited} was edited; the edit applies when the next Machine is created."
        return ConditionDraft(ConditionType.UP_TO_DATE, "False", Reason.APPLIES_AT_NEXT_CREATION, message)
    changes = a.s.world.spec_changes
    if changes is None:
        return _known(a, ConditionType.UP_TO_DATE)
    if changes:
        listed = ", ".join(str(change) for change in changes[:10])
        return ConditionDraft(
            ConditionType.UP_TO_DATE,
            "False",
            Reason.PROVIDER_SPEC_CHANGED,
            f"Changed since the operator created it: {listed}.",
        )
    return ConditionDraft(
        ConditionType.UP_TO_DATE, "True", Reason.UP_TO_DATE, "The Machine was created from the current specs."
    )


def _capi_available(a: ReportInput) -> ConditionDraft | None:
    if a.s.world.contract is not None:
        return None
    return ConditionDraft(
        ConditionType.CAPI_AVAILABLE,
        "False",
        Reason.CAPI_NOT_INSTALLED,
        "Cluster API is not installed in this cluster.",
    )


def _workload_reachable(a: ReportInput) -> ConditionDraft | None:
    workload = a.s.world.workload
    if workload is None:
        return None
    message = workload.message or "The workload cluster answers."
    return ConditionDraft(ConditionType.WORKLOAD_CLUSTER_REACHABLE, _yes(workload.reachable), workload.reason, message)


def _drained(a: ReportInput) -> ConditionDraft | None:
    """The progress of the drain; while the Node cannot be seen, and while CAPI drains, the last report stays."""
    if a.plan.shutdown is None or a.s.world.our_machine is None:
        return None
    if any(isinstance(action, Delete) and action.undrained for action in a.outcome.done):
        return ConditionDraft(ConditionType.DRAINED, "False", Reason.DRAIN_TIMED_OUT, a.message)
    state = a.plan.drain
    if state is None:
        return _known(a, ConditionType.DRAINED)
    if state.done:
        return ConditionDraft(
            ConditionType.DRAINED, "True", Reason.NODE_DRAINED, "All pods that must leave have left the Node."
        )
    reason = Reason.DRAIN_BLOCKED if a.s.now >= a.s.drain_warning else Reason.DRAINING
    return ConditionDraft(ConditionType.DRAINED, "False", reason, a.message)


def _reclaim_agent_ready(a: ReportInput) -> ConditionDraft | None:
    world, spec = a.s.world, a.s.intent.spec
    machine, agent = world.our_machine, world.reclaim_agent
    if spec is None or not spec.kill_if_commands or machine is None or machine.deleting:
        return None
    if agent is None:
        message = "The controller cannot see the Node, so it cannot tell whether the agent runs there."
        return ConditionDraft(ConditionType.RECLAIM_AGENT_READY, "Unknown", Reason.NO_NODE_YET, message)
    if agent.problem is not None:
        return ConditionDraft(ConditionType.RECLAIM_AGENT_READY, "False", agent.problem.reason, agent.problem.message)
    if any(isinstance(action, InstallAgent) for action in a.outcome.postponed):
        message = "Could not write the agent's ConfigMap or the Node's label; retrying."
        return ConditionDraft(ConditionType.RECLAIM_AGENT_READY, "False", Reason.NOT_EQUIPPED, message)
    return ConditionDraft(
        ConditionType.RECLAIM_AGENT_READY,
        "True",
        Reason.AGENT_READY,
        "The agent runs on the Node and has its list of commands.",
    )


def _host_conflict(a: ReportInput) -> ConditionDraft | None:
    if a.s.world.host_conflict is None:
        return None
    return ConditionDraft(
        ConditionType.HOST_CONFLICT,
        "True",
        Reason.HOST_CONFLICT,
        f"Another ScheduledMachine needs the same host: {conflicting_name(a.s.world)}.",
    )


_CONDITIONS: Final[tuple[Callable[[ReportInput], ConditionDraft | None], ...]] = (
    _ready,
    _scheduled,
    _overridden,
    _machine_ready,
    _references_valid,
    _node_tainted,
    _paused,
    _dry_run,
    _up_to_date,
    _capi_available,
    _workload_reachable,
    _drained,
    _reclaim_agent_ready,
    _host_conflict,
)
