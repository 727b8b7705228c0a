"""One ScheduledMachine at one instant, and the deadlines that follow from it; the input of every rule."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from service.decide.effective import Effective, Leads
from service.decide.intent import Intent
from service.decide.openings import latest_window
from service.decide.reasons import Reason
from service.decide.world import Problem, World

SMALL_STEP_BACK: Final = timedelta(minutes=5)
"""A clock that is set back by less than this cancels neither a shutdown nor a creation."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Intent, world and time."""

    intent: Intent
    world: World
    now: datetime
    effective: Effective
    """The schedule with its overrides and leads."""
    leads: Leads
    """Those leads, but for a machine that exists already and whose lead has been shortened since."""

    @classmethod
    def at(cls, intent: Intent, world: World, now: datetime) -> "Situation":
        """The situation; a clock a little behind the start of the shutdown or of the machine counts as that start."""
        leads, noted = _leads(intent, world, now), latest_window(world)
        effective = intent.effective if leads == intent.leads else replace(intent.effective, leads=leads)
        # Only an opening ahead matters: in its lead a machine exists before its window opens.
        starts = effective.start_for(noted) if noted is not None and noted > now else None
        passed = filter(None, (world.status.shutdown_started_at, starts))
        ahead = (instant for instant in passed if timedelta(0) < instant - now < SMALL_STEP_BACK)
        counted = max(ahead, default=now)
        return cls(intent, world, counted, effective.already_requested(noted, counted), leads)

    @property
    def open(self) -> bool:
        """Whether the machine should be there."""
        return self.effective.wanted(self.now)

    @property
    def shutdown_started(self) -> datetime | None:
        """When the shutdown in progress started; None if the clock has since been set back by a long time."""
        started = self.world.status.shutdown_started_at
        return started if started is not None and started <= self.now else None

    @property
    def grace_deadline(self) -> datetime:
        """When the shutdown must be over."""
        return (self.shutdown_started or self.now) + self.intent.grace

    @property
    def drain_deadline(self) -> datetime:
        """When draining must be over: the shorter of the two timeouts wins."""
        return (self.shutdown_started or self.now) + min(self.intent.drain, self.intent.grace)

    @property
    def drain_warning(self) -> datetime:
        """When a drain that is not over counts as blocked: a third of its time is over."""
        started = self.shutdown_started or self.now
        return started + (self.drain_deadline - started) / 3


def _leads(intent: Intent, world: World, now: datetime) -> Leads:
    """The leads, with what was learnt if a service has ended and its window is closed.

    While a window is open or its lead has begun, no lead changes: a machine would leave or return for a few minutes.
    """
    if not intent.lead_rules.is_auto or not world.all_gone:
        return intent.leads
    known, last = world.status, world.status.history.current
    if last is None and not (known.window and known.window.closes and known.window.closes <= now):
        return intent.leads
    effective = intent.effective
    window = effective.window(now)
    if effective.wanted(now) or (window is not None and window.opens <= now):
        return intent.leads
    records = known.history.records
    ended = (last.model_copy(update={"gone": now}),) if last else ()
    return intent.lead_rules.after((*records[: len(records) - len(ended)], *ended))


def cluster_problem(s: Situation) -> Problem | None:
    """What is wrong with the Cluster that the machine joins."""
    cluster, name = s.world.cluster, s.intent.cluster_name
    if s.world.contract is None or name is None or (cluster is not None and not cluster.deleting):
        return None
    if cluster is not None:
        return Problem(Reason.CLUSTER_DELETING, f"Cluster {name} is being deleted.")
    message = (
        f"Cluster {name} does not exist in namespace {s.world.me.namespace}; create it, or correct spec.clusterName."
    )
    return Problem(Reason.CLUSTER_NOT_FOUND, message)
