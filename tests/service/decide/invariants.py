"""What must hold whatever happens: of a plan, of each action at the moment it is carried out, of a status."""

from crds.status import Condition, Phase, ScheduledMachineStatus
from service.decide import plan as actions
from service.decide.condition_types import REASONS_OF
from service.decide.drain import pods_unknown
from service.decide.phases import machine_failure, node_is_ours
from service.decide.plan import Action, Plan
from service.decide.reasons import ProviderReason, read_reason
from service.decide.reclaim import current_reclaim
from service.decide.situation import Situation
from service.decide.world import Role, World
from tests.service.decide.simulation import Pass, Simulation

NODE_WRITES = actions.Cordon | actions.Uncordon | actions.ApplyTaints | actions.InstallAgent
TAKES_AWAY = actions.Cordon | actions.Evict


def check_plan(sim: Simulation, plan: Plan) -> None:
    world = sim.world()
    assert plan.requeue_at is None or plan.requeue_at > sim.now, "never look again in the past"
    assert plan.message
    assert plan.reason.isidentifier()
    if world.paused:
        assert plan.actions == (), "paused means no actions"
    asked_back = current_reclaim(Situation.at(sim.intent, world, sim.now)) is not None
    if not sim.intent.enabled and not sim.intent.kill_switch and sim.deleting_since is None and not asked_back:
        assert not _any(plan, actions.Create | TAKES_AWAY), "disabled means hands off"
        assert Role.MACHINE not in _deleted(plan)
    if undisturbed(sim):
        assert not _any(plan, TAKES_AWAY), "no pod is evicted after a cancellation or inside an undisturbed window"
        assert Role.MACHINE not in _deleted(plan), "nothing is deleted inside an undisturbed window"
    if pods_unknown(world):
        assert plan.drain is None, "it is not known whether the Node is empty"
        assert not _any(plan, actions.Evict)
        assert plan.requeue_after is not None, "no watch reports when the pods can be listed"
    if _any(plan, actions.ReleaseFinalizer):
        assert sim.deleting_since is not None


def undisturbed(sim: Simulation) -> bool:
    """Whether a window is open and no user, rule or health check wants the machine removed."""
    world, intent = sim.world(), sim.intent
    machine = world.our_machine
    asked_back = current_reclaim(Situation.at(intent, world, sim.now)) is not None
    asked = sim.deleting_since is not None or intent.kill_switch or asked_back
    lost = machine is not None and (machine.remediation_requested or machine_failure(world) is not None)
    housed = world.cluster is not None and not world.cluster.deleting
    return Situation.at(intent, world, sim.now).open and housed and not asked and not lost


def check_action(seen: World, action: Action) -> None:
    """`seen` is the world in which the pass began, with metadata and status as they are now."""
    if isinstance(action, actions.Create):
        assert seen.me.finalized, "the finalizer comes before the first child"
        assert seen.child(action.role) is None, "never two of a kind"
    if isinstance(action, TAKES_AWAY) or (isinstance(action, actions.Delete) and action.role is Role.MACHINE):
        assert seen.status.shutdown_started_at is not None, "stored before anything is taken away"
    if isinstance(action, actions.Patch | actions.Delete):
        target = seen.child(action.role)
        assert target is not None
        assert (target.ours, target.uid) == (True, action.uid), "what belongs to others is never touched"
    if isinstance(action, actions.Delete) and action.role is not Role.MACHINE:
        assert seen.our_machine is None, "only the Machine is deleted as long as there is one"
    if isinstance(action, NODE_WRITES):
        assert node_is_ours(seen), "only our own Node is written to"
    if isinstance(action, actions.ForceDrain | actions.DisableSchedule):
        assert seen.status.reclaim is not None, "the request is stored before anything is done about it"
    if isinstance(action, actions.Evict):
        assert node_is_ours(seen)
        assert not any(pod.mirror or pod.finished or pod.controller_kind == "DaemonSet" for pod in action.pods)


def check_pass(sim: Simulation, before: ScheduledMachineStatus, last: Pass) -> None:
    _check_explains(last)
    _check_existence(sim, last)
    _check_taints(sim, last)
    if last.world.machine_unknown:
        assert _known(last.status) == _known(before), "what cannot be seen does not change"
    _check_conditions(before, last.status)


def _check_explains(last: Pass) -> None:
    status, ready = last.status, condition(last.status, "Ready")
    assert status.message
    assert all(one.message and one.reason for one in status.conditions), "every condition says why"
    assert [one for one in status.conditions if not _is_listed(one)] == [], "the docs list every reason of a condition"
    assert ready.reason == (last.outcome.failure.reason if last.outcome.failure else last.plan.reason)
    assert {"Ready", "Scheduled", "MachineReady", "ReferencesValid"} <= {one.type for one in status.conditions}
    if ready.status == "True":
        assert status.phase is Phase.ACTIVE
        assert last.world.node is not None
        assert last.world.node.ready
        assert condition(status, "MachineReady").status == "True"


def _check_taints(sim: Simulation, last: Pass) -> None:
    applied = any(one.type == "NodeTainted" and one.status == "True" for one in last.status.conditions)
    if applied and sim.node is not None and sim.intent.spec is not None:
        declared = {(one.key, one.effect.value, one.value or "") for one in sim.intent.spec.node_taints}
        assert declared <= {(one.key, one.effect, one.value) for one in sim.node.taints}, "applied means there"


def _check_existence(sim: Simulation, last: Pass) -> None:
    world, phase = sim.world(), last.status.phase
    if world.paused:
        return
    match phase:
        case Phase.ACTIVE:
            assert len(world.children) == 3
            assert not any(child.deleting for child in world.children)
        case Phase.INACTIVE:
            assert not world.children
        case Phase.DISABLED:
            assert not sim.intent.enabled
        case Phase.TERMINATED:
            assert sim.intent.kill_switch
            assert (last.plan.reason == "Terminating") == bool(last.world.children or last.world.machine_unknown)
        case Phase.EMERGENCY_REMOVE:
            assert last.status.reclaim is not None
        case Phase.SHUTTING_DOWN:
            assert world.children or world.machine_unknown or sim.deleting_since is not None
        case Phase.ERROR:
            assert last.plan.problem or last.outcome.failure
    if not world.machine_unknown:
        assert (last.status.machine_phase is not None) == (world.our_machine is not None)


def _known(status: ScheduledMachineStatus) -> tuple[object, ...]:
    """What is known of a Machine."""
    return (
        status.machine_ref,
        status.machine_phase,
        status.node_ref,
        status.provider_id,
        status.applied_node_taints,
    )


def _check_conditions(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> None:
    old = {one.type: one for one in before.conditions}
    for one in after.conditions:
        was = old.get(one.type)
        assert one.observed_generation == after.observed_generation
        if was is not None and was.status == one.status:
            assert was.last_transition_time == one.last_transition_time, "moves only when the status flips"


def _is_listed(one: Condition) -> bool:
    """Whether the docs have this reason for this status of this condition; a provider's own word is never listed."""
    reason = read_reason(one.reason)
    return isinstance(reason, ProviderReason) or reason in _REASONS[one.type][one.status]


_REASONS = {str(kind): by_status for kind, by_status in REASONS_OF.items()}


def condition(status: ScheduledMachineStatus, kind: str) -> Condition:
    return next(one for one in status.conditions if one.type == kind)


def _any(plan: Plan, kinds: object) -> bool:
    return any(isinstance(action, kinds) for action in plan.actions)  # type: ignore[arg-type]


def _deleted(plan: Plan) -> set[Role]:
    return {action.role for action in plan.actions if isinstance(action, actions.Delete)}
