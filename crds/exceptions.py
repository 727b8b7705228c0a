"""Dates on which a schedule is closed or open in spite of what it says; the first rule that names a date decides.

A `Closed` date is cut out of the spans in which a recurrence is laid out: nothing opens on it, and what opened before
runs to its end. An `Open` date adds local midnight to midnight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge
from typing import NamedTuple

from crds.dates import Days, DaySource
from crds.days import FIRST_DAY
from crds.recurrence import DAY, YEAR, Recurrence, Run
from crds.zones import Span, Zone


class State(StrEnum):
    """What an exception makes of its dates."""

    CLOSED = "Closed"
    OPEN = "Open"


class Rule(NamedTuple):
    """Some days and what becomes of them."""

    days: DaySource
    state: State

    def names(self, day: int) -> bool:
        """Whether a day is among them."""
        run = self.days.run(day)
        return run is not None and run.first == day


@dataclass(frozen=True, slots=True)
class Exceptions:
    """The rules in their order."""

    rules: tuple[Rule, ...]
    known_through: int | None = None
    """The last day that all calendars know; None if what they say holds for ever."""

    def run(self, day: int, state: State) -> Days | None:
        """The first run of days at or after a day that have this state."""
        while True:
            found = self._earliest(day, state)
            if found is None:
                return None
            index = next(index for index, rule in enumerate(self.rules) if rule.names(found.first))
            if self.rules[index].state is state:
                return self._up_to_a_better_rule(found, index)
            # Another rule decides here, and for as long as its own run lasts.
            better = self.rules[index].days.run(found.first) or found
            day = better.last + 1

    def _earliest(self, day: int, state: State) -> Days | None:
        runs = (rule.days.run(day) for rule in self.rules if rule.state is state)
        return min((run for run in runs if run), default=None)

    def _up_to_a_better_rule(self, found: Days, index: int) -> Days:
        """The part of a rule's run, from its first day on, before an earlier rule names a day."""
        own = self.rules[index].days.run(found.first) or found
        last = own.last
        for rule in self.rules[:index]:
            run = rule.days.run(own.first)
            if run is not None:
                last = min(last, run.first - 1)
        return Days(own.first, last)

    @property
    def last(self) -> int:
        """The last single day of all rules."""
        return max(rule.days.last for rule in self.rules)

    @property
    def go_on(self) -> bool:
        """Whether a rule names days of every year."""
        return any(rule.days.goes_on for rule in self.rules)

    @property
    def last_closed(self) -> int | None:
        """The last day that may be closed; None if there is no last one."""
        closed = [rule.days for rule in self.rules if rule.state is State.CLOSED]
        if any(days.goes_on for days in closed):
            return None
        return max((days.last for days in closed), default=FIRST_DAY)


@dataclass(frozen=True, slots=True)
class Excepted:
    """A recurrence with exceptions, itself a recurrence."""

    base: Recurrence
    exceptions: Exceptions

    @property
    def reach(self) -> int:
        """That of the recurrence: open dates are laid out within each span."""
        return self.base.reach

    @property
    def unbroken(self) -> bool:
        """Whether neither the recurrence nor a closed date leaves a gap."""
        return self.base.unbroken and self.exceptions.run(FIRST_DAY, State.CLOSED) is None

    @property
    def settled(self) -> int:
        """The moment after the last single date."""
        return max(self.base.settled, (self.exceptions.last + 2) * DAY)

    @property
    def patience(self) -> int:
        """Days of every year are seen in every kind of year after 40 of them."""
        return 40 * YEAR if self.exceptions.go_on else self.base.patience

    @property
    def cycle(self) -> int:
        """Likewise."""
        return 40 * YEAR if self.exceptions.go_on else self.base.cycle

    def next_day(self, day: int) -> int | None:
        """The first day on which the recurrence may open, or that is open as an exception."""
        by_rule, by_date = self.base.next_day(day), self.exceptions.run(day, State.OPEN)
        if by_rule is None or by_date is None:
            return by_date.first if by_date else by_rule
        return min(by_rule, by_date.first)

    def runs(self, zone: Zone, span: Span, after: int) -> Iterator[Run]:
        """What opens on dates that are not closed, and the open dates."""
        by_rule = (run for part in self._parts(span, after) for run in self.base.runs(zone, part, after))
        return merge(by_rule, self._open(zone, span, after))

    def _parts(self, span: Span, after: int) -> Iterator[Span]:
        """The span without the closed dates, from where something may still be open after a moment."""
        start, offset = span.start, span.offset
        day = (max(start, after - self.base.reach) + offset) // DAY
        start = max(start, day * DAY - offset)
        while start < span.end:
            closed = self.exceptions.run(day, State.CLOSED)
            if closed is None or closed.first * DAY - offset >= span.end:
                yield Span(start, span.end, offset)
                return
            if closed.first * DAY - offset > start:
                yield Span(start, closed.first * DAY - offset, offset)
            day = closed.last + 1
            start = max(start, day * DAY - offset)

    def _open(self, zone: Zone, span: Span, after: int) -> Iterator[Run]:
        """The open dates as far as they lie in the span; the next one goes on where a span cuts them."""
        day = (max(span.start, after) + span.offset) // DAY - 1
        found = self.exceptions.run(day, State.OPEN)
        while found is not None and found.first * DAY - span.offset < span.end:
            opens = max(zone.start_of_day(found.first), span.start)
            closes = min(zone.start_of_day(found.last + 1), span.end)
            if opens < closes and closes > after:
                yield opens, closes
            found = self.exceptions.run(found.last + 1, State.OPEN)
