"""Finds the ScheduledMachines that `5spot preview` is asked for, and prints their windows as a table or as JSON."""

import asyncio
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Self

from crds import names
from crds.base import rfc3339
from crds.providers import ProviderPolicy
from crds.schedule import Window
from crds.scheduledmachine import ScheduledMachine
from crds.values import Zone
from service.commands.bars import SIGNS, Period, drawn, to_midnight
from service.commands.documents import Document
from service.commands.filenames import looks_like_a_file
from service.commands.options import ClusterChoice
from service.commands.table import UsageError
from service.commands.verdicts import Judged, judge, print_json, verdict_lines

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


def judge_stored(
    wanted: list[str], namespace: str | None, access: ClusterChoice, policy: ProviderPolicy
) -> list[Judged]:
    """The verdict on objects in a cluster: those named, or all of the namespace."""
    from service.kube.errors import KubeError  # noqa: PLC0415 - files need no client

    try:
        found = asyncio.run(_read(wanted, namespace, access))
    except (KubeError, ValueError) as error:  # ValueError: the kubeconfig
        hint = f"; if {wanted[0]} is a file, it does not exist here" if wanted else ""
        raise UsageError(f"cannot read from the cluster: {error}{hint}") from None
    return [judge(Document("the cluster", 1, _whole(each)), policy) for each in found]


async def _read(wanted: list[str], given: str | None, access: ClusterChoice) -> list[dict[str, Any]]:
    from service.commands import cluster  # noqa: PLC0415 - see above
    from service.kube.resource import SCHEDULED_MACHINES  # noqa: PLC0415

    namespace = given or cluster.default_namespace(access)
    async with await cluster.connect(access) as client:
        if wanted:
            return [await client.get(SCHEDULED_MACHINES, name, namespace=namespace) for name in wanted]
        found = await client.list(SCHEDULED_MACHINES, namespace=namespace)
    if not found:
        raise UsageError(f"there is no {names.KIND} in namespace {namespace}")
    return found


def _whole(raw: dict[str, Any]) -> dict[str, Any]:
    """As a manifest: the items of a list do not carry their kind."""
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, **raw}


def print_windows(judged: list[Judged], span: DayRange, output: str) -> None:
    """Prints the windows of each ScheduledMachine, or the verdict on one that is rejected."""
    if output == "json":
        print_json([_data(each, span) for each in judged])
    else:
        sys.stdout.write("\n".join(_picture(each, span) for each in judged))


def _data(judged: Judged, span: DayRange) -> dict[str, Any]:
    machine = judged.verdict.model
    if machine is None:
        return judged.to_json()
    schedule = machine.spec.schedule
    period = span.period(schedule.timezone)
    return {
        "name": judged.name,
        "namespace": judged.namespace,
        "timezone": str(schedule.timezone),
        "enabled": schedule.enabled,
        "windows": [_window(each, period) for each in _touching(machine, period)],
    }


def _window(window: Window, period: Period) -> dict[str, Any]:
    """The part of a window within the period; `cut` says which of its ends are not the window's own."""
    outside = {"opens": window.opens < period.start, "closes": window.closes > period.end}
    cut = [end for end, is_outside in outside.items() if is_outside]
    part = window.cut(period.start, period.end)
    shown = {"opens": rfc3339(part.opens), "closes": rfc3339(part.closes)}
    return {**shown, "cut": cut} if cut else shown


def _touching(machine: ScheduledMachine, period: Period) -> list[Window]:
    return list(machine.spec.schedule.compiled.windows(period.start, period.end))


def _picture(judged: Judged, span: DayRange) -> str:
    machine = judged.verdict.model
    if machine is None:
        return "".join(f"{line}\n" for line in verdict_lines(judged))
    schedule = machine.spec.schedule
    paused = "" if schedule.enabled else ", disabled"
    title = f"{judged.namespace}/{judged.name}: {schedule.compiled.describe()}{paused}"
    period = to_midnight(span.period(schedule.timezone), schedule.timezone)
    lines = drawn(_touching(machine, period), schedule.timezone, period, plain=_plain())
    return "".join(f"{line}\n" for line in (title, *lines))


def _plain() -> bool:
    """Whether the terminal cannot show block characters."""
    try:
        SIGNS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
