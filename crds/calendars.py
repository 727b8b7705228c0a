"""What calendars say, as data for the algebra: dates with their names, or why a calendar cannot be read.

Who holds the calendars (the controller by watches, `preview` from files) hands them over as a mapping; a schedule whose
calendars cannot all be read is undecidable, and nothing may be done for its sake.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from crds.dates import Anniversary, Dates, Days, Either, Yearly, date_of
from crds.days import FIRST_DAY, LAST_DAY
from crds.zones import Zone

_DAY = 86400


class CalendarKind(StrEnum):
    """Where a calendar lives."""

    NAMESPACED = "ScheduleCalendar"
    CLUSTER = "ClusterScheduleCalendar"


class CalendarReference(NamedTuple):
    """How a schedule names a calendar; a namespaced one is in the ScheduledMachine's own namespace."""

    kind: CalendarKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class NamedDays(NamedTuple):
    """Days with a name, which may be empty; both ends included."""

    first: int
    last: int
    name: str = ""


class CalendarEvent(NamedTuple):
    """Something between two moments of Unix time; on which dates that is, the zone decides."""

    begins: int
    ends: int
    name: str = ""


class CalendarProblem(StrEnum):
    """Why a calendar cannot be read, as conditions name it."""

    NOT_FOUND = "CalendarNotFound"
    INVALID = "CalendarInvalid"


@dataclass(frozen=True, slots=True)
class UnreadableCalendar:
    """A calendar that is missing or broken."""

    problem: CalendarProblem
    message: str
    passing: bool = False
    """Whether the same calendar may well be readable at the next attempt."""


@dataclass(frozen=True)
class CalendarDates:
    """All that a calendar says. `through` is the last day that it knows; None if what it says holds for ever."""

    days: tuple[NamedDays, ...] = ()
    yearly: tuple[Anniversary, ...] = ()
    events: tuple[CalendarEvent, ...] = ()
    through: int | None = None
    _in_zones: dict[str, Either] = field(default_factory=dict, compare=False, repr=False)

    def in_zone(self, zone: Zone) -> Either:
        """Its dates as they are in a zone, as the algebra takes them; only events depend on it."""
        key = zone.name if self.events else ""
        if key not in self._in_zones:
            runs = {*_touched(self.events, zone)}  # thousands of events may touch the same dates
            days = [*(Days(each.first, each.last) for each in self.days), *(Days(*each) for each in runs)]
            found = Either(Dates(days), Yearly(self.yearly))
            # There are hundreds of zones, but few dozen in which the dates differ: the others share them.
            self._in_zones[key] = next((each for each in self._in_zones.values() if each == found), found)
        return self._in_zones[key]

    def name(self, day: int, zone: Zone) -> str:
        """The names of a day in a zone, each once; empty if it has none."""
        # Only for the few events near the day is the zone asked, which takes long.
        near = [each for each in self.events if each.begins < (day + 2) * _DAY and each.ends >= (day - 1) * _DAY]
        named = sorted(each for each in (*self.days, *days_of(near, zone)) if each.first <= day <= each.last)
        return ", ".join(dict.fromkeys(each.name for each in named if each.name))

    def upcoming(self, day: int, count: int, zone: Zone) -> list["NamedDate"]:
        """The first days from a day on, with their names."""
        days = islice(_single_days(self.in_zone(zone), day), count)
        return [NamedDate(str(date_of(each)), self.name(each, zone)) for each in days]


def days_of(events: Collection[CalendarEvent], zone: Zone) -> Iterator[NamedDays]:
    """The dates that events touch; one that ends at midnight does not touch the new day."""
    for event, (first, last) in zip(events, _touched(events, zone), strict=True):
        yield NamedDays(first, last, event.name)


def _touched(events: Iterable[CalendarEvent], zone: Zone) -> Iterator[tuple[int, int]]:
    """The first and the last date of each event; plain numbers, as there may be thousands of events in many zones.

    An event may reach to the end of all dates, where in some zones the day after it has begun already.
    """
    span_starts, span_ends, offset = zone.span(0)
    for begins, ends, _ in events:
        if not span_starts <= begins < span_ends:
            span_starts, span_ends, offset = zone.span(begins)
        first = (begins + offset) // _DAY
        end = max(begins, ends - 1)
        if not span_starts <= end < span_ends:
            span_starts, span_ends, offset = zone.span(end)
        last = (end + offset) // _DAY
        if last < first:
            first, last = last, first
        yield (first, last) if first >= FIRST_DAY and last <= LAST_DAY else (_known(first), _known(last))


def _known(day: int) -> int:
    return min(max(day, FIRST_DAY), LAST_DAY)


def _single_days(dates: Either, day: int) -> Iterator[int]:
    while (run := dates.run(day)) is not None:
        yield from range(run.first, run.last + 1)
        day = run.last + 1


class NamedDate(NamedTuple):
    """A date, as `2026-12-25`, and what it is called."""

    date: str
    name: str


Calendars = Mapping[CalendarReference, CalendarDates | UnreadableCalendar]
"""The calendars at hand; one that is not there does not exist."""


class CalendarShelf:
    """The calendars of all namespaces: the controller holds those that it watches, a command those of its files."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, CalendarReference], CalendarDates | UnreadableCalendar] = {}

    def put(self, namespace: str, reference: CalendarReference, dates: CalendarDates | UnreadableCalendar) -> None:
        """Hold a calendar; the namespace of a ClusterScheduleCalendar does not matter."""
        self._held[_place(namespace, reference)] = dates

    def drop(self, namespace: str, reference: CalendarReference) -> None:
        """Forget a calendar that was deleted."""
        self._held.pop(_place(namespace, reference), None)

    def holds(self, namespace: str, reference: CalendarReference) -> bool:
        """Whether there is such a calendar, readable or not."""
        return _place(namespace, reference) in self._held

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:
        """The calendars that a schedule of a namespace means by these names."""
        places = ((each, _place(namespace, each)) for each in references)
        return {reference: self._held[place] for reference, place in places if place in self._held}


def _place(namespace: str, reference: CalendarReference) -> tuple[str, CalendarReference]:
    return ("" if reference.kind is CalendarKind.CLUSTER else namespace), reference


class Undecidable(NamedTuple):
    """A schedule that cannot be read whole, with the calendars that are to blame."""

    problems: tuple[tuple[CalendarReference, UnreadableCalendar], ...]

    @property
    def problem(self) -> CalendarProblem:
        """What to call it: a calendar that is missing comes before one that is broken."""
        return min((why.problem for _, why in self.problems), key=list(CalendarProblem).index)

    @property
    def message(self) -> str:
        """What is wrong, in one line."""
        return "; ".join(why.message for _, why in self.problems)


def problems_with(references: Iterable[CalendarReference], calendars: Calendars) -> Undecidable | None:
    """The calendars among these that cannot be read; None if all can."""
    found = ((reference, calendars.get(reference, _missing(reference))) for reference in references)
    bad = tuple((reference, why) for reference, why in found if isinstance(why, UnreadableCalendar))
    return Undecidable(bad) if bad else None


def _missing(reference: CalendarReference) -> UnreadableCalendar:
    where = " in this namespace" if reference.kind is CalendarKind.NAMESPACED else ""
    return UnreadableCalendar(CalendarProblem.NOT_FOUND, f"there is no {reference}{where}")
