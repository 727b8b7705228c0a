"""What the taints of a Node should be, and what to say about them; identity is (key, effect).

We own exactly what we applied before. A taint of the same identity that is not ours is left alone and reported.
"""

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from crds import names
from crds.scheduledmachine import NodeTaint
from crds.status import ScheduledMachineStatus
from service.decide.world import Node, Taint


@dataclass(frozen=True, slots=True)
class TaintPlan:
    """The whole list as it should be, and which of it is ours."""

    taints: tuple[Taint, ...]
    owned: tuple[Taint, ...]
    conflicts: tuple[Taint, ...]
    changed: bool


def plan_taints(wanted: Iterable[Taint], owned: Iterable[Taint], node: Node) -> TaintPlan:
    """Merge what the user wants into what the Node has, touching only what we applied."""
    there = {taint.identity: taint for taint in node.taints}
    ours = {taint.identity: taint for taint in owned}
    desired = {taint.identity: taint for taint in wanted}
    taken = {key for key, taint in desired.items() if _taken(there.get(key), ours.get(key), taint)}
    dropped = {key for key in ours if key not in desired and key in there}
    changed_since = {key for key in dropped if there[key].value != ours[key].value}
    result = {key: taint for key, taint in there.items() if key not in dropped - changed_since}
    result.update(
        {key: taint for key, taint in desired.items() if key not in taken and not _same(there.get(key), taint)}
    )
    # A taint of ours that was changed stays recorded: if it is changed back, it is ours again.
    disputed = [ours[key] for key in (*taken, *changed_since) if key in ours]
    return TaintPlan(
        taints=tuple(result.values()),
        owned=(*(taint for key, taint in desired.items() if key not in taken), *sorted(disputed)),
        conflicts=tuple(sorted(there[key] for key in taken | changed_since)),
        changed=set(result.values()) != set(node.taints),
    )


def _same(there: Taint | None, wanted: Taint) -> bool:
    return there is not None and there.value == wanted.value


def _taken(there: Taint | None, ours: Taint | None, wanted: Taint) -> bool:
    """Whether another writer set a taint of that identity, or changed the value of ours."""
    if there is None:
        return False
    return ours is None or there.value not in (ours.value, wanted.value)


def owned_taints(status: ScheduledMachineStatus, node: Node, others: Container[str] = ()) -> tuple[Taint, ...]:
    """The taints that we applied to this Node: those in the status, and those in its annotation after a crash."""
    noted = noted_taints(node, others)
    known = status.node_ref.uid if status.node_ref else None
    # Under a new uid the Node registered again: what the status lists was on the one before.
    applied = status.applied_node_taints if known in (None, node.uid) else ()
    reported = (Taint(taint.key, taint.effect.value, taint.value or "") for taint in applied)
    merged = {taint.identity: taint for taint in (*reported, *noted)}
    return tuple(merged.values())


def noted_taints(node: Node, others: Container[str] = ()) -> tuple[Taint, ...]:
    """The taints that the Node's annotation lists, without those of the other ScheduledMachines with these uids.

    Those of an owner that is gone are ours: it may have been this object before it was restored.
    """
    listed = (taints for owner, taints in _note(node).items() if owner not in others)
    return tuple({taint.identity: taint for taints in listed for taint in taints}.values())


def _note(node: Node) -> dict[str, tuple[Taint, ...]]:
    """The taints in the Node's annotation, by owner; the annotation may contain anything."""
    try:
        listed = json.loads(node.annotations.get(names.ANNOTATION_APPLIED_TAINTS) or "{}")
    except (ValueError, TypeError, RecursionError):
        return {}
    if isinstance(listed, list):
        return {"": _read(listed)}  # earlier versions did not note the owner
    return {owner: _read(taints) for owner, taints in listed.items()} if isinstance(listed, dict) else {}


def _read(listed: Any) -> tuple[Taint, ...]:
    found = (_noted(one) for one in listed) if isinstance(listed, list) else ()
    return tuple(taint for taint in found if taint is not None)


def _noted(entry: Any) -> Taint | None:
    """A taint that a spec may ask for; what none may ask for, such as one of Kubernetes' own, we never applied."""
    try:
        taint = NodeTaint.parse(entry)
    except ValidationError:
        return None
    return Taint(taint.key, taint.effect.value, taint.value or "")


def write_note(owner: str, taints: Iterable[Taint], node: Node, others: Container[str] = ()) -> str:
    """The annotation's text, stable for equal sets; what it lists for the `others` stays."""
    theirs = {uid: listed for uid, listed in _note(node).items() if uid in others}
    noted = {uid: [to_json(taint) for taint in sorted(listed)] for uid, listed in {**theirs, owner: taints}.items()}
    return json.dumps(noted, separators=(",", ":"), sort_keys=True)


def to_json(taint: Taint) -> dict[str, str]:
    """A taint as the API writes it."""
    optional = {"value": taint.value, "timeAdded": taint.added}
    return {"key": taint.key, "effect": taint.effect, **{name: text for name, text in optional.items() if text}}
