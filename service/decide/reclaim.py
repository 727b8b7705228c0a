"""Emergency reclaim: the owner of a workstation gets it back at once, and it does not return to service by itself.

1 the agent requests it, 2 the request is stored, 3 pods are deleted by force, 4 the Machine is deleted, 5 the schedule
is disabled, 6 the request is removed from the Node, 7 all objects are gone: Disabled. Each step can be repeated. The
schedule is disabled before the request is cleared, or the machine would return to service after a crash in between.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from crds import names
from crds.status import PastReclaim, Phase, Reclaim, ScheduledMachineStatus
from crds.text import one_line
from service.decide.intent import Intent
from service.decide.phases import node_is_ours
from service.decide.plan import (
    Action,
    ClearReclaimRequest,
    DisableSchedule,
    ForceDrain,
    Plan,
    RecordReclaim,
)
from service.decide.reasons import Reason
from service.decide.reclaim_agent import agent_actions, remove_agent
from service.decide.removal import remove
from service.decide.rule import rule
from service.decide.situation import Situation
from service.decide.world import Identity, Node, World

REASON_MAX: Final = 512
"""The agent writes shorter ones."""
REVERT_WATCH: Final = timedelta(minutes=15)
"""How long after a reclaim a GitOps tool that enables the schedule counts as having reverted it."""
GITOPS_MANAGERS: Final = frozenset(
    {
        "argocd-controller",  # Argo CD, server-side apply
        "argocd-application-controller",  # Argo CD, client-side apply, create and replace
        "kustomize-controller",  # Flux, Kustomization
        "helm-controller",  # Flux, HelmRelease
        "flux-operator",  # Flux Operator, ResourceSet
        "fleetagent",  # Rancher Fleet
        "helm",
    }
)
"""Field managers of tools that apply what a repository says. Every other name is a person's tool."""


@rule(
    when="the agent on the Node requests a reclaim, or a reclaim is in progress",
    then="[emergency reclaim](emergency-reclaim-agent.md#what-the-controller-does): pods and Machine are deleted at "
    "once, and the schedule is disabled",
    phase="EmergencyRemove, then Disabled",
)
def reclaim(s: Situation) -> Plan | None:
    """Carry out a request on our Node, or one that was stored."""
    asked = current_reclaim(s)
    if asked is None:
        return None
    message = f"The owner of Node {asked.node} claimed it back{_because(asked.reason)}."
    if s.world.status.reclaim is None:
        record = (RecordReclaim(reclaim=asked),)
        plan = Plan(Phase.EMERGENCY_REMOVE, Reason.EMERGENCY_RECLAIM, message, record, requeue_after=timedelta(0))
        return replace(plan, shutdown=s.shutdown_started)
    if _is_over(s):
        over = reclaim_message(PastReclaim(at=s.now, reason=asked.reason, node=asked.node), s)
        return Plan(Phase.DISABLED, Reason.EMERGENCY_RECLAIM, over, requeue_after=timedelta(0), reclaimed=True)
    return _remove_for_reclaim(s, message)


def current_reclaim(s: Situation) -> Reclaim | None:
    """The reclaim in progress, or the one that the Node requests now."""
    world, node, machine = s.world, s.world.node, s.world.our_machine
    if world.status.reclaim is not None:
        return world.status.reclaim
    if machine is None or node is None or not node_is_ours(world) or not seen_with_its_node(world):
        return None
    if node.annotations.get(names.ANNOTATION_RECLAIM_REQUESTED) != "true":
        return None
    reason = one_line(node.annotations.get(names.ANNOTATION_RECLAIM_REASON, ""), REASON_MAX)
    return Reclaim(requested_at=s.now, reason=reason, node=node.name, machine_uid=machine.child.uid)


def seen_with_its_node(world: World) -> bool:
    """Whether an earlier pass saw this Machine with its Node: a request that the Node had before that is stale."""
    machine, known, node = world.our_machine, world.status.machine_ref, world.status.node_ref
    same = machine is not None and known is not None and known.uid == machine.child.uid
    return same and node is not None and node.uid is not None


def has_stale_request(world: World) -> bool:
    """Whether the Node carries a request from before its Machine; the controller does not act on it."""
    node = world.node
    if node is None or world.status.reclaim is not None:
        return False
    return _carries_request(node) and not seen_with_its_node(world)


def with_agent_actions(s: Situation, plan: Plan) -> Plan:
    """The plan with the actions that the agent on the Node needs, whatever the rule."""
    world = s.world
    if world.paused:
        return plan
    old = has_stale_request(world) and node_is_ours(world)
    cleared = _clear(world.node) if old and world.node else ()
    added = agent_actions(s.intent, world)
    agent = world.reclaim_agent
    return replace(
        plan,
        actions=(*cleared, *plan.actions, *added),
        agent_requeue_after=agent.requeue_after if agent else None,
        reverted_by=_reverted_by(s),
    )


