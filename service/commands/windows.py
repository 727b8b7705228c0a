"""What `5spot preview` is asked for, and what it finds of that in files."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple, Self

from crds import names
from crds.values import Zone
from service.clock import Clock
from service.commands import calendars
from service.commands.bars import Period
from service.commands.calendars import AvailableCalendars
from service.commands.filenames import cannot_be_a_name, looks_like_a_file
from service.commands.table import UsageError
from service.commands.verdicts import Judged, Reading
from service.fleet.overrides import ListedOverrides

_EPOCH: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class DayRange:
    """The period asked for; a start without a time is midnight in the time zone of each schedule."""

    start: date
    days: int

    @classmethod
    def starting(cls, start: date | None, days: int, clock: Clock) -> Self:
        """From `start` or from now."""
        span = cls(start or clock.now().replace(microsecond=0), days)
        try:
            span.period(Zone.parse("UTC"))
        except OverflowError:
            raise UsageError("--from and --days reach beyond the year 9999") from None
        return span

    @property
    def today(self) -> date:
        """The day around which holidays are worked out."""
        return self.start.date() if isinstance(self.start, datetime) else self.start

    def period(self, zone: Zone) -> Period:
        """The period in a time zone."""
        start = self.start
        if not isinstance(start, datetime):
            start = datetime.fromtimestamp(zone.start_of_day(start.toordinal() - _EPOCH), UTC)
        return Period(start, start + timedelta(days=self.days))


def sorted_out(what: list[str], files: list[str], namespace: str | None) -> tuple[list[str], list[str]]:
    """The files that the arguments name, or else the objects in a cluster: with a namespace, all that can be one."""
    is_file = cannot_be_a_name if namespace else looks_like_a_file
    in_cluster = [each for each in what if not is_file(each)]
    paths = [*files, *(each for each in what if each not in in_cluster)]
    if paths and (in_cluster or namespace):
        stored = in_cluster[0] if in_cluster else f"namespace {namespace}"
        raise UsageError(f"{paths[0]} stands for files, and {stored} is in a cluster: run preview once for each")
    if not paths and not in_cluster and not namespace:
        raise UsageError("name a FILE, the NAME of a ScheduledMachine in a cluster, or a namespace with -n")
    return paths, in_cluster


class PreviewInput(NamedTuple):
    """The ScheduledMachines asked for, the calendars that they name, and the overrides beside them."""

    judged: list[Judged]
    calendars: AvailableCalendars
    overrides: ListedOverrides
    refused: tuple[Judged, ...] = ()
    """Overrides that cannot be stored as they are, and are not shown."""


def of_files(reading: Reading, span: DayRange, operator_namespace: str) -> PreviewInput:
    """The ScheduledMachines of files, and the calendars and overrides beside them."""
    judged = [each for each in reading.judged if each.kind == names.KIND]
    found = calendars.from_files(reading.contents, judged, span.today, operator_namespace)
    beside = [each for each in reading.judged if each.kind == names.OVERRIDE_KIND]
    refused = tuple(each for each in beside if not each.verdict.allowed)
    return PreviewInput(judged, found, ListedOverrides.read(_stored(beside), datetime.now(UTC)), refused)


def _stored(overrides: list[Judged]) -> Iterator[dict[str, Any]]:
    """Manifests as if they were stored already."""
    for each in overrides:
        if each.verdict.allowed:
            given = each.document.content
            yield {**given, "metadata": {**given["metadata"], "name": each.name, "namespace": each.namespace}}
