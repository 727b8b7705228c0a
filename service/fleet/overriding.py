"""What an override for one machine has to say: to stay late, to stay out, to skip a window, to return to the schedule.

Pure: the command line and the console ask it, then send the result with `service.fleet.requests`. Times are instants;
whose clock they are shown on is up to the caller.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from crds.base import rfc3339
from crds.overrides import Override, OverrideState, deciding
from crds.schedule import FOREVER
from crds.values import Zone, format_duration
from service.decide.effective import Effective
from service.decide.overridden import Overridden
from service.fleet import times
from service.fleet.overrides import ListedOverride, Standing
from service.kube.resource import SCHEDULE_OVERRIDES

Raw = dict[str, Any]
Ending = datetime | timedelta
"""When an override ends: at an instant, or after a time."""
LONGEST: Final = timedelta(days=366)
"""No operator can be set to accept more."""


class PointlessError(Exception):
    """The override would change nothing, or cannot be worked out; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class OverridableMachine:
    """A ScheduledMachine, what decides about it, and what outranks every override of it now."""

    namespace: str
    name: str
    zone: Zone
    effective: Effective
    """Its schedule with the overrides that count."""
    overrides: tuple[ListedOverride, ...] = ()
    """All that name or select it."""
    unreadable: str = ""
    """Why its schedule cannot be read; empty if it can."""
    outranked: tuple[str, ...] = ()
    """What decides in spite of every override, each in a sentence."""
    notes: tuple[str, ...] = ()
    """What could not be read for want of a right, each in a sentence."""
    unacknowledged: str | None = None
    """When a reclaim took it out of service that no user has acknowledged yet; None if there is none."""

    def clock(self, at: datetime, now: datetime) -> str:
        """An instant on the schedule's clock and, if that shows something else, on the user's."""
        return times.both(self.zone, at, now)


@dataclass(frozen=True, slots=True)
class Draft:
    """An override that is to be created."""

    namespace: str
    machine: str
    state: OverrideState
    until: datetime
    begins: datetime | None = None
    """None: at once."""
    reason: str = ""

    def body(self, requested_by: str, now: datetime) -> Raw:
        """The manifest. Its name ends in the time: of two overrides of one second, the later one decides."""
        spec = {
            "machines": [self.machine],
            "state": self.state.value,
            "from": rfc3339(self.begins) if self.begins else None,
            "until": rfc3339(self.until),
            "reason": self.reason or None,
            "requestedBy": requested_by,
        }
        given = {key: value for key, value in spec.items() if value is not None}
        metadata = {"name": _named(self.machine, now), "namespace": self.namespace}
        return {**SCHEDULE_OVERRIDES.envelope(), "metadata": metadata, "spec": given}

    def added_to(self, effective: Effective, now: datetime) -> Effective:
        """What decides once the override exists."""
        begins = self.begins or _second(now)
        added = Override(_named(self.machine, now), self.state, begins, self.until, created=now)
        return replace(effective, overrides=(*effective.overrides, added))


