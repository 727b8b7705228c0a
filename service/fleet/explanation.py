"""Why a ScheduledMachine is, or is not, in its cluster: the rule that decides, the facts, and what would change it.

Pure. The rules are those of the operator, in its order. They are asked only if the user may read every input; else the
explanation rests on what the operator reported.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from crds.base import rfc3339
from crds.overrides import deciding
from crds.status import Phase
from service.decide.intent import Intent
from service.decide.lifecycle import RULES
from service.decide.plan import Plan
from service.decide.reasons import Reason
from service.decide.rule import Rule
from service.decide.situation import Situation
from service.fleet import times
from service.fleet.snapshot import Snapshot
from service.fleet.summary import Summary

_STATES = {
    Phase.PENDING: "is about to join the cluster",
    Phase.ACTIVE: "is joining the cluster",
    Phase.SHUTTING_DOWN: "is leaving the cluster",
    Phase.INACTIVE: "is not in the cluster",
    Phase.DISABLED: "is disabled",
    Phase.TERMINATED: "is not in the cluster",
    Phase.EMERGENCY_REMOVE: "is being returned to its owner",
    Phase.ERROR: "needs attention",
}


class Fact(NamedTuple):
    """Something that the decision looked at."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer, from the headline to the details."""

    headline: str
    meaning: str
    """What the reported reason means."""
    passed: tuple[str, ...]
    """When the rules apply that come before the deciding one and do not apply now; empty if not every input is read."""
    rule: str
    """When the deciding rule applies; empty if not every input is read."""
    does: str
    """What that rule does; empty likewise."""
    facts: tuple[Fact, ...]
    changes: tuple[str, ...]
    """What would change it: a boundary of the schedule, or something that a person can do."""
    unread: tuple[str, ...]
    differs: str = ""
    """How the decision differs from what the operator reported, if it does."""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "headline": self.headline,
            "meaning": self.meaning,
            "passed": list(self.passed),
            "rule": self.rule,
            "does": self.does,
            "facts": {fact.name: fact.text for fact in self.facts},
            "changes": list(self.changes),
            "unread": list(self.unread),
            "differs": self.differs,
        }


class _Decided(NamedTuple):
    passed: tuple[Rule, ...]
    rule: Rule
    plan: Plan


def explain(snapshot: Snapshot, summary: Summary, now: datetime) -> Explanation:
    """Why a machine is as it is."""
    decided = _decide(snapshot, now) if snapshot.complete else None
    return Explanation(
        headline=_headline(summary),
        meaning=_meaning(summary.reason),
        passed=tuple(_plain(rule.when) for rule in decided.passed) if decided else (),
        rule=_plain(decided.rule.when) if decided else "",
        does=_plain(decided.rule.then) if decided else "",
        facts=tuple(_facts(snapshot, summary, now)),
        changes=tuple(_changes(summary, now)),
        unread=tuple(snapshot.unread),
        differs=_difference(summary, decided),
    )


def _decide(snapshot: Snapshot, now: datetime) -> _Decided:
    situation = Situation.at(snapshot.subject.intent, snapshot.world, now)
    for number, rule in enumerate(RULES):
        plan = rule(situation)
        if plan is not None:
            return _Decided(RULES[:number], rule, plan)
    raise AssertionError("outside_window applies to everything")


def _headline(summary: Summary) -> str:
    state = "is in the cluster and Ready" if summary.ready else _STATES.get(summary.status.phase or Phase.PENDING, "")
    message = summary.message or (summary.attention[0] if summary.attention else "")
    return f"{summary.namespace}/{summary.name} {state}. {message}".rstrip()


def _meaning(reason: str) -> str:
    known = Reason._value2member_map_.get(reason)
    return known.meaning if isinstance(known, Reason) else ""


_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def _plain(text: str) -> str:
    """Without the links that the same text has in the documentation."""
    return _LINK.sub(r"\1", text)


