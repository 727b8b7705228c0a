"""Dates on which a schedule is closed or open in spite of what it says; the first rule that names a date decides.

A `Closed` date is cut out of the spans in which a recurrence is laid out: nothing opens on it, and what opened before
runs to its end. An `Open` date adds local midnight to midnight.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from heapq import merge
from typing import Final, NamedTuple

from crds.dates import Days, Either, Yearly
from crds.days import FIRST_DAY, LAST_DAY
from crds.recurrence import DAY, YEAR, Recurrence, Run
from crds.zones import OffsetSpan, Zone


class State(StrEnum):
    """What an exception makes of its dates."""

    CLOSED = "Closed"
    OPEN = "Open"


class ExceptionRule(NamedTuple):
    """Some days and what becomes of them."""

    days: Either
    state: State

    def names(self, day: int) -> bool:
        """Whether a day is among them."""
        run = self.days.run(day)
        return run is not None and run.first == day


Effective = dict[State, Yearly]
"""The days of every year that have each state, by some of the rules."""


@dataclass(frozen=True, slots=True)
class Exceptions:
    """The rules in their order."""

    rules: tuple[ExceptionRule, ...]
    _yearly: tuple[Effective, ...] = field(init=False, compare=False, repr=False)
    """What the days of every year make of it: at a position, by the rules before it; at the end, by all of them."""

    def __post_init__(self) -> None:
        by_years = tuple((rule.days.yearly, rule.state) for rule in self.rules)
        object.__setattr__(self, "_yearly", _decided(by_years))

    def run(self, day: int, state: State) -> Days | None:
        """The first run of days at or after a day that have this state; the next one may follow at once."""
        while (start := self._earliest(day, state)) is not None and start <= LAST_DAY:
            found, day = self._around(start, state)
            if found is not None:
                return found
        return None

    def _earliest(self, day: int, state: State) -> int | None:
        """No day before this one has the state."""
        runs = [rule.days.dates.run(day) for rule in self.rules if rule.state is state]
        runs.append(self._yearly[-1][state].run(day))
        return min((run.first for run in runs if run is not None), default=None)

    def _around(self, day: int, state: State) -> tuple[Days | None, int]:
        """The run of days with this state from a day on, while the same single dates decide; else where to go on."""
        index, last = self._deciding(day)
        yearly = self._yearly[index]
        if index < len(self.rules) and self.rules[index].state is state:
            blocked = yearly[_OTHER[state]].run(day)
            if blocked is not None and blocked.first == day:
                return None, min(blocked.last, last) + 1
            return Days(day, last if blocked is None else min(last, blocked.first - 1)), day
        found = yearly[state].run(day)
        if found is None or found.first > last:
            return None, last + 1
        return Days(found.first, min(found.last, last)), day

    def _deciding(self, day: int) -> tuple[int, int]:
        """The first rule that names a day by its date, or the number of rules; and until which day that holds."""
        last = LAST_DAY
        for index, rule in enumerate(self.rules):
            run = rule.days.dates.run(day)
            if run is not None and run.first == day:
                return index, min(last, run.last)
            if run is not None:
                last = min(last, run.first - 1)
        return len(self.rules), last

    @property
    def last(self) -> int:
        """The last single day of all rules."""
        return max(rule.days.dates.last for rule in self.rules)

    @property
    def go_on(self) -> bool:
        """Whether a rule names days of every year."""
        return any(rule.days.yearly for rule in self.rules)

    @property
    def close(self) -> bool:
        """Whether a rule closes any day."""
        return any(rule.state is State.CLOSED for rule in self.rules)

    @property
    def last_closed(self) -> int | None:
        """The last day that may be closed; None if there is no last one."""
        closed = [rule.days for rule in self.rules if rule.state is State.CLOSED]
        if any(days.yearly for days in closed):
            return None
        return max((days.dates.last for days in closed), default=FIRST_DAY)


_OTHER: Final = {State.OPEN: State.CLOSED, State.CLOSED: State.OPEN}


@lru_cache(maxsize=4096)
def _decided(rules: tuple[tuple[Yearly, State], ...]) -> tuple[Effective, ...]:
    """What days of every year have which state: by no rule, by the first, by the first two, and so on."""
    decided: Effective = dict.fromkeys(State, Yearly())
    steps = [decided]
    for yearly, state in rules:
        if yearly:
            free = yearly - decided[State.OPEN] - decided[State.CLOSED]
            decided = {**decided, state: Yearly(decided[state] | free)}
        steps.append(decided)
    return tuple(steps)


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
        return self.base.unbroken and not self.exceptions.close

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

    def runs(self, zone: Zone, span: OffsetSpan, after: int) -> Iterator[Run]:
        """What opens on dates that are not closed, and the open dates."""
        by_rule = (run for part in self._parts(span, after) for run in self.base.runs(zone, part, after))
        return merge(by_rule, self._open(zone, span, after))

    def _parts(self, span: OffsetSpan, after: int) -> Iterator[OffsetSpan]:
        """The span without the dates to leave out, from where something may still be open after a moment."""
        start, offset = span.start, span.offset
        day = (max(start, after - self.base.reach) + offset) // DAY
        start = max(start, day * DAY - offset)
        while start < span.end:
            left_out = self._left_out(day)
            if left_out is None or left_out.first * DAY - offset >= span.end:
                yield OffsetSpan(start, span.end, offset)
                return
            if left_out.first * DAY - offset > start:
                yield OffsetSpan(start, left_out.first * DAY - offset, offset)
            following = self.base.next_day(left_out.last + 1)
            if following is None:
                return
            day, start = following, max(start, following * DAY - offset)

    def _left_out(self, day: int) -> Days | None:
        """The next closed dates, or open ones from which nothing that opens reaches beyond the last of them."""
        closed, opened = self.exceptions.run(day, State.CLOSED), self.exceptions.run(day, State.OPEN)
        if opened is not None:
            inner = Days(opened.first, opened.last - self.base.reach // DAY - 3)
            if inner.first <= inner.last and (closed is None or inner.first < closed.first):
                return inner
        return closed

    def _open(self, zone: Zone, span: OffsetSpan, after: int) -> Iterator[Run]:
        """The open dates as far as they lie in the span; the next one goes on where a span cuts them."""
        day = (max(span.start, after) + span.offset) // DAY - 1
        found = self.exceptions.run(day, State.OPEN)
        while found is not None and found.first * DAY - span.offset < span.end:
            opens = max(zone.start_of_day(found.first), span.start)
            closes = min(zone.start_of_day(found.last + 1), span.end)
            if opens < closes and closes > after:
                yield opens, closes
            found = self.exceptions.run(found.last + 1, State.OPEN)
