"""The rules of a ScheduledMachine's life, in order; the first that applies decides.

Called by the reconciler with what was observed; pure, so that tests, dry runs and crash tests need nothing but data.
The table of rules in docs/lifecycle.md is generated from `RULES`.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from crds.calendars import Undecidable
from crds.classes import ClassProblem
from crds.overrides import OverrideState
from crds.status import Phase
from service.decide.activation import activate
from service.decide.drain import pods_unknown
from service.decide.dryrun import without_actions
from service.decide.intent import Intent
from service.decide.plan import Plan, ReleaseFinalizer, earliest
from service.decide.reasons import Reason, read_reason
from service.decide.reclaim import (
    current_reclaim,
    disabling_reclaim,
    reclaim,
    reclaim_message,
    unacknowledged_message,
    with_agent_actions,
)
from service.decide.removal import RETRY_PAUSE, plan_from, remove, uncordon, with_recorded_start
from service.decide.rule import Rule, rule
from service.decide.situation import Situation, cluster_problem
from service.decide.turns import or_turn_to_drain
from service.decide.visibility import unreadable_objects
from service.decide.world import World

RELEASE_AFTER: Final = timedelta(minutes=10)
"""How long after the grace a deletion may hang before the controller releases its finalizer, children or not."""


def decide(intent: Intent, world: World, now: datetime) -> Plan:
    """What to do about one ScheduledMachine at one instant."""
    situation = Situation.at(intent, world, now)
    for applies in RULES:
        plan = applies(situation)
        if plan is not None:
            whole = with_agent_actions(situation, plan)
            dry = world.dry_run and applies in BY_SCHEDULE
            return _with_requeue(without_actions(situation, whole) if dry else whole, situation)
    raise AssertionError("outside_window applies to everything")


def _with_requeue(plan: Plan, s: Situation) -> Plan:
    if pods_unknown(s.world) and plan.requeue_after is None:
        # Only the list of pods failed, whatever the rule. If the whole cluster is down, its watch wakes the object.
        plan = replace(plan, requeue_after=s.world.pods_requeue_after or RETRY_PAUSE)
    if s.world.me.deleting_since:
        return replace(plan, deleting=True)
    return replace(plan, requeue_at=earliest(plan.requeue_at, s.effective.look_again(s.now)))


@rule(
    when="the Cluster is paused, or the object carries the annotation `cluster.x-k8s.io/paused`",
    then="nothing is changed, and a deletion waits",
    phase="as before, with condition `Paused=True`",
)
def paused(s: Situation) -> Plan | None:
    """Change nothing; a deletion waits, too.

    A shutdown in progress starts again afterwards: the pause must not use up the time for the drain.
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


@rule(
    when="the object is being deleted",
    then="the machine is removed as at the end of a window, or at once if the kill switch is on or a reclaim is in "
    "progress; then the finalizer is released, at the latest ten minutes after the time limit",
    phase="ShuttingDown",
)
def being_deleted(s: Situation) -> Plan | None:
    """Remove the machine, then release the finalizer; never block the deletion of a namespace for ever."""
    since = s.world.me.deleting_since
    if since is None:
        return None
    if not s.world.me.finalized:
        return Plan(Phase.SHUTTING_DOWN, Reason.RELEASED, "The controller has released its finalizer.")
    if s.world.all_gone:
        return Plan(Phase.SHUTTING_DOWN, Reason.DELETED, "All objects are gone.", actions=(ReleaseFinalizer(),))
    at_once = s.intent.kill_switch or current_reclaim(s) is not None
    # Counted from the first pass, not from the request: the operator may have been down, or paused, for long.
    removal = with_recorded_start(s, remove(s, at_once=at_once, why="the ScheduledMachine was deleted"))
    grace = timedelta(0) if at_once else s.intent.grace
    release = max(removal.shutdown or since, since) + grace + RELEASE_AFTER
    if s.now >= release:
        message = f"Gave up waiting for {_remaining(s.world)}; it is left behind."
        plan = Plan(
            Phase.SHUTTING_DOWN, Reason.FINALIZER_RELEASED, message, actions=(ReleaseFinalizer(),), problem=True
        )
        # Keep the start of the shutdown: should the release fail, the wait must not start again.
        return replace(plan, shutdown=removal.shutdown)
    plan = plan_from(Phase.SHUTTING_DOWN, removal)
    return replace(plan, requeue_at=earliest(plan.requeue_at, release))


