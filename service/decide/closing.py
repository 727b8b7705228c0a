"""The annotation on the Node that says when its window closes, so that workloads can see how long they have.

It stands on the Node from when that is Ready until the window closes, and costs no write of its own where taints or a
cordon are written anyway.
"""

from dataclasses import replace
from datetime import datetime

from crds import names
from crds.base import rfc3339
from crds.status import Phase
from service.decide.phases import node_is_ours
from service.decide.plan import Action, AnnotateClose, ApplyTaints, Cordon, Plan
from service.decide.situation import Situation
from service.decide.world import Node


def with_closes_at(plan: Plan, s: Situation) -> Plan:
    """The plan of a rule with what the annotation needs; a Node that others use too keeps theirs."""
    node = s.world.node
    if node is None or not node_is_ours(s.world) or _is_left_alone(s, plan):
        return plan
    closes = _closes(s)
    wanted = rfc3339(closes) if closes else None
    there = node.annotations.get(names.ANNOTATION_CLOSES_AT)
    if wanted is not None and any(isinstance(action, ApplyTaints) for action in plan.actions):
        return _with_taints(plan, wanted)
    if there == wanted or (there is not None and s.world.others_on_node):
        return plan
    if wanted is not None and (plan.shutdown is not None or not node.ready):
        return plan  # no pods have come to the Node yet, or they are leaving it
    return _written(plan, node, wanted)


def _is_left_alone(s: Situation, plan: Plan) -> bool:
    """Whether nothing may be written, the Node leaves at once, or its close is only not known yet."""
    at_once = plan.deleting or plan.phase in (Phase.TERMINATED, Phase.EMERGENCY_REMOVE)
    machine = s.world.our_machine
    held = s.world.paused or s.world.dry_run or s.intent.calendars_pending
    return held or at_once or (machine is not None and machine.deleting)


def _closes(s: Situation) -> datetime | None:
    """When the window closes after which the machine leaves; None if that is not known, or past."""
    if not s.intent.enabled or not s.effective.is_known(s.now):
        return None
    if s.open:
        return s.effective.closes(s.now)
    window = s.effective.window(s.now) if s.effective.leads.stop else None
    return window.closes if window is not None and window.opens <= s.now else None


def _with_taints(plan: Plan, wanted: str) -> Plan:
    """Every write of the taints has it: what server-side apply leaves out, it removes."""
    actions = (replace(each, closes_at=wanted) if isinstance(each, ApplyTaints) else each for each in plan.actions)
    return replace(plan, actions=tuple(actions))


def _written(plan: Plan, node: Node, wanted: str | None) -> Plan:
    if wanted is None and any(isinstance(action, Cordon) for action in plan.actions):
        cleared = (replace(each, closed=True) if isinstance(each, Cordon) else each for each in plan.actions)
        return replace(plan, actions=tuple(cleared))
    note: Action = AnnotateClose(node=node.name, uid=node.uid, closes_at=wanted)
    return replace(plan, actions=(*plan.actions, note))
