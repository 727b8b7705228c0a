"""Cron firings as runs of open time; `crds.recurrence` lays them out span by span."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from crds.cron import Cron
from crds.days import Calendar, lowest, widest_gap
from crds.recurrence import DAY, OfCalendarDays, Run
from crds.zones import BEGINNING, END, OffsetSpan, Zone


class Shape(NamedTuple):
    """One day of firings: the minutes as bits, and the runs they open in seconds after midnight."""

    minutes: int
    opens: "array[int]"
    closes: "array[int]"

    @property
    def first(self) -> int:
        """The first firing."""
        return lowest(self.minutes) * 60

    @property
    def last(self) -> int:
        """The last firing."""
        return (self.minutes.bit_length() - 1) * 60


@lru_cache(maxsize=2048)
def shape(minutes: int, hours: int, duration: int) -> Shape:
    """An undisturbed day of a cron expression's minutes and hours."""
    return _shape(sum(minutes << 60 * hour for hour in range(24) if hours >> hour & 1), duration)


def _shape(minutes: int, duration: int) -> Shape:
    """Join the firings that are at most `duration` apart: the first and last of each run have none before or after."""
    near = min(duration // 60, 1440)
    firsts = minutes & ~_smeared(minutes << 1, near)
    lasts = minutes & ~(_smeared(minutes << 1440 - near, near) >> 1440) if near else minutes
    opens, closes = (60 * bit for bit in _set_bits(firsts)), (60 * bit + duration for bit in _set_bits(lasts))
    return Shape(minutes, array("i", opens), array("i", closes))


def fires_while_open(day: Shape, duration: int) -> bool:
    """Whether, within a day, a firing comes before the run of an earlier one is over."""
    return day.minutes & _smeared(day.minutes << 1, (duration - 1) // 60) != 0


def _smeared(bits: int, width: int) -> int:
    """Each bit drawn out to `width` bits upwards."""
    done, width = 1, min(width, 1440)
    while done < width:
        step = min(done, width - done)
        bits |= bits << step
        done += step
    return bits if width else 0


def _set_bits(bits: int) -> list[int]:
    return [index for index, digit in enumerate(bin(bits)[:1:-1]) if digit == "1"]


@dataclass(frozen=True, slots=True)
class Firings(OfCalendarDays):
    """Cron firings, each of which opens a run of `reach` seconds of elapsed time."""

    cron: Cron
    reach: int
    shape: Shape = field(compare=False, repr=False)
    unbroken: bool = field(compare=False, repr=False)

    @classmethod
    def of(cls, cron: Cron, duration: int) -> "Firings":
        """Lay out a day, and see whether the days join."""
        day = shape(cron.minutes, cron.hours, duration)
        overnight = DAY - day.last + day.first
        joins = len(day.opens) == 1 and overnight <= duration
        if joins and not cron.calendar.is_daily:
            joins = widest_gap(cron.calendar) * DAY - DAY + overnight <= duration
        return cls(cron, duration, day, joins)

    @property
    def calendar(self) -> Calendar:
        """The days on which it fires."""
        return self.cron.calendar

    def runs(self, zone: Zone, span: OffsetSpan, after: int) -> Iterator[Run]:
        """Firings within the span; those that the change of the clock at its start skipped come first."""
        start = span.start + span.offset
        if not self.cron.follows_clock and span.start > BEGINNING:
            shown_before = span.start + zone.span(span.start - 1).offset
            if shown_before < start:
                yield from self._made_up(shown_before, span, after)
            # What the clock shows for the second time has fired already.
            start = max(start, shown_before)
        yield from self._in_wall_time(start, span, after)

    def _made_up(self, shown_before: int, span: OffsetSpan, after: int) -> Iterator[Run]:
        """One run at the first minute that the clock shows after a skipped firing."""
        start = span.start + span.offset
        skipped = self._next(shown_before)
        opens = start + -start % 60 - span.offset
        if skipped is not None and skipped < start and opens + self.reach > after:
            yield opens, opens + self.reach

    def _in_wall_time(self, start: int, span: OffsetSpan, after: int) -> Iterator[Run]:
        end = span.end + span.offset
        if self.unbroken:
            yield from self._whole(start, span, after)
            return
        day = self.calendar.next_day(max(start, after + span.offset - self.reach) // DAY)
        while day is not None and day * DAY < end:
            yield from self._on(day, start, end, span.offset, after)
            day = self.calendar.next_day(day + 1)

    def _whole(self, start: int, span: OffsetSpan, after: int) -> Iterator[Run]:
        first, end = self._next(start), span.end + span.offset
        if first is None or first >= end:
            return
        closes = END if span.end >= END else self._last_before(end) + self.reach - span.offset
        if closes > after:
            yield first - span.offset, closes

    def _on(self, day: int, start: int, end: int, offset: int, after: int) -> Iterator[Run]:
        midnight, shape = day * DAY, self.shape
        if start > midnight or end < midnight + DAY:
            shape = _shape(_between(shape.minutes, start - midnight, end - midnight), self.reach)
        opens, closes = shape.opens, shape.closes
        shift = midnight - offset
        for index in range(bisect_right(closes, after - shift), len(closes)):
            yield opens[index] + shift, closes[index] + shift

    def _next(self, wall: int) -> int | None:
        """The first firing in wall time from a moment on."""
        today = wall // DAY
        day = self.calendar.next_day(today)
        if day == today:
            later = _between(self.shape.minutes, wall % DAY, DAY)
            if later:
                return day * DAY + lowest(later) * 60
            day = self.calendar.next_day(day + 1)
        return None if day is None else day * DAY + self.shape.first

    def _last_before(self, wall: int) -> int:
        """The last firing in wall time before a moment; only for what is unbroken, where it is near."""
        day = (wall - 1) // DAY
        while self.calendar.next_day(day) != day or day * DAY + self.shape.first >= wall:
            day -= 1
        earlier = _between(self.shape.minutes, 0, wall - day * DAY)
        return day * DAY + (earlier.bit_length() - 1) * 60


def _between(minutes: int, start: int, end: int) -> int:
    """The minutes of a day that begin within `[start, end)` seconds after midnight."""
    first, last = -(-max(start, 0) // 60), -(-min(end, DAY) // 60)
    return minutes >> first << first & (1 << max(last, 0)) - 1