def _remaining(world: World) -> str:
    seen = [f"{child.kind} {child.name}" for child in world.children]
    unread = [f"the {role} object, which cannot be read" for role in sorted(world.unreadable)]
    return ", ".join([*seen, *unread]) or "the Machine"


@rule(
    when="`spec.killSwitch` is true",
    then="the machine is removed at once: no grace and no drain, neither ours nor Cluster API's",
    phase="Terminated",
)
def kill_switch(s: Situation) -> Plan | None:
    """Remove at once: no grace, no drain, neither ours nor CAPI's."""
    if not s.intent.kill_switch:
        return None
    if s.world.all_gone:
        message = "Removed by the kill switch. Set spec.killSwitch to false to return it to service."
        return Plan(Phase.TERMINATED, Reason.KILL_SWITCH, message)
    removal = remove(s, at_once=True, why="the kill switch is on")
    return replace(plan_from(Phase.TERMINATED, removal), reason=Reason.TERMINATING)


@rule(
    when="`spec.schedule.enabled` is false, or a reclaim [is not acknowledged]"
    "(emergency-reclaim-agent.md#with-an-acknowledgement)",
    then="nothing is created or removed; a shutdown in progress is cancelled, a deletion that has begun is finished",
    phase="Disabled",
)
def disabled(s: Situation) -> Plan | None:
    """Leave everything as it is; only a deletion that has been requested is finished."""
    if s.intent.enabled:
        return None
    reason, message = _why_disabled(s)
    machine = s.world.our_machine
    finishing = s.world.children and (machine.deleting if machine else s.shutdown_started is not None)
    if finishing:
        removal = remove(s, at_once=False, why="finishing a deletion that was in progress")
        plan = plan_from(Phase.DISABLED, removal)
        return replace(plan, reason=reason, message=f"{message} {removal.message}")
    return Plan(Phase.DISABLED, reason, message, actions=uncordon(s.world))


def _why_disabled(s: Situation) -> tuple[Reason, str]:
    if s.intent.unacknowledged is not None:
        return Reason.RECLAIM_NOT_ACKNOWLEDGED, unacknowledged_message(s)
    cause = disabling_reclaim(s.world)
    return Reason.DISABLED, reclaim_message(cause, s) if cause else _disabled_message(s.world)


def _disabled_message(world: World) -> str:
    machine = world.our_machine
    if machine is None or machine.deleting:
        return "The schedule is disabled. Set spec.schedule.enabled to true to resume."
    return (
        f"The schedule is disabled, and Machine {machine.child.name} keeps running. Set spec.schedule.enabled to true "
        "to resume, or spec.killSwitch to true to remove it."
    )


@rule(
    when="the Cluster is missing or being deleted",
    then="nothing is created, and the machine is removed",
    phase="ShuttingDown, then Inactive",
)
def cluster_missing(s: Situation) -> Plan | None:
    """Remove the machine: without its Cluster it is of no use, and CAPI waits for it before it deletes a Cluster."""
    found = cluster_problem(s)
    if found is None or (s.world.unreadable and not s.world.children):
        return None  # objects that cannot be read may exist: the rule for those decides
    if not s.world.children:
        message = f"{found.message} No Machine is created without its Cluster."
        return Plan(Phase.INACTIVE, found.reason, message, problem=s.open)
    removal = remove(s, at_once=False, why=found.message.partition(";")[0].rstrip("."))
    plan = plan_from(Phase.SHUTTING_DOWN, removal)
    return replace(plan, reason=found.reason, message=f"{found.message} {removal.message}")


@rule(
    when="the schedule cannot be read: the spec is invalid, or a calendar is missing or cannot be read, and no "
    "override is in force",
    then="nothing is created or removed",
    phase="Error",
)
def unreadable_schedule(s: Situation) -> Plan | None:
    """Leave everything as it is: without a schedule the controller cannot tell whether the machine should run."""
    if s.effective.is_known(s.now):
        return None
    if s.intent.calendars_pending:
        return Plan(
            s.world.status.phase or Phase.PENDING,
            Reason.CALENDAR_NOT_FOUND,
            "The controller has not read the calendars of the schedule yet.",
            shutdown=s.shutdown_started,
        )
    if s.intent.undecidable is not None:
        return _undecidable(s, s.intent.undecidable)
    stays = " The machine keeps running until the schedule is corrected." if s.world.children else ""
    return _invalid(s, _problems(s.intent) + stays)


