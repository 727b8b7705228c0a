"""The leads of one machine: fixed by its schedule, or `Auto`, which is learnt from earlier services.

Auto is the time that nine in ten of the machine's own services needed, else of those of its kind in its Cluster, else a
default. It is fixed in the status when a service ends, so it does not change while a machine waits for its window.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Any, Final, NamedTuple, Protocol

from crds.history import EndReason, ServiceRecord
from crds.leads import MAX_LEAD, Auto, Lead
from crds.schedulespec import ScheduleSpec
from crds.status import LeadTimes, ScheduledMachineStatus
from service.decide.effective import NO_LEADS, Leads

SERVICES_MIN: Final = 3
"""From fewer services nothing is learnt."""
PERCENTILE: Final = 0.9
DEFAULT_START: Final = timedelta(minutes=5)
_SHORTEST: Final = timedelta(seconds=1)
_CUT_SHORT: Final = frozenset({EndReason.KILL_SWITCH, EndReason.RECLAIMED})


class Usual(NamedTuple):
    """How long the machines of one kind in one Cluster need; None where too few services are known."""

    start: timedelta | None = None
    stop: timedelta | None = None


UNKNOWN: Final = Usual()


class UsualSource(Protocol):
    """How long other machines need."""

    def like(self, raw: dict[str, Any]) -> Usual:
        """How long machines of the same infrastructure kind need in the Cluster of a stored object."""
        ...


class NoUsual:
    """For a reader that knows of no others."""

    def like(self, raw: dict[str, Any]) -> Usual:  # noqa: ARG002
        """Nothing."""
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class LeadRules:
    """What the schedule of a machine says of its leads, and what Auto falls back to."""

    start: Lead | None = None
    stop: Lead | None = None
    grace: timedelta = _SHORTEST
    usual: Usual = UNKNOWN
    """Counts only if the machine's own services do not say it."""

    @property
    def is_auto(self) -> bool:
        """Whether anything is to be learnt."""
        return self.start is Auto.AUTO or self.stop is Auto.AUTO

    def in_force(self, status: ScheduledMachineStatus) -> Leads:
        """The leads now; what Auto amounts to is in the status, unless it is new."""
        if self.start is None and self.stop is None:
            return NO_LEADS
        stored = status.leads or LeadTimes()
        start, stop = stored.start_early, stored.stop_early
        if (self.start is Auto.AUTO and start is None) or (self.stop is Auto.AUTO and stop is None):
            learnt = self.after(status.history.records)
            start, stop = start or learnt.start, stop or learnt.stop
        return Leads(_lead(self.start, start), _lead(self.stop, stop))

    def after(self, services: Sequence[ServiceRecord]) -> Leads:
        """The leads after these services."""
        start = time_needed(times_to_ready(services)) or self.usual.start or DEFAULT_START
        stop = time_needed(times_to_gone(services)) or self.usual.stop or min(self.grace, MAX_LEAD)
        return Leads(_lead(self.start, start), _lead(self.stop, stop))

    def stored(self, leads: Leads) -> LeadTimes | None:
        """For the status: what Auto amounts to; None if the schedule has no Auto."""
        if not self.is_auto:
            return None
        return LeadTimes(
            start_early=leads.start if self.start is Auto.AUTO else None,
            stop_early=leads.stop if self.stop is Auto.AUTO else None,
        )


NO_RULES: Final = LeadRules()


def _lead(said: Lead | None, learnt: timedelta | None) -> timedelta:
    if said is Auto.AUTO:
        return learnt or timedelta(0)
    return said or timedelta(0)


def time_needed(times: Iterable[timedelta]) -> timedelta | None:
    """The time that nine in ten needed, in whole seconds and at most an hour; None if there are too few."""
    known = sorted(each for each in times if each >= timedelta(0))
    if len(known) < SERVICES_MIN:
        return None
    found = known[ceil(PERCENTILE * len(known)) - 1]
    whole = timedelta(seconds=ceil(found.total_seconds()))
    return min(max(whole, _SHORTEST), MAX_LEAD)


def times_to_ready(records: Iterable[ServiceRecord]) -> list[timedelta]:
    """From the creation of each Machine, after its wait for a turn, until its Node was Ready."""
    return [each.ready - each.requested for each in records if each.ready is not None]


def times_to_gone(records: Iterable[ServiceRecord]) -> list[timedelta]:
    """From the beginning of each shutdown until the host was free; not of those that were cut short."""
    ended = (each for each in records if each.shutdown and each.gone and each.reason not in _CUT_SHORT)
    return [each.gone - each.shutdown for each in ended if each.gone and each.shutdown]


def rules_of(schedule: ScheduleSpec | None, grace: timedelta) -> LeadRules:
    """What a schedule says of leads."""
    if schedule is None or (schedule.start_early is None and schedule.stop_early is None):
        return NO_RULES
    return LeadRules(schedule.start_early, schedule.stop_early, grace)


def stored_leads(raw: dict[str, Any]) -> ScheduledMachineStatus:
    """The part of a stored status that leads depend on."""
    status = raw.get("status")
    known: dict[str, Any] = status if isinstance(status, dict) else {}
    return ScheduledMachineStatus.read({name: known[name] for name in ("leads", "history") if name in known})