@dataclass(frozen=True, slots=True)
class Resumption:
    """How a machine returns to its schedule: overrides of its own are deleted, others are overridden in turn."""

    delete: tuple[ListedOverride, ...] = ()
    draft: Draft | None = None
    acknowledge: bool = False
    """Whether a reclaim is acknowledged."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.delete and self.draft is None and not self.acknowledge

    def applied_to(self, effective: Effective, now: datetime) -> Effective:
        """What decides afterwards."""
        gone = {each.name for each in self.delete}
        left = replace(effective, overrides=tuple(each for each in effective.overrides if each.name not in gone))
        return self.draft.added_to(left, now) if self.draft else left


def extension(machine: OverridableMachine, ending: Ending, now: datetime, reason: str = "") -> Draft:
    """To stay in service until a moment, or for a time after the close; out of service, for a time from now."""
    effective = machine.effective
    in_service, closes = effective.wanted(now), effective.closes(now)
    if in_service and closes is None:
        raise PointlessError(f"{machine.name} is in service without an end: there is nothing to extend")
    if isinstance(ending, timedelta) and not effective.is_known(now):
        raise PointlessError(f"when {machine.name} closes cannot be known: {machine.unreadable}; give --until")
    until = _until(ending, closes or _close_of_open_window(effective, now) or now, now)
    if closes is not None and until <= closes:
        without = _without_it(machine, now)
        raise PointlessError(f"{machine.name} is in service until {machine.clock(closes, now)} {without}")
    draft = Draft(machine.namespace, machine.name, OverrideState.OPEN, until, reason=reason)
    if not draft.added_to(effective, now).wanted(now):
        early, end = format_duration(effective.leads.stop), machine.clock(until, now)
        raise PointlessError(f"{machine.name} would leave at once: stopEarly begins its shutdown {early} before {end}")
    return draft


def suspension(machine: OverridableMachine, ending: Ending, now: datetime, reason: str = "") -> Draft:
    """To be out of service from now until a moment, or for a time."""
    until = _until(ending, now, now)
    effective = machine.effective
    upcoming = effective.next_start(now)
    if effective.is_known(now) and not effective.wanted(now) and (upcoming is None or upcoming >= until):
        opens = f"until {machine.clock(upcoming, now)}" if upcoming else "with no window ahead"
        raise PointlessError(f"{machine.name} is out of service {opens} {_without_it(machine, now)}")
    return Draft(machine.namespace, machine.name, OverrideState.CLOSED, until, reason=reason)


def skip(machine: OverridableMachine, now: datetime, reason: str = "") -> Draft:
    """To stay out of service during the next window; the current one is not the next."""
    if machine.effective.schedule is None:
        raise PointlessError(f"when the next window opens cannot be known: {machine.unreadable}")
    plan = Overridden(machine.effective.schedule, machine.effective.overrides)
    windows = (each.window for each in plan.openings(_second(now)))
    window = next((each for each in windows if each.opens > now), None)
    if window is None:
        raise PointlessError(f"no window of {machine.name} is ahead")
    if window.closes == FOREVER:
        opens = machine.clock(window.opens, now)
        raise PointlessError(f"the window of {machine.name} that opens at {opens} has no end; use 5spot suspend")
    return Draft(machine.namespace, machine.name, OverrideState.CLOSED, window.closes, window.opens, reason)


def resumption(machine: OverridableMachine, now: datetime, reason: str = "") -> Resumption:
    """To return to the schedule: ends what is in force now; if nothing is, what was refused, else what is to come."""
    acknowledge = machine.unacknowledged is not None
    in_force = [each for each in machine.overrides if each.standing(now) is Standing.IN_FORCE]
    decides = deciding((each.counts for each in in_force if each.counts), now)
    if decides is None or decides.state is OverrideState.SCHEDULED:
        own = [each for each in machine.overrides if each.names_only(machine.name) and not each.stored.deleting]
        refused = tuple(each for each in own if each.standing(now) is Standing.NOT_ACCEPTED)
        coming = tuple(each for each in own if each.standing(now) is Standing.TO_COME)
        return Resumption(delete=() if acknowledge else refused or coming, acknowledge=acknowledge)
    delete = tuple(each for each in in_force if each.names_only(machine.name))
    left = [each.counts for each in in_force if each.counts and each not in delete]
    still = deciding(left, now)
    if still is None or still.state is OverrideState.SCHEDULED:
        return Resumption(delete=delete, acknowledge=acknowledge)
    until = max(each.ends for each in left)
    draft = Draft(machine.namespace, machine.name, OverrideState.SCHEDULED, until, reason=reason)
    return Resumption(delete=delete, draft=draft, acknowledge=acknowledge)


def _without_it(machine: OverridableMachine, now: datetime) -> str:
    more = any(each.ends > now for each in machine.effective.overrides)
    return "without another override" if more else "without an override"


def _close_of_open_window(effective: Effective, now: datetime) -> datetime | None:
    """For a machine that stopEarly shuts down before it."""
    window = effective.window(now)
    return window.closes if window is not None and window.opens <= now else None


def _until(ending: Ending, otherwise: datetime, now: datetime) -> datetime:
    found = _second(ending if isinstance(ending, datetime) else otherwise + ending)
    if found <= now:
        raise PointlessError(f"the end, {rfc3339(found)}, is in the past")
    if found - now > LONGEST:
        raise PointlessError(f"the end, {rfc3339(found)}, is more than {LONGEST.days} days ahead")
    return found


def _second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _named(machine: str, now: datetime) -> str:
    return f"{machine}-{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}"