def needs_author(intent: Intent, status: ScheduledMachineStatus, now: datetime) -> bool:
    """Whether it matters who enabled the schedule: a reclaim disabled it a short time ago."""
    if not intent.enabled:
        return False
    under_way = status.reclaim is not None and status.reclaim.disabled_at is not None
    past = status.last_reclaim
    return under_way or (past is not None and now - past.at < REVERT_WATCH)


def reclaim_message(past: PastReclaim | Reclaim, s: Situation) -> str:
    """Why the schedule is disabled and how to enable it again."""
    me = s.world.me
    soonest = ", once the phase is Disabled" if isinstance(past, Reclaim) else ""
    why = f"Disabled by an emergency reclaim: the owner of Node {past.node} claimed it back{_because(past.reason)}."
    if s.intent.unacknowledged is not None:
        return f"{why} {_how_to_acknowledge(me, soonest)}"
    return (
        f"{why} To return it to service{soonest}: kubectl -n {me.namespace} patch {names.SINGULAR} {me.name} "
        """--type=merge -p '{"spec":{"schedule":{"enabled":true}}}'"""
    )


def unacknowledged_message(s: Situation) -> str:
    """Why the machine stays out of service although its schedule may be enabled, and how it returns."""
    cause = disabling_reclaim(s.world)
    if cause is not None:
        return reclaim_message(cause, s)
    return f"Disabled by an emergency reclaim of {s.intent.unacknowledged}. {_how_to_acknowledge(s.world.me)}"


def _how_to_acknowledge(me: Identity, soonest: str = "") -> str:
    return (
        "It stays out of service, even if the schedule is enabled, until a user acknowledges the reclaim"
        f"{soonest}: 5spot resume {me.name} -n {me.namespace}"
    )


def disabling_reclaim(world: World) -> PastReclaim | Reclaim | None:
    """The reclaim that disabled the schedule, over or not."""
    under_way = world.status.reclaim
    return under_way if under_way is not None and under_way.disabled_at is not None else world.status.last_reclaim


def _remove_for_reclaim(s: Situation, message: str) -> Plan:
    removal = remove(s, at_once=True, why="the owner claimed the Node back")
    disable = _disable(s)
    hand_back = _hand_back(s.world)
    last = "All objects are gone; removing the request from the Node." if hand_back and s.world.all_gone else None
    return Plan(
        phase=Phase.EMERGENCY_REMOVE,
        reason=Reason.EMERGENCY_RECLAIM,
        message=f"{message} {last or removal.message}",
        actions=(*_force_drain(s.world), *removal.actions, *disable, *hand_back),
        requeue_after=timedelta(0) if disable else removal.requeue_after,
        shutdown=removal.shutdown,
    )


def _disable(s: Situation) -> tuple[Action, ...]:
    """Disables the schedule; once a user has to acknowledge the reclaim, it does not matter who enables it again."""
    if s.world.acknowledged_reclaims and s.intent.unacknowledged is None:
        return (DisableSchedule(unacknowledged_since=s.now),)
    return (DisableSchedule(),) if s.intent.enabled else ()


def _is_over(s: Situation) -> bool:
    """Whether all objects are gone, the schedule is disabled, and the request is gone or its cluster unreachable."""
    if _disable(s) or not s.world.all_gone or s.world.workload is None:
        return False
    node = _asking_node(s.world)
    return node is None or not _carries_request(node)


def _force_drain(world: World) -> tuple[Action, ...]:
    machine = world.our_machine
    if machine is None or machine.deleting or not machine.node_name or not machine.provider_id:
        return ()
    if world.workload is not None and not world.workload.reachable and world.node is None:
        return ()
    return (ForceDrain(node=machine.node_name, provider_id=machine.provider_id),)


def _hand_back(world: World) -> tuple[Action, ...]:
    """Remove the agent first: it would repeat its request for as long as the Node exists."""
    node = _asking_node(world)
    if node is None:
        return ()
    return (*remove_agent(node), *(_clear(node) if _carries_request(node) else ()))


def _asking_node(world: World) -> Node | None:
    """The Node with the request; once its Machine is gone, the one with the uid in the status."""
    node, known = world.node, world.status.node_ref
    if node is None or world.our_machine is not None:
        return node if node_is_ours(world) else None
    return node if known is not None and known.uid == node.uid else None


def _carries_request(node: Node) -> bool:
    return any(key in node.annotations for key in names.RECLAIM_ANNOTATIONS)


def _clear(node: Node) -> tuple[Action, ...]:
    return (ClearReclaimRequest(node=node.name, uid=node.uid),)


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _reverted_by(s: Situation) -> str | None:
    author = s.world.enabled_by
    if s.world.acknowledged_reclaims:
        return None  # without an acknowledgement, enabling the schedule has no effect
    if author not in GITOPS_MANAGERS or not needs_author(s.intent, s.world.status, s.now):
        return None
    return author