def _undecidable(s: Situation, why: Undecidable) -> Plan:
    """Leave the machine as it is until every calendar of the schedule can be read."""
    stays = "The machine keeps running" if s.world.children else "No machine is created"
    message = f"The schedule cannot be read: {why.message}. {stays} until that is corrected."
    return replace(_invalid(s, message), reason=read_reason(why.problem))


def _incomplete(s: Situation) -> Plan:
    """Create nothing: the spec is invalid, or its class cannot be used; removal goes on by the schedule."""
    why = s.intent.class_problem
    if why is None:
        return _invalid(s, _problems(s.intent))
    if why.problem is ClassProblem.UNKNOWN:
        phase = s.world.status.phase or Phase.PENDING
        return Plan(phase, Reason.CLASS_NOT_FOUND, f"Waiting: {why.message}.", shutdown=s.shutdown_started)
    stays = " The machine keeps running until its window closes." if s.world.children else ""
    message = f"{why.message}. No machine is created until that is corrected.{stays}"
    return replace(_invalid(s, message), reason=read_reason(why.problem))


def _invalid(s: Situation, message: str) -> Plan:
    """Create nothing; uncordon a machine that stays, but not one that is being deleted."""
    machine = s.world.our_machine
    stays = machine is not None and not machine.deleting
    return Plan(
        phase=Phase.ERROR,
        reason=Reason.INVALID_SPEC,
        message=message,
        actions=uncordon(s.world) if stays else (),
        problem=True,
        shutdown=None if stays or not s.world.children else s.shutdown_started,
    )


@rule(
    when="an override says so, else a window is open; from `startEarly` before its opening to `stopEarly` before its "
    "close",
    then="bootstrap object, infrastructure object and Machine are created and kept up to date",
    phase="Pending, then Active; Error while that fails",
)
def inside_window(s: Situation) -> Plan | None:
    """Ensure that the machine exists and is as it should be."""
    if not s.open:
        return None
    if s.intent.spec is None:
        return _incomplete(s)
    return activate(s, s.intent.spec)


@rule(
    when="no window is open, with overrides and leads",
    then="if the machine exists: cordon, evict, delete; else wait for the next window",
    phase="ShuttingDown, then Inactive",
)
def outside_window(s: Situation) -> Plan:
    """Remove the machine, or wait for the next window."""
    if s.world.children or s.world.machine_unknown:
        return or_turn_to_drain(s, plan_from(Phase.SHUTTING_DOWN, remove(s, at_once=False, why=_why_closed(s))))
    if s.intent.spec is None:
        return _incomplete(s)
    waiting = _waiting(s)
    if s.effective.skips(s.now):
        message = f"schedule.stopEarly leaves no time in the window that is open. {waiting}"
        return Plan(Phase.INACTIVE, Reason.WINDOW_SKIPPED, message, problem=True)
    return Plan(Phase.INACTIVE, Reason.OUTSIDE_SCHEDULE, waiting)


def _why_closed(s: Situation) -> str:
    override = s.effective.override(s.now)
    if override is not None and override.state is OverrideState.CLOSED:
        return f"override {override.name} is in force"
    window = s.effective.window(s.now) if s.effective.leads.stop else None
    if window is not None and window.opens <= s.now:
        return f"the window closes at {window.closes:%Y-%m-%d %H:%M:%S} UTC, and schedule.stopEarly is before that"
    return "the window closed"


def _waiting(s: Situation) -> str:
    """What the machine waits for: the next window, and when it is requested if that is earlier."""
    starts, window = s.effective.next_start(s.now), s.effective.window(s.now)
    if starts is None:
        return "No window will open."
    if window is None or not starts < window.opens:
        return f"Waiting for the next window at {starts:%Y-%m-%d %H:%M} UTC."
    lead = f"the machine is requested at {starts:%H:%M:%S}"
    return f"Waiting for the next window at {window.opens:%Y-%m-%d %H:%M} UTC; {lead}."


BY_SCHEDULE: Final[tuple[Rule, ...]] = (
    cluster_missing,
    unreadable_schedule,
    unreadable_objects,
    inside_window,
    outside_window,
)
"""What a dry run covers."""

RULES: Final[tuple[Rule, ...]] = (
    paused,
    being_deleted,
    kill_switch,
    reclaim,
    disabled,
    *BY_SCHEDULE,
)


def _problems(intent: Intent) -> str:
    return "The spec is invalid: " + "; ".join(intent.problems)
