"""The rules of a ScheduledMachine's life, in order; the first that applies decides.

Called by the reconciler with what was observed; pure, so that tests, dry runs and crash tests need nothing but data.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from crds.status import Phase
from service.decide.activation import activate, next_boundary
from service.decide.drain import pods_unknown
from service.decide.intent import Intent
from service.decide.plan import Plan, ReleaseFinalizer, earliest
from service.decide.reasons import Reason
from service.decide.reclaim import current_reclaim, disabling_reclaim, reclaim, reclaim_message, with_agent_actions
from service.decide.removal import RETRY_PAUSE, plan_from, remove, uncordon, with_recorded_start
from service.decide.situation import Situation, cluster_problem
from service.decide.visibility import unreadable_objects
from service.decide.world import World

RELEASE_AFTER: Final = timedelta(minutes=10)
"""How long after the grace a deletion may hang before we let the object go, children or not."""

Rule = Callable[[Situation], Plan | None]


def decide(intent: Intent, world: World, now: datetime) -> Plan:
    """What to do about one ScheduledMachine at one instant."""
    situation = Situation.at(intent, world, now)
    for rule in RULES:
        plan = rule(situation)
        if plan is not None:
            return _with_requeue(with_agent_actions(situation, plan), situation)
    raise AssertionError("outside_window applies to everything")


def _with_requeue(plan: Plan, s: Situation) -> Plan:
    if pods_unknown(s.world) and plan.requeue_after is None:
        # One question that went wrong, whatever the rule. That a whole cluster comes back is told by its watch.
        plan = replace(plan, requeue_after=s.world.pods_requeue_after or RETRY_PAUSE)
    if s.world.me.deleting_since:
        return replace(plan, final=True)
    return replace(plan, requeue_at=earliest(plan.requeue_at, next_boundary(s)))


def paused(s: Situation) -> Plan | None:
    """Somebody wants nothing touched; deletion waits too.

    A shutdown under way begins anew afterwards: time in which nothing may be done is no time to drain in.
    """
    if not s.world.paused:
        return None
    before = s.world.status
    by = "this ScheduledMachine" if s.world.me.paused else f"Cluster {s.intent.cluster_name}"
    deleting = s.world.me.deleting_since is not None
    message = f"Paused by {by}; " + ("deletion waits until it is resumed." if deleting else "nothing is changed.")
    return Plan(
        before.phase or Phase.PENDING,
        Reason.DELETION_PAUSED if deleting else Reason.PAUSED,
        message,
        problem=deleting,
    )


def being_deleted(s: Situation) -> Plan | None:
    """Remove the machine, then let the object go; never hold a namespace hostage."""
    since = s.world.me.deleting_since
    if since is None:
        return None
    if not s.world.me.finalized:
        return Plan(Phase.SHUTTING_DOWN, Reason.RELEASED, "Nothing holds this object any more.")
    if s.world.all_gone:
        return Plan(Phase.SHUTTING_DOWN, Reason.DELETED, "Everything is gone.", actions=(ReleaseFinalizer(),))
    at_once = s.intent.kill_switch or current_reclaim(s) is not None
    # Counted from the first look, not from the request: we may have been away, or paused, for long.
    removal = with_recorded_start(s, remove(s, at_once=at_once, why="the ScheduledMachine was deleted"))
    grace = timedelta(0) if at_once else s.intent.grace
    release = max(removal.shutdown or since, since) + grace + RELEASE_AFTER
    if s.now >= release:
        message = f"Gave up waiting for {_remaining(s.world)}; it is left behind."
        plan = Plan(
            Phase.SHUTTING_DOWN, Reason.FINALIZER_RELEASED, message, actions=(ReleaseFinalizer(),), problem=True
        )
        # Should that fail, it is still over: without its beginning all of the waiting would begin anew.
        return replace(plan, shutdown=removal.shutdown)
    plan = plan_from(Phase.SHUTTING_DOWN, removal)
    return replace(plan, requeue_at=earliest(plan.requeue_at, release))


def _remaining(world: World) -> str:
    seen = [f"{child.kind} {child.name}" for child in world.children]
    unseen = [f"the {role} object, which cannot be seen" for role in sorted(world.unreadable)]
    return ", ".join([*seen, *unseen]) or "the Machine"


def kill_switch(s: Situation) -> Plan | None:
    """Remove at once: no grace, no drain, neither ours nor CAPI's."""
    if not s.intent.kill_switch:
        return None
    if s.world.all_gone:
        message = "Removed by the kill switch. Set spec.killSwitch to false to return it to service."
        return Plan(Phase.TERMINATED, Reason.KILL_SWITCH, message)
    removal = remove(s, at_once=True, why="the kill switch is on")
    return replace(plan_from(Phase.TERMINATED, removal), reason=Reason.TERMINATING)


