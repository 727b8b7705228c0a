"""What recurs on the local clock, as runs of open time in Unix seconds, and its merged timeline.

All kinds, hours of the week here and those of `crds.firings` and `crds.clockwindows`, are laid out span by span, where
the offset from UTC is constant: hours that a change of the clock skips are then in no span, and hours that it repeats
are in two.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from crds.days import Calendar
from crds.zones import BEGINNING, END, OffsetSpan, Zone

DAY: Final = 86400
HOUR: Final = 3600
YEAR: Final = 366 * DAY
CALENDAR_CYCLE: Final = 400 * YEAR

Run = tuple[int, int]


class Recurrence(Protocol):
    """A source of runs."""

    @property
    def reach(self) -> int:
        """How long before its end a run may have been opened by the local clock; 0 if the clock itself closes it."""

    @property
    def unbroken(self) -> bool:
        """Whether there is no gap, except where clocks change."""

    @property
    def settled(self) -> int:
        """The moment after which it repeats itself with the calendar."""

    @property
    def patience(self) -> int:
        """How long to follow an open window, once nothing irregular lies ahead, before it counts as endless."""

    @property
    def cycle(self) -> int:
        """How long to look for an opening, once nothing irregular lies ahead, before there is none."""

    def next_day(self, day: int) -> int | None:
        """The first day from `day` on, counted from 1970, on which a run may open."""

    def runs(self, zone: Zone, span: OffsetSpan, after: int) -> Iterator[Run]:
        """The runs that open within the span and close after a moment, in the order in which they open."""


class _OnDays(Protocol):
    @property
    def calendar(self) -> Calendar: ...

    @property
    def unbroken(self) -> bool: ...


class OfCalendarDays:
    """What all recurrences have in common that open on the days of a calendar and know no dates of a single year."""

    __slots__ = ()

    @property
    def settled(self) -> int:
        """It has no dates."""
        return BEGINNING

    @property
    def patience(self: _OnDays) -> int:
        """As long as its days need to show every kind of year."""
        return patience_for(self.calendar, unbroken=self.unbroken)

    @property
    def cycle(self) -> int:
        """As the calendar."""
        return CALENDAR_CYCLE

    def next_day(self: _OnDays, day: int) -> int | None:
        """The first of its days."""
        return self.calendar.next_day(day)


@dataclass(frozen=True, slots=True)
class WeeklyHours(OfCalendarDays):
    """Hours of the day on days of the week, open while the local clock shows them."""

    weekdays: int
    hours: int

    @property
    def reach(self) -> int:
        """The clock itself closes the hours."""
        return 0

    @property
    def unbroken(self) -> bool:
        """Whether it is every hour of every day."""
        return self.weekdays == 0b1111111 and self.hours == (1 << 24) - 1

    @property
    def calendar(self) -> Calendar:
        """The chosen days."""
        return Calendar(weekdays=self.weekdays)

    def runs(self, zone: Zone, span: OffsetSpan, after: int) -> Iterator[Run]:
        """The chosen hours, cut where the span ends."""
        del zone
        if self.unbroken:
            yield span.start, span.end
            return
        calendar, ranges = self.calendar, hour_ranges(self.hours)
        day = calendar.next_day((max(span.start, after) + span.offset) // DAY)
        while day is not None and (midnight := day * DAY - span.offset) < span.end:
            for first, last in ranges:
                opens, closes = max(midnight + first, span.start), min(midnight + last, span.end)
                if opens < closes > after:
                    yield opens, closes
            day = calendar.next_day(day + 1)


@lru_cache(maxsize=1024)
def hour_ranges(hours: int) -> tuple[Run, ...]:
    """The hours of a day as ranges of seconds."""
    return tuple(merged((hour * HOUR, hour * HOUR + HOUR) for hour in range(24) if hours >> hour & 1))


def merged(runs: Iterable[Run]) -> Iterator[Run]:
    """Runs in order of opening, joined where they touch or overlap."""
    current: Run | None = None
    for opens, closes in runs:
        if current is None:
            current = (opens, closes)
        elif opens <= current[1]:
            current = (current[0], max(current[1], closes))
        else:
            yield current
            current = (opens, closes)
    if current is not None:
        yield current


def timeline(recurrence: Recurrence, zone: Zone, after: int) -> Iterator[Run]:
    """The merged runs that close after a moment; one that never closes ends at `END`.

    The first one opens early enough to cover the moment, though it may have opened earlier still.
    """
    patience, settled = recurrence.patience, max(zone.settled, recurrence.settled)
    current: Run | None = None
    for opens, closes in unmerged(recurrence, zone, after):
        if current is None or opens > current[1]:
            if current is not None:
                yield current
            current, tired = (opens, closes), max(after, opens, settled) + patience
        elif closes > current[1]:
            current = (current[0], closes)
            if closes > tired:
                break
    else:
        tired = END
    if current is not None:
        yield current if current[1] < tired else (current[0], END)


def patience_for(calendar: Calendar, *, unbroken: bool) -> int:
    """How long to follow an open window of these days.

    The calendar repeats after 400 years. Without gaps of its own, only changes of the clock matter: they come by rules
    for weekdays, so that 2 years show what they do to a week, and 40 to every kind of year.
    """
    if not unbroken:
        return CALENDAR_CYCLE
    return (2 if calendar.is_weekly or calendar.is_daily else 40) * YEAR


def unmerged(recurrence: Recurrence, zone: Zone, after: int) -> Iterator[Run]:
    """The runs that close after a moment, in the order in which they open; they may touch and overlap."""
    moment, found = max(after - recurrence.reach, BEGINNING), False
    cycle, within = recurrence.cycle, False
    hopeless = max(moment, zone.settled, recurrence.settled) + cycle
    while moment < (END if found else min(hopeless, END)):
        # Local days begin up to a day before or after those of UTC; spans without a chosen day are passed over.
        day = recurrence.next_day(moment // DAY - 1)
        if day is None:
            return
        begins = max(moment, (day - 2) * DAY)
        span = zone.span(begins)
        if within and span.start < moment:
            span = span._replace(start=moment)
        # A span of centuries is looked at in pieces, so that the search for what is not there ends.
        span = span._replace(end=min(span.end, begins + cycle))
        for run in recurrence.runs(zone, span, after):
            found = True
            yield run
        moment, within = span.end, True
