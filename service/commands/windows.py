"""Finds the ScheduledMachines that `5spot preview` is asked for, and the calendars that they name."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from crds import names
from crds.providers import ProviderPolicy
from crds.values import Zone
from service.commands import calendars
from service.commands.bars import Period
from service.commands.calendars import CalendarSource
from service.commands.documents import Document
from service.commands.filenames import looks_like_a_file
from service.commands.options import ClusterChoice
from service.commands.table import UsageError
from service.commands.verdicts import Judged, Reading, judge

if TYPE_CHECKING:
    from service.kube.client import Client

_EPOCH: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class DayRange:
    """The period asked for; a start without a time is midnight in the time zone of each schedule."""

    start: date
    days: int

    @classmethod
    def starting(cls, start: date | None, days: int) -> Self:
        """From `start` or from now."""
        span = cls(start or datetime.now(UTC).replace(microsecond=0), days)
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
    """The files that the arguments name, or else the objects in a cluster; with a namespace, all are objects."""
    in_cluster = [each for each in what if namespace or not looks_like_a_file(each)]
    paths = [*files, *(each for each in what if each not in in_cluster)]
    if paths and (in_cluster or namespace):
        stored = in_cluster[0] if in_cluster else f"namespace {namespace}"
        raise UsageError(f"{paths[0]} is a file and {stored} is in a cluster: run preview once for each")
    if not paths and not in_cluster and not namespace:
        raise UsageError("name a FILE, the NAME of a ScheduledMachine in a cluster, or a namespace with -n")
    return paths, in_cluster


class Found(NamedTuple):
    """The ScheduledMachines asked for, and the calendars that they name."""

    judged: list[Judged]
    calendars: CalendarSource


class Stored(NamedTuple):
    """Which objects of a cluster are asked for: those named, or all of the namespace."""

    wanted: list[str]
    namespace: str | None
    operator_namespace: str


def of_files(reading: Reading, span: DayRange, operator_namespace: str) -> Found:
    """The ScheduledMachines of files, and the calendars beside them."""
    judged = [each for each in reading.judged if each.kind == names.KIND]
    return Found(judged, calendars.from_files(reading.contents, judged, span.today, operator_namespace))


def of_cluster(stored: Stored, access: ClusterChoice, policy: ProviderPolicy, span: DayRange) -> Found:
    """The verdict on objects in a cluster, and the calendars that they name."""
    from service.kube.errors import KubeError  # noqa: PLC0415 - files need no client

    try:
        judged, found = asyncio.run(_read(stored, access, policy))
    except (KubeError, ValueError) as error:  # ValueError: the kubeconfig
        hint = f"; if {stored.wanted[0]} is a file, it does not exist here" if stored.wanted else ""
        raise UsageError(f"cannot read from the cluster: {error}{hint}") from None
    return Found(judged, found.source(span.today, stored.operator_namespace))


async def _read(
    stored: Stored, access: ClusterChoice, policy: ProviderPolicy
) -> tuple[list[Judged], calendars.StoredCalendars]:
    from service.commands import cluster  # noqa: PLC0415 - see above

    namespace = stored.namespace or cluster.default_namespace(access)
    async with await cluster.connect(access) as client:
        found = await _machines(client, stored.wanted, namespace)
        judged = [judge(Document("the cluster", 1, _whole(each)), policy) for each in found]
        return judged, await calendars.read_stored(client, judged, stored.operator_namespace)


async def _machines(client: "Client", wanted: list[str], namespace: str) -> list[dict[str, Any]]:
    from service.kube.resource import SCHEDULED_MACHINES  # noqa: PLC0415 - see above

    if wanted:
        return [await client.get(SCHEDULED_MACHINES, name, namespace=namespace) for name in wanted]
    found = await client.list(SCHEDULED_MACHINES, namespace=namespace)
    if not found:
        raise UsageError(f"there is no {names.KIND} in namespace {namespace}")
    return found


def _whole(raw: dict[str, Any]) -> dict[str, Any]:
    """As a manifest: the items of a list do not carry their kind."""
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, **raw}
