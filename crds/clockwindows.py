"""Windows from one time of day to another, to the minute, as runs of open time; `crds.recurrence` lays them out.

Both ends are instants: a time that the clock skips is the moment of the change, and of one that it shows twice the
first counts. So a window is one run, whatever the clock does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from crds.days import ALL_WEEKDAYS, Calendar
from crds.recurrence import DAY, OfCalendarDays, Run
from crds.timeofday import MINUTES_A_DAY, TimeOfDay
from crds.zones import END, FURTHEST_EAST, OffsetSpan, Zone

MINUTES_A_WEEK: Final = 7 * MINUTES_A_DAY

_THURSDAY: Final = 3
_REACH: Final = 3 * DAY
"""A window lasts a day by the clock; where the clock is set back, up to a day more, as at the date line."""


class ClockWindow(NamedTuple):
    """Days of the week as bits, Monday first, and minutes after midnight; `ends` beyond 24:00 is on the next day."""

    weekdays: int
    starts: int
    ends: int

    @classmethod
    def of(cls, weekdays: int, starts: int, ends: int) -> "ClockWindow":
        """As users write it: no days means every day, an end that is not after the start is on the next day."""
        return cls(weekdays or ALL_WEEKDAYS, starts, ends if ends > starts else ends + MINUTES_A_DAY)

    @property
    def times(self) -> str:
        """Both ends, such as `18:30-07:00`."""
        ends = self.ends if self.ends <= MINUTES_A_DAY else self.ends - MINUTES_A_DAY
        return f"{TimeOfDay(self.starts)}-{TimeOfDay(ends)}"


@dataclass(frozen=True, slots=True)
class ClockWindows(OfCalendarDays):
    """A union of windows, ordered by the time at which they begin."""

    windows: tuple[ClockWindow, ...]
    weekdays: int = field(compare=False, repr=False)
    unbroken: bool = field(compare=False, repr=False)

    @classmethod
    def of(cls, windows: Iterable[ClockWindow]) -> "ClockWindows":
        """Put the windows in order, and see whether they leave a gap."""
        ordered = tuple(sorted(set(windows), key=lambda window: (window.starts, window.ends, window.weekdays)))
        weekdays = 0
        for window in ordered:
            weekdays |= window.weekdays
        return cls(ordered, weekdays, open_minutes(ordered) == (1 << MINUTES_A_WEEK) - 1)

    @property
    def reach(self) -> int:
        """The longest that a window can last."""
        return _REACH

    @property
    def calendar(self) -> Calendar:
        """The days on which windows begin."""
        return Calendar(weekdays=self.weekdays)

    def runs(self, zone: Zone, span: OffsetSpan, after: int) -> Iterator[Run]:
        """The windows that begin within the span; of an unbroken week, only its edges day by day."""
        first, last = self._first_day(span, after), (span.end + span.offset - 1) // DAY
        if self.unbroken and last - first > 6:
            yield from self._on_days(range(first, first + 4), zone, span, after)
            opens = zone.first_showing((first + 4) * DAY)
            if span.end >= END:
                yield opens, END
                return
            closes = zone.first_showing((last - 1) * DAY)
            if closes > after:
                yield opens, closes
            # A window of the day before may still be open at that midnight.
            first = last - 2
        yield from self._on_days(self._days(first, last), zone, span, after)

    def _first_day(self, span: OffsetSpan, after: int) -> int:
        """The first day of which a window may begin within the span and end after a moment.

        Two days before: one because a window may end on the next day, one because the clock may change meanwhile.
        """
        return max((span.start + span.offset) // DAY - 1, (after + span.offset) // DAY - 2)

    def _days(self, day: int, last: int) -> Iterator[int]:
        found = self.next_day(day)
        while found is not None and found <= last:
            yield found
            found = self.next_day(found + 1)

    def _on_days(self, days: Iterable[int], zone: Zone, span: OffsetSpan, after: int) -> Iterator[Run]:
        for day in days:
            weekday, midnight = (day + _THURSDAY) % 7, day * DAY
            for window in self.windows:
                if not window.weekdays >> weekday & 1:
                    continue
                opens = _instant(zone, span, midnight + window.starts * 60)
                if span.start <= opens < span.end:
                    closes = _instant(zone, span, midnight + window.ends * 60)
                    if closes > opens and closes > after:
                        yield opens, closes


def _instant(zone: Zone, span: OffsetSpan, wall: int) -> int:
    """The first moment at which the clock shows a time; quick for most, which are far from a change of the clock."""
    moment = wall - span.offset
    if span.start + FURTHEST_EAST <= moment < span.end:
        return moment
    return zone.first_showing(wall)


def open_minutes(windows: Iterable[ClockWindow]) -> int:
    """The minutes of an undisturbed week, from Monday 00:00, that are in a window, as bits."""
    open_, week = 0, (1 << MINUTES_A_WEEK) - 1
    for window in windows:
        length = (1 << window.ends - window.starts) - 1
        for weekday in range(7):
            if window.weekdays >> weekday & 1:
                open_ |= length << weekday * MINUTES_A_DAY + window.starts
    return (open_ | open_ >> MINUTES_A_WEEK) & week


@lru_cache(maxsize=4096)
def shortest_run(windows: tuple[ClockWindow, ...]) -> int:
    """The seconds of the shortest run in an undisturbed week that is not open throughout."""
    minutes = f"{open_minutes(windows):0{MINUTES_A_WEEK}b}"
    gap = minutes.index("0")
    return 60 * min(len(run) for run in (minutes[gap:] + minutes[:gap]).split("0") if run)