def _facts(snapshot: Snapshot, summary: Summary, now: datetime) -> Iterator[Fact]:
    intent, world, me = snapshot.subject.intent, snapshot.world, snapshot.subject.me
    yield Fact("being deleted", f"since {rfc3339(me.deleting_since)}" if me.deleting_since else "no")
    yield Fact("kill switch", "on" if intent.kill_switch else "off")
    yield Fact("reclaim", _reclaim(summary))
    yield Fact("schedule", _schedule(snapshot, summary, now))
    yield Fact("override", _override(snapshot, summary, now))
    of_class = _class(intent)
    if of_class:
        yield Fact("class", of_class)
    yield Fact("Cluster", _cluster(snapshot))
    yield Fact("Machine", _machine(snapshot, summary))
    yield Fact("Node", _node(snapshot, summary))
    if summary.held_up:
        yield Fact("shutdown", summary.held_up)
    if world.foreign:
        yield Fact("objects of others", ", ".join(f"{each.kind} {each.name}" for each in world.foreign))


def _machine(snapshot: Snapshot, summary: Summary) -> str:
    machine = snapshot.world.our_machine
    if machine is None:
        return "none"
    deleting = ", being deleted" if machine.deleting else ""
    return f"{machine.child.name}, {summary.machine_phase or 'exists'}{deleting}"


def _class(intent: Intent) -> str:
    if intent.class_problem is not None:
        return intent.class_problem.message
    return intent.spec.class_ref.name if intent.spec is not None and intent.spec.class_ref is not None else ""


def _reclaim(summary: Summary) -> str:
    status = summary.status
    if status.reclaim:
        return f"in progress, requested by Node {status.reclaim.node}"
    return f"Node {status.last_reclaim.node} claimed its host back" if status.last_reclaim else "none"


def _schedule(snapshot: Snapshot, summary: Summary, now: datetime) -> str:
    intent = snapshot.subject.intent
    if intent.schedule is None:
        why = intent.undecidable.message if intent.undecidable else "; ".join(intent.problems)
        return f"{summary.schedule}: it cannot be read: {why}"
    state = "a window is open" if intent.covers(now) else "no window is open"
    paused = "" if intent.enabled else "; disabled"
    return f"{summary.schedule}: {state} at {times.clock_of(summary.zone, now, now)} {summary.zone}{paused}"


def _override(snapshot: Snapshot, summary: Summary, now: datetime) -> str:
    found = deciding(snapshot.subject.intent.overrides, now)
    if found is None:
        return "none in force"
    by = f", requested by {found.requested_by}" if found.requested_by else ""
    return f"{found.name}: {found.state.value} until {times.both(summary.zone, found.ends, now)}{by}"


def _node(snapshot: Snapshot, summary: Summary) -> str:
    node = snapshot.world.node
    if node is None:
        return summary.node or "none"
    ready = "Ready" if node.ready else "not Ready"
    cordoned = ", cordoned" if node.unschedulable else ""
    return f"{node.name}, {ready}{cordoned}"


def _cluster(snapshot: Snapshot) -> str:
    world, name = snapshot.world, snapshot.subject.intent.cluster_name
    if world.contract is None:
        return "not known: Cluster API is not installed"
    if world.cluster is None:
        return f"{name} {'does not exist' if snapshot.complete else 'was not read'}"
    state = [
        word for word, true in (("paused", world.cluster.paused), ("being deleted", world.cluster.deleting)) if true
    ]
    return f"{name}, {' and '.join(state) or 'exists'}"


def _changes(summary: Summary, now: datetime) -> Iterator[str]:
    if summary.next is not None:
        what, at = summary.next.what, summary.next.at
        yield f"{_WHAT[what]} {times.clock(at, now)}, {times.relative(at, now)}"
    known = Reason._value2member_map_.get(summary.reason)
    if isinstance(known, Reason) and known.remedy:
        yield known.remedy


_WHAT = {
    "opens": "the next window opens at",
    "closes": "the window closes at",
    "gone by": "the machine is removed at the latest at",
}


_KNOWN_TO_THE_OPERATOR: Final = (Reason.WAITING_FOR_TURN, Reason.WOULD_CREATE, Reason.WOULD_DELETE)
"""Whose turn it is, and what its settings make a dry run, only the operator knows."""


def _difference(summary: Summary, decided: _Decided | None) -> str:
    if decided is None or summary.status.phase is None or decided.plan.phase is summary.status.phase:
        return ""
    if summary.reason in _KNOWN_TO_THE_OPERATOR:
        return ""
    return (
        f"The operator reported {summary.phase}; by what you can read now it would be {decided.plan.phase}. It may be "
        "about to act, or it knows something that you cannot read."
    )
