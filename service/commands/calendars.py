"""The calendars that schedules name, from files; for `5spot preview` and `5spot validate`."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from crds.calendarrules import KINDS
from crds.calendars import (
    CalendarDates,
    CalendarKind,
    CalendarProblem,
    CalendarReference,
    Calendars,
    CalendarShelf,
    Undecidable,
)
from crds.expansion import without_dates
from crds.schedulespec import ScheduleSpec
from service.calendars.expander import NO_CONFIG_MAP, Expander
from service.calendars.manifests import config_map_of, reference_of, shelf_of
from service.commands.verdicts import Judged


class CalendarPlace(NamedTuple):
    """A calendar, and the namespace of the schedule that names it; empty for a ClusterScheduleCalendar."""

    namespace: str
    reference: CalendarReference

    def __str__(self) -> str:
        return f"{self.reference} in namespace {self.namespace}" if self.namespace else str(self.reference)


@dataclass(frozen=True, slots=True)
class AvailableCalendars:
    """The calendars at hand, and what to say of one that is missing."""

    shelf: CalendarShelf
    missing: str
    """What to say of a calendar that is not there."""
    without_config_map: str = ""
    """What to do about a ConfigMap that is not there."""

    def seen_by(self, judged: Judged, schedule: ScheduleSpec) -> Calendars:
        """The calendars that the schedule of a ScheduledMachine means."""
        return self.shelf.seen_from(judged.namespace, schedule.calendars)

    def explained(self, judged: Judged, undecidable: Undecidable) -> Iterator[tuple[CalendarReference, str]]:
        """For each calendar that cannot be read, what is wrong and what to do."""
        for reference, why in undecidable.problems:
            if why.problem is CalendarProblem.NOT_FOUND:
                yield reference, self.missing.format(_at(judged.namespace, reference))
            elif why.message.endswith(NO_CONFIG_MAP):
                yield reference, f"{why.message}{self.without_config_map}"
            else:
                yield reference, why.message


def from_files(
    documents: Iterable[Any], judged: Iterable[Judged], today: date, operator_namespace: str
) -> AvailableCalendars:
    """The calendars among these documents that a schedule names; others cost nothing."""
    named = {place.reference for place in named_by(judged)}
    if not named:
        return AvailableCalendars(CalendarShelf(), "")
    wanted = [each for each in documents if reference_of(each) in named or config_map_of(each)]
    shelf = asyncio.run(shelf_of(wanted, today, Expander(), operator_namespace))
    return AvailableCalendars(
        shelf,
        missing="{} is not in these files; give its file too",
        without_config_map="; give the file of the ConfigMap too",
    )


def with_calendar_warnings(judged: list[Judged], documents: list[Any], today: date) -> list[Judged]:
    """The verdicts, with a warning for each calendar of no use, which admission takes: it is broken, or has no dates.

    An ICS in a ConfigMap that is not at hand is passed over.
    """
    return [each.warned(_warnings(each, documents, today)) for each in judged]


def _warnings(judged: Judged, documents: list[Any], today: date) -> list[str]:
    if judged.calendar is None or (judged.calendar.ics is None and judged.calendar.holidays is None):
        return []
    reference = CalendarReference(KINDS[judged.kind], judged.name)
    beside = [each for each in documents if config_map_of(each)]
    shelf = asyncio.run(shelf_of([judged.document.content, *beside], today, Expander()))
    found = shelf.seen_from(judged.namespace, [reference]).get(reference)
    if isinstance(found, CalendarDates):
        return [f"{reference} {empty}"] if (empty := without_dates(found)) else []
    if found is None or found.message.endswith(NO_CONFIG_MAP):
        return []
    return [f"{found.message}; no schedule can use the calendar until it is corrected"]


def named_by(judged: Iterable[Judged]) -> list[CalendarPlace]:
    """All calendars that schedules name, each once."""
    schedules = ((each.namespace, each.schedule) for each in judged)
    places = (
        _at(namespace, reference)
        for namespace, schedule in schedules
        if schedule is not None
        for reference in schedule.calendars
    )
    return list(dict.fromkeys(places))


def _at(namespace: str, reference: CalendarReference) -> CalendarPlace:
    return CalendarPlace("" if reference.kind is CalendarKind.CLUSTER else namespace, reference)
