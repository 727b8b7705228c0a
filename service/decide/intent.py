"""What the user asked for, as far as it can be understood.

An object stored before a rule existed, or after a roll-back, may be invalid: that blocks creation, but what can still
be read of it (kill switch, schedule, timeouts) goes on governing removal.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from crds.calendars import CalendarReference, Calendars, Undecidable
from crds.envelope import namespace_of
from crds.partial import read_partial
from crds.providers import ProviderPolicy
from crds.rules import check
from crds.schedule import EVER, Schedule
from crds.scheduledmachine import DEFAULT_PRIORITY, ScheduledMachineSpec
from crds.schedulespec import ScheduleSpec


@dataclass(frozen=True, slots=True)
class Intent:
    """A spec, or the legible parts of one."""

    spec: ScheduledMachineSpec | None
    problems: tuple[str, ...]
    schedule: Schedule | None
    enabled: bool
    kill_switch: bool
    cluster_name: str | None
    grace: timedelta
    drain: timedelta
    priority: int
    undecidable: Undecidable | None = None
    """Why a schedule that is valid by itself cannot be read: its calendars."""
    calendars_pending: bool = False
    """Whether such a calendar exists and the controller has only not worked it out yet."""

    def covers(self, moment: datetime) -> bool:
        """Whether a window is open; never, if the schedule cannot be read."""
        return self.schedule is not None and _covers(self.schedule, moment.replace(microsecond=0))

    def next_boundary(self, moment: datetime) -> datetime | None:
        """When that changes next, if ever."""
        return _next_boundary(self.schedule, moment.replace(microsecond=0)) if self.schedule else None

    def opened_at(self, moment: datetime) -> datetime | None:
        """When the window around a moment opened; None if there is none, or it has always been open."""
        window = _current_window(self.schedule, moment.replace(microsecond=0)) if self.schedule else None
        return None if window is None or window.opens == EVER else window.opens

    def next_opening(self, moment: datetime) -> datetime | None:
        """When the next window opens, if ever."""
        return _next_opening(self.schedule, moment.replace(microsecond=0)) if self.schedule else None


# Boundaries are exact to the second, one pass asks the same several times over, and a herd shares its schedules. Few
# answers are enough: a second later the questions differ.
_remembered = lru_cache(maxsize=256)
_covers = _remembered(Schedule.covers)
_next_boundary = _remembered(Schedule.next_boundary)
_next_opening = _remembered(Schedule.next_opening)
_current_window = _remembered(Schedule.current_window)


class CalendarSource(Protocol):
    """The calendars of all namespaces."""

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:
        """The calendars that a schedule of a namespace means by these names, as far as they exist."""
        ...

    def pending(self, namespace: str, references: Iterable[CalendarReference]) -> bool:
        """Whether one of them exists, or may exist, and is not worked out yet."""
        ...


class NoCalendars:
    """For a reader that has none: a schedule that names one cannot be read."""

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:  # noqa: ARG002
        """None."""
        return {}

    def pending(self, namespace: str, references: Iterable[CalendarReference]) -> bool:  # noqa: ARG002
        """Never."""
        return False


class _Read(NamedTuple):
    schedule: Schedule | None
    undecidable: Undecidable | None = None
    pending: bool = False


def _resolve(schedule: ScheduleSpec | None, namespace: str, calendars: CalendarSource) -> _Read:
    if schedule is None:
        return _Read(None)
    named = schedule.calendars
    found = schedule.resolved(calendars.seen_from(namespace, named) if named else {})
    if isinstance(found, Undecidable):
        return _Read(None, found, calendars.pending(namespace, named))
    return _Read(found)


def valid(spec: ScheduledMachineSpec, namespace: str = "", calendars: CalendarSource | None = None) -> Intent:
    """The intent of a spec that all rules allow."""
    read = _resolve(spec.schedule, namespace, calendars or NoCalendars())
    return Intent(
        spec=spec,
        problems=(),
        schedule=read.schedule,
        undecidable=read.undecidable,
        calendars_pending=read.pending,
        enabled=spec.schedule.enabled,
        kill_switch=spec.kill_switch,
        cluster_name=spec.cluster_name,
        grace=spec.graceful_shutdown_timeout,
        drain=spec.node_drain_timeout,
        priority=spec.priority,
    )


def read_intent(raw: dict[str, Any], policy: ProviderPolicy, calendars: CalendarSource | None = None) -> Intent:
    """The intent of a stored object; without `calendars`, a schedule that names one cannot be read."""
    source = calendars or NoCalendars()
    verdict = check(raw, policy=policy, unknown="ignore")
    if verdict.model is not None and not verdict.violations:
        return valid(verdict.model.spec, namespace_of(raw), source)
    return _legible(raw, tuple(f"{one.field}: {one.message}" for one in verdict.violations), source)


def _legible(raw: dict[str, Any], problems: tuple[str, ...], calendars: CalendarSource) -> Intent:
    left = read_partial(raw)
    read = _resolve(left.schedule, namespace_of(raw), calendars)
    return Intent(
        spec=None,
        problems=problems,
        schedule=read.schedule,
        undecidable=read.undecidable,
        calendars_pending=read.pending,
        enabled=left.schedule.enabled if left.schedule else not _says_disabled(raw),
        kill_switch=left.kill_switch,
        cluster_name=left.cluster_name or None,
        grace=left.graceful_shutdown_timeout,
        drain=left.node_drain_timeout,
        priority=DEFAULT_PRIORITY,
    )


def _says_disabled(raw: dict[str, Any]) -> bool:
    try:
        return raw["spec"]["schedule"]["enabled"] is False
    except (KeyError, TypeError):
        return False