def disabled(s: Situation) -> Plan | None:
    """Hands off; only a deletion that was already asked for is finished."""
    if s.intent.enabled:
        return None
    cause = disabling_reclaim(s.world)
    plain = "The schedule is disabled; set spec.schedule.enabled to true to resume."
    message = reclaim_message(cause, s.world.me) if cause else plain
    machine = s.world.our_machine
    finishing = s.world.children and (machine.leaving if machine else s.shutdown_started is not None)
    if finishing:
        removal = remove(s, at_once=False, why="a deletion under way is finished")
        return replace(
            plan_from(Phase.DISABLED, removal), reason=Reason.DISABLED, message=f"{message} {removal.message}"
        )
    return Plan(Phase.DISABLED, Reason.DISABLED, message, actions=uncordon(s.world))


def cluster_missing(s: Situation) -> Plan | None:
    """Nothing can live without its Cluster; CAPI waits for what is ours before it lets a Cluster go."""
    found = cluster_problem(s)
    if found is None or (s.world.unreadable and not s.world.children):
        return None  # what cannot be seen is not called gone: another rule tells of it
    reason, message = found.reason, found.message
    if not s.world.children:
        return Plan(Phase.INACTIVE, reason, f"{message} Nothing is created without its Cluster.", problem=s.open)
    removal = remove(s, at_once=False, why=message.rstrip("."))
    plan = plan_from(Phase.SHUTTING_DOWN, removal)
    return replace(plan, reason=reason, message=f"{message} {removal.message}")


def unreadable_schedule(s: Situation) -> Plan | None:
    """Without a schedule nobody can say whether the machine should run: what is there stays."""
    if s.intent.schedule is not None:
        return None
    stays = " What runs stays until it is mended." if s.world.children else ""
    return _invalid(s, _problems(s.intent) + stays)


def _invalid(s: Situation, message: str) -> Plan:
    """Create nothing; a machine that stays can be used again, one that is leaving is on its way."""
    machine = s.world.our_machine
    stays = machine is not None and not machine.leaving
    return Plan(
        phase=Phase.ERROR,
        reason=Reason.INVALID_SPEC,
        message=message,
        actions=uncordon(s.world) if stays else (),
        problem=True,
        shutdown=None if stays or not s.world.children else s.shutdown_started,
    )


def inside_window(s: Situation) -> Plan | None:
    """Ensure that the machine exists and is as it should be."""
    if not s.open:
        return None
    if s.intent.spec is None:
        return _invalid(s, _problems(s.intent))
    return activate(s, s.intent.spec)


def outside_window(s: Situation) -> Plan:
    """Remove the machine, or wait for the next window."""
    if s.world.children or s.world.machine_unknown:
        return plan_from(Phase.SHUTTING_DOWN, remove(s, at_once=False, why="the window closed"))
    if s.intent.spec is None:
        return _invalid(s, _problems(s.intent))
    opens = next_boundary(s)
    waiting = f"Waiting for the next window at {opens:%Y-%m-%d %H:%M} UTC." if opens else "No window is ahead."
    return Plan(Phase.INACTIVE, Reason.OUTSIDE_SCHEDULE, waiting)


RULES: Final[tuple[Rule, ...]] = (
    paused,
    being_deleted,
    kill_switch,
    reclaim,
    disabled,
    cluster_missing,
    unreadable_schedule,
    unreadable_objects,
    inside_window,
    outside_window,
)


def _problems(intent: Intent) -> str:
    return "The spec is invalid: " + "; ".join(intent.problems)
