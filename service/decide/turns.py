"""Order in a crowd: a Cluster may limit how many machines are provisioned and how many are drained at a time.

Observation offers the turns, rules use them: a plan that creates a Machine, or begins a shutdown, takes a turn, or
waits for one. The kill switch, reclaims and deletions do not wait.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from crds import names
from crds.schedule import EVER
from crds.scheduledmachine import DEFAULT_PROVISIONING_TIMEOUT
from crds.status import Phase
from service.decide.phases import machine_failure, node_is_ours
from service.decide.plan import Create, Plan, RecordShutdown, earliest
from service.decide.precedence import HIGHEST, precedence
from service.decide.readiness import is_new
from service.decide.reasons import Reason
from service.decide.situation import Situation
from service.decide.world import Role, Turn, World

PRIORITY_WORTH: Final = timedelta(hours=1)
"""The highest priority counts as this much waiting: it goes first among equals, and no machine waits for ever."""
LIMIT_DIGITS: Final = 6


class Queueing(StrEnum):
    """What machines queue for."""

    PROVISIONING = "provisioning"
    DRAINING = "draining"


ANNOTATIONS: Final = {
    Queueing.PROVISIONING: names.ANNOTATION_MAX_PROVISIONING,
    Queueing.DRAINING: names.ANNOTATION_MAX_DRAINING,
}


def limit_of(queueing: Queueing, annotations: Mapping[str, str], default: int) -> int:
    """How many machines of a Cluster may be on the way at once, 0 for no limit; its annotation outranks the setting."""
    found = read_limit(annotations.get(ANNOTATIONS[queueing], ""))
    return default if found is None else found


def read_limit(text: str) -> int | None:
    """The number in an annotation; None if there is none."""
    digits = text.strip()
    valid = digits.isascii() and digits.isdigit() and len(digits) <= LIMIT_DIGITS
    return int(digits) if valid else None


def taken(plan: Plan) -> Queueing | None:
    """The turn that a plan takes by what it does."""
    for action in plan.actions:
        if isinstance(action, Create) and action.role is Role.MACHINE:
            return Queueing.PROVISIONING
        if isinstance(action, RecordShutdown) and action.started_at is not None:
            return Queueing.DRAINING
    return None


def awaited(plan: Plan) -> Queueing | None:
    """The turn that a plan waits for."""
    if plan.reason is not Reason.WAITING_FOR_TURN:
        return None
    return Queueing.DRAINING if plan.phase is Phase.SHUTTING_DOWN else Queueing.PROVISIONING


def rank(s: Situation, queueing: Queueing) -> float:
    """The place in the queue, smallest first: when it was due, less what the priority is worth."""
    has_machine = queueing is Queueing.DRAINING
    head_start = PRIORITY_WORTH * (precedence(s.intent.priority, has_machine=has_machine) / HIGHEST)
    due = waiting_since(s) if has_machine else _wanted_since(s)
    return (due - head_start).timestamp()


def _wanted_since(s: Situation) -> datetime:
    """When the machine should have been requested; a window that has always been open counts from the first wait."""
    window = s.effective.window(s.now)
    if window is None or window.opens == EVER:
        return waiting_since(s)
    return min(s.effective.start_for(window.opens), s.now)


def waiting_since(s: Situation) -> datetime:
    """Since when it waits for a turn; now, if it has not waited yet."""
    since = s.world.status.waiting_since
    return since if since is not None and since <= s.now else s.now


def or_turn_to_create(s: Situation, plan: Plan) -> Plan:
    """The plan, or to wait if it creates a Machine and others go first."""
    turn = s.world.turns.provisioning
    if turn is None or turn.granted or taken(plan) is not Queueing.PROVISIONING:
        return plan
    message = f"Waiting for a turn: {_limited(s, turn, 'provisioned')}."
    return Plan(Phase.PENDING, Reason.WAITING_FOR_TURN, message)


def or_turn_to_drain(s: Situation, plan: Plan) -> Plan:
    """The plan, or to wait if it begins a shutdown and others go first; at most for the grace period."""
    turn, machine = s.world.turns.draining, s.world.our_machine
    if turn is None or turn.granted or taken(plan) is not Queueing.DRAINING:
        return plan
    if machine is None or machine.deleting:
        return plan
    latest = waiting_since(s) + s.intent.grace
    if s.now >= latest:
        return plan
    message = (
        f"Waiting for a turn to shut down: {_limited(s, turn, 'drained')}. It begins at {latest:%Y-%m-%d %H:%M:%S} UTC "
        "at the latest."
    )
    waits = Plan(Phase.SHUTTING_DOWN, Reason.WAITING_FOR_TURN, message)
    return replace(waits, requeue_at=earliest(waits.requeue_at, latest))


def _limited(s: Situation, turn: Turn, what: str) -> str:
    go = {0: "this one is next", 1: "1 other goes first"}.get(turn.ahead, f"{turn.ahead} others go first")
    cluster = s.intent.cluster_name
    if turn.limit == 1:
        return f"at most 1 machine of Cluster {cluster} is {what} at once, and {go}"
    return f"at most {turn.limit} machines of Cluster {cluster} are {what} at once, and {go}"


def provisioning_until(s: Situation) -> datetime | None:
    """Until when the machine counts as being provisioned, unless its Node is Ready before; None if it does not."""
    machine, world = s.world.our_machine, s.world
    if machine is None or machine.deleting or s.shutdown_started is not None or machine_failure(world) is not None:
        return None
    if _was_ready(world):
        return None
    timeout = s.intent.spec.provisioning_timeout if s.intent.spec else DEFAULT_PROVISIONING_TIMEOUT
    created = None if is_new(world) else world.status.last_scheduled_time
    return _ahead((created or s.now) + timeout, s.now)


def draining_until(s: Situation, started: datetime | None) -> datetime | None:
    """Until when the machine counts as being drained, unless its Machine is gone before; None if it does not."""
    if s.world.our_machine is None or started is None:
        return None
    return _ahead(started + s.intent.grace, s.now)


def _was_ready(world: World) -> bool:
    if world.status.first_ready_time is not None and not is_new(world):
        return True
    return world.node is not None and world.node.ready and node_is_ours(world)


def _ahead(until: datetime, now: datetime) -> datetime | None:
    return until if now < until else None
