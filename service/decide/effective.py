"""Whether a machine should be there: its schedule with overrides and leads, and when that changes.

The newest override in force decides, else the windows of the schedule. A machine is requested `startEarly` before a
window opens and shut down `stopEarly` before it closes. Rules 6 to 8, the report and claims to hosts ask this module;
`inSchedule` and the condition Scheduled ask the schedule alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from crds.leads import MAX_LEAD
from crds.overrides import Override, OverrideState
from crds.schedule import EVER, FOREVER, Schedule, Window
from service.decide.overridden import Opening, Overridden

_NOTHING: Final = timedelta(0)
_LOOK_BACK: Final = MAX_LEAD + timedelta(seconds=1)
"""A window that closed longer ago than this is joined with no later one."""
_JOINED_AT_MOST: Final = 256
_SKIPPED_AT_MOST: Final = 64
"""How far to look ahead: a schedule may join all of its windows, or skip each of them."""


@dataclass(frozen=True, slots=True)
class Leads:
    """How long before a window opens its machine is requested, and before it closes the shutdown begins."""

    start: timedelta = _NOTHING
    stop: timedelta = _NOTHING


NO_LEADS: Final = Leads()


class Service(NamedTuple):
    """The time for which one machine is wanted: one window, or several whose gaps its lead bridges."""

    starts: datetime
    """When the machine is requested."""
    opens: datetime
    closes: datetime
    stops: datetime
    """When its shutdown begins."""

    @property
    def is_skipped(self) -> bool:
        """Whether stopEarly leaves nothing of it."""
        return self.stops <= self.opens

    def wants(self, moment: datetime) -> bool:
        """Whether the machine should be there at a moment."""
        return not self.is_skipped and self.starts <= moment < self.stops


class Outlook(NamedTuple):
    """What is the case at a moment, and what comes next."""

    wanted: bool
    changes: datetime | None
    """When `wanted` changes."""
    closes: datetime | None
    """When the window closes after which the machine leaves; None if none is wanted, or no end is known."""
    next_start: datetime | None
    """When a machine is requested next, counted from the one that may be wanted now."""
    window: Window | None
    """The window that is open, else the next."""
    skipped: bool
    """Whether a window is open for which stopEarly leaves no time."""


@dataclass(frozen=True, slots=True)
class Effective:
    """A schedule, None if it cannot be read, with the overrides and leads of one machine."""

    schedule: Schedule | None
    overrides: tuple[Override, ...] = ()
    leads: Leads = NO_LEADS

    def override(self, moment: datetime) -> Override | None:
        """The override that decides at a moment."""
        return Overridden(self.schedule, self.overrides).span(moment).override if self.overrides else None

    def is_known(self, moment: datetime) -> bool:
        """Whether anything decides: a schedule that can be read, or an override that does not need it."""
        if self.schedule is not None:
            return True
        override = self.override(moment)
        return override is not None and override.state is not OverrideState.SCHEDULED

    def wanted(self, moment: datetime) -> bool:
        """Whether the machine should be there."""
        return covers(self.schedule, _second(moment)) if self._is_plain else self._outlook(moment).wanted

    def next_change(self, moment: datetime) -> datetime | None:
        """When that changes next, if ever."""
        return next_boundary(self.schedule, _second(moment)) if self._is_plain else self._outlook(moment).changes

    def next_start(self, moment: datetime) -> datetime | None:
        """When a machine is requested next, counted from the one that may be there now; None if never."""
        return next_opening(self.schedule, _second(moment)) if self._is_plain else self._outlook(moment).next_start

    def window(self, moment: datetime) -> Window | None:
        """The window that is open, else the next; with overrides, without leads."""
        if not self._is_plain:
            return self._outlook(moment).window
        opens = _second(moment)
        if not covers(self.schedule, opens):
            following = next_boundary(self.schedule, opens)
            return _window_from(self.schedule, following) if self.schedule and following else None
        return current_window(self.schedule, opens)

    def closes(self, moment: datetime) -> datetime | None:
        """When the window closes after which the machine leaves; None if it is not wanted, or no end is known."""
        if not self._is_plain:
            return self._outlook(moment).closes
        return self.next_change(moment) if self.wanted(moment) else None

    def skips(self, moment: datetime) -> bool:
        """Whether a window is open for which stopEarly leaves no time."""
        return not self._is_plain and self._outlook(moment).skipped

    def start_for(self, opens: datetime) -> datetime:
        """When the machine of the window around a moment is requested; that moment itself if there is none."""
        if self._is_plain:
            return opens
        services = (each for each in _services(self, opens - _LOOK_BACK) if each.closes > opens)
        service = next(services, None)
        return service.starts if service and service.opens <= opens else opens

    def look_again(self, moment: datetime) -> datetime | None:
        """When anything that is reported of it changes: what is wanted, the window, the schedule, the override."""
        boundary = next_boundary(self.schedule, _second(moment))
        if self._is_plain:
            return boundary
        found = self._outlook(moment)
        window = (found.window.opens, found.window.closes) if found.window else ()
        ends = Overridden(self.schedule, self.overrides).span(moment).ends
        ahead = (each for each in (boundary, found.changes, ends, *window) if each is not None and each > moment)
        return _finite(min(ahead, default=FOREVER))

    def services(self, since: datetime) -> Iterator[Service]:
        """The services from a moment on, and those shortly before it, skipped ones included."""
        return _services(self, since - _LOOK_BACK)

    def already_requested(self, opens: datetime | None, moment: datetime) -> "Effective":
        """The same for a machine that exists before its window opens: a lead that has been shortened keeps it."""
        if opens is None or self.leads.start == _NOTHING or not _NOTHING < opens - moment <= MAX_LEAD:
            return self
        return replace(self, leads=replace(self.leads, start=max(self.leads.start, opens - moment)))

    @property
    def _is_plain(self) -> bool:
        return not self.overrides and (self.leads is NO_LEADS or self.leads == NO_LEADS)

    def _outlook(self, moment: datetime) -> Outlook:
        return _outlook(self, _second(moment))


# Boundaries are exact to the second, one pass asks the same several times over, and a herd shares its schedules. Few
# answers are enough: a second later the questions differ.
_remembered = lru_cache(maxsize=256)


@_remembered
def covers(schedule: Schedule | None, moment: datetime) -> bool:
    """Whether a window of the schedule is open; never, if it cannot be read."""
    return schedule is not None and schedule.covers(moment)


@_remembered
def next_boundary(schedule: Schedule | None, moment: datetime) -> datetime | None:
    """When that changes next, if ever."""
    return schedule.next_boundary(moment) if schedule else None


@_remembered
def next_opening(schedule: Schedule | None, moment: datetime) -> datetime | None:
    """When the next window of the schedule opens, if ever."""
    return schedule.next_opening(moment) if schedule else None


@_remembered
def current_window(schedule: Schedule | None, moment: datetime) -> Window | None:
    """The window of the schedule around a moment."""
    return schedule.current_window(moment) if schedule else None


@lru_cache(maxsize=4096)
def _window_from(schedule: Schedule, opens: datetime) -> Window | None:
    """The window that opens at a moment; remembered for long, as it is asked for until it opens."""
    return next(schedule.windows(opens, FOREVER, cut=True), None)


@_remembered
def _outlook(effective: Effective, moment: datetime) -> Outlook:
    services = [each for each in islice(_from(effective, moment), _SKIPPED_AT_MOST) if each.closes > moment]
    now = next((each for each in services if each.wants(moment)), None)
    following = next((each for each in services if not each.is_skipped and each.starts > moment), None)
    starts = following.starts if following else None
    return Outlook(
        wanted=now is not None,
        changes=_finite(now.stops) if now else starts,
        closes=_finite(now.closes) if now else None,
        next_start=starts,
        window=_window(effective, moment),
        skipped=any(each.is_skipped and each.opens <= moment for each in services),
    )


def _window(effective: Effective, moment: datetime) -> Window | None:
    plan = Overridden(effective.schedule, effective.overrides)
    found = next(plan.openings(moment), None)
    if found is None or found.window.opens > moment:
        return found.window if found else None
    return Window(plan.opened(moment), found.window.closes)


def _from(effective: Effective, moment: datetime) -> Iterator[Service]:
    """The services up to the first that is wanted after a moment, and a few before."""
    for service in _services(effective, moment - _LOOK_BACK):
        yield service
        if service.starts > moment and not service.is_skipped:
            return


def _services(effective: Effective, since: datetime) -> Iterator[Service]:
    """Windows, joined where the lead of one bridges the gap after another."""
    leads = effective.leads if effective.schedule is not None else NO_LEADS
    openings = Overridden(effective.schedule, effective.overrides).openings(since)
    current: Service | None = None
    joined = 0
    for opening in openings:
        found = _service(opening, leads)
        if current is None or found.starts > current.closes:
            if current is not None:
                yield current
            current, joined = found, 1
            continue
        current = current._replace(closes=found.closes, stops=found.stops)
        joined += 1
        if joined == _JOINED_AT_MOST:  # it joins all of its windows, as far as one can see
            yield current._replace(closes=FOREVER, stops=FOREVER)
            return
    if current is not None:
        yield current


def _service(opening: Opening, leads: Leads) -> Service:
    window, not_before = opening
    starts = max(window.opens - leads.start, not_before)
    stops = window.closes if window.closes == FOREVER else window.closes - leads.stop
    return Service(starts, window.opens, window.closes, stops)


def _second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _finite(moment: datetime) -> datetime | None:
    return None if moment in (EVER, FOREVER) else moment
