"""What is planned for a machine in a period, what people changed about it, and what really happened. Pure.

Instants are whole milliseconds since 1970, as browsers count them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from crds.calendars import Calendars, Undecidable
from crds.dates import day_of
from crds.history import ServiceRecord
from crds.overrides import Override
from crds.partial import read_partial
from crds.schedule import Schedule
from crds.schedulespec import ScheduleSpec
from crds.status import ScheduledMachineStatus
from crds.values import Zone
from service.decide.effective import Effective
from service.decide.leads import rules_of

_DAY: Final = timedelta(days=1)
WINDOWS_MAX: Final = 1000
"""At most this many windows: a cron of every minute has more than a page can show."""


@dataclass(frozen=True, slots=True)
class TimelinePeriod:
    """The part of time that a page shows."""

    begins: datetime
    ends: datetime

    def cut(self, begins: datetime, ends: datetime) -> tuple[int, int] | None:
        """The part of a span that lies inside; None if nothing does."""
        first, last = max(begins, self.begins), min(ends, self.ends)
        return (milliseconds(first), milliseconds(last)) if first < last else None


def milliseconds(moment: datetime) -> int:
    """An instant as milliseconds since 1970."""
    return int(moment.timestamp() * 1000)


def timeline(
    raw: Mapping[str, Any], calendars: Calendars, overrides: tuple[Override, ...], period: TimelinePeriod, now: datetime
) -> dict[str, Any]:
    """The layers of a machine's line, each a list of spans; layers without any are left out."""
    found = read_partial(dict(raw))
    schedule = found.schedule.resolved(calendars) if found.schedule else None
    readable = schedule if isinstance(schedule, Schedule) else None
    leads = rules_of(found.schedule, found.graceful_shutdown_timeout).in_force(found.status)
    layers = {
        "planned": list(_planned(readable, period)),
        "wanted": list(_wanted(Effective(readable, overrides, leads), period, now)),
        "exceptions": list(_exceptions(found.schedule, calendars, period)),
        "overrides": list(_overrides(overrides, period)),
        "served": list(_served(found.status, period, now)),
    }
    problem = schedule.message if isinstance(schedule, Undecidable) else ""
    disabled = found.schedule is not None and not found.schedule.enabled
    marks = {"problem": problem, "disabled": disabled}
    return {name: what for name, what in (layers | marks).items() if what}


def _planned(schedule: Schedule | None, period: TimelinePeriod) -> Iterator[tuple[int, int]]:
    """The windows of the schedule with its exceptions."""
    if schedule is None:
        return
    for number, window in enumerate(schedule.windows(period.begins, period.ends, cut=True)):
        if number == WINDOWS_MAX:
            return
        yield milliseconds(window.opens), milliseconds(window.closes)


def _wanted(effective: Effective, period: TimelinePeriod, now: datetime) -> Iterator[tuple[int, int]]:
    """From now on, when a machine is wanted: with overrides and leads."""
    moment = max(now, period.begins).replace(microsecond=0)
    for _ in range(WINDOWS_MAX):
        if moment >= period.ends or not effective.is_known(moment):
            return
        changes = effective.next_change(moment) or period.ends
        if effective.wanted(moment) and (span := period.cut(moment, changes)):
            yield span
        moment = changes


def _exceptions(
    spec: ScheduleSpec | None, calendars: Calendars, period: TimelinePeriod
) -> Iterator[tuple[int, int, str, str]]:
    """The dates that an exception decides about, with their names, or that of the calendar."""
    if spec is None or not spec.exceptions:
        return
    day = (period.begins - _DAY).date()
    while day <= (period.ends + _DAY).date():
        found = spec.deciding_exception(day, calendars)
        span = period.cut(midnight(day, spec.timezone), midnight(day + _DAY, spec.timezone))
        if found is not None and span is not None:
            calendar = found.calendar_ref.name if found.calendar_ref else ""
            yield *span, found.state.value, found.name(day_of(day), calendars, spec.timezone) or calendar
        day += _DAY


def _overrides(
    overrides: tuple[Override, ...], period: TimelinePeriod
) -> Iterator[tuple[int, int, str, str, str, str]]:
    for each in sorted(overrides, key=lambda one: one.rank):
        if span := period.cut(each.begins, each.ends):
            yield *span, each.state.value, each.name, each.requested_by, each.reason


def _served(
    status: ScheduledMachineStatus, period: TimelinePeriod, now: datetime
) -> Iterator[tuple[int, int, str, str]]:
    """What Machines did so far, from the history: they joined, they were in service, they left."""
    for each in status.history.records:
        for begins, ends, what in parts(each, now):
            if span := period.cut(begins, ends):
                yield *span, what, each.reason or ""


def parts(record: ServiceRecord, now: datetime) -> Iterator[tuple[datetime, datetime, str]]:
    """The parts of one service, as far as they have happened."""
    gone = record.gone or now
    leaving = record.shutdown or gone
    ready = min(record.ready or leaving, leaving)
    yield record.requested, ready, "joining"
    yield ready, leaving, "served"
    yield leaving, gone, "leaving"


def midnight(day: date, zone: Zone) -> datetime:
    """When a date begins in a zone."""
    local = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    guess = local - zone.span(local).offset
    return datetime.fromtimestamp(local - zone.span(guess).offset, UTC)
