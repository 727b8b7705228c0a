"""`5spot preview`: the windows of a schedule, from manifests or from a cluster, as data or as a week to look at."""

import argparse
import asyncio
import re
import sys
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from crds import names, providers
from crds.base import rfc3339
from crds.schedule import Window
from crds.scheduledmachine import ScheduledMachine
from crds.values import Zone
from service.commands import cluster
from service.commands.bars import SIGNS, Period, drawn, to_midnight
from service.commands.documents import Document
from service.commands.filenames import looks_like_a_file
from service.commands.validate import (
    FILES_HELP,
    UNREADABLE,
    UNREADABLE_HELP,
    Judged,
    add_files,
    exit_code,
    judge,
    judge_all,
    print_json,
    verdict_lines,
)

DAYS_MAX: Final = 3660
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})"
)
_EPOCH: Final = date(1970, 1, 1).toordinal()
_EPILOG: Final = """\
examples:
  5spot preview machines/                       every manifest in a directory
  5spot preview desk-7.yaml --from 2026-03-28   from midnight on that day, in the schedule's time zone
  5spot preview desk-7 -n team-a                the ScheduledMachine desk-7 of a cluster
  5spot preview -n team-a                       all of a namespace"""


class NothingToShowError(ValueError):
    """The arguments lead to nothing that could be shown; the message says why."""


def register(subparsers: Any) -> None:
    """Add the command to the `5spot` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "preview",
        help="show when a manifest's machine would be in service",
        description="Shows the windows of each ScheduledMachine's schedule, whether enabled or not, over a period of "
        "24-hour days. The table carries on to the end of the last day, in the schedule's time zone, and … marks a "
        "window that opens before the period or closes after it. JSON has exactly the period; `cut` names the ends "
        "of a window that lie outside it. Exit code 0: done; 1: a document is rejected, its verdict is shown instead; "
        f"{UNREADABLE_HELP}",
        epilog=_EPILOG,
        formatter_class=_Wrapped,
    )
    parser.add_argument(
        "what",
        nargs="*",
        metavar="FILE|NAME",
        help=f"{FILES_HELP}; or the name of a ScheduledMachine in a cluster",
    )
    add_files(parser)
    parser.add_argument(
        "-n", "--namespace", help="read from a cluster: those named, or all of this namespace; default: the context's"
    )
    cluster.add_flags(parser)
    parser.add_argument(
        "--from",
        dest="start",
        metavar="TIME",
        type=_start,
        default=None,
        help="where the period starts: a time such as 2026-03-08T00:00:00Z, or a date such as 2026-03-08, which is "
        "midnight in the schedule's time zone; default: now",
    )
    parser.add_argument(
        "--days", type=_days, default=7, metavar="N", help=f"length in days, 1 to {DAYS_MAX}; default: 7"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(run=run)


class _Wrapped(argparse.HelpFormatter):
    """Wraps the description, leaves the examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text is _EPILOG else super()._fill_text(text, width, indent)


def _start(text: str) -> datetime | date:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        if _RFC3339.fullmatch(text):
            return datetime.fromisoformat(text.upper()).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} does not exist: {error}") from None
    raise argparse.ArgumentTypeError(
        f"{text!r} is neither a date such as 2026-03-08 nor a time such as 2026-03-08T00:00:00Z"
    )


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= DAYS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {DAYS_MAX}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Print the windows of all ScheduledMachines asked for."""
    arguments.start = arguments.start or datetime.now(UTC).replace(microsecond=0)
    try:
        _period(arguments, Zone.parse("UTC"))
        judged, readable = _judged(arguments)
    except OverflowError:
        sys.stderr.write("--from and --days reach beyond the year 9999\n")
        return UNREADABLE
    except NothingToShowError as error:
        sys.stderr.write(f"{error}\n")
        return UNREADABLE
    if arguments.output == "json":
        print_json([_data(each, arguments) for each in judged])
    else:
        sys.stdout.write("\n".join(_picture(each, arguments) for each in judged))
    return exit_code(judged, readable=readable)


def _judged(arguments: argparse.Namespace) -> tuple[list[Judged], bool]:
    in_cluster = [each for each in arguments.what if arguments.namespace or not looks_like_a_file(each)]
    files = [*arguments.files, *(each for each in arguments.what if each not in in_cluster)]
    if files and (in_cluster or arguments.namespace):
        asked = in_cluster[0] if in_cluster else f"namespace {arguments.namespace}"
        raise NothingToShowError(f"{files[0]} is a file and {asked} is in a cluster: run preview once for each")
    if files:
        return judge_all(files, arguments)
    if not in_cluster and not arguments.namespace:
        raise NothingToShowError("name a FILE, the NAME of a ScheduledMachine in a cluster, or a namespace with -n")
    return asyncio.run(_from_cluster(in_cluster, arguments)), True


async def _from_cluster(wanted: list[str], arguments: argparse.Namespace) -> list[Judged]:
    from service.kube.errors import KubeError  # noqa: PLC0415 - `--help` should not wait for it

    try:
        found = await _read(wanted, arguments)
    except (KubeError, ValueError) as error:  # ValueError: the kubeconfig
        hint = f"; if {wanted[0]} is meant to be a file, there is none of that name here" if wanted else ""
        raise NothingToShowError(f"cannot read from the cluster: {error}{hint}") from None
    policy = providers.from_flags(arguments)
    return [judge(Document("the cluster", 1, _whole(each)), policy) for each in found]


async def _read(wanted: list[str], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    from service.kube.resource import SCHEDULED_MACHINES  # noqa: PLC0415 - see above

    namespace = arguments.namespace or cluster.default_namespace(arguments)
    async with await cluster.connect(arguments) as client:
        if wanted:
            return [await client.get(SCHEDULED_MACHINES, name, namespace=namespace) for name in wanted]
        found = await client.list(SCHEDULED_MACHINES, namespace=namespace)
    if not found:
        raise NothingToShowError(f"there is no {names.KIND} in namespace {namespace}")
    return found


def _whole(raw: dict[str, Any]) -> dict[str, Any]:
    """As a manifest: the items of a list do not carry their kind."""
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, **raw}


def _period(arguments: argparse.Namespace, zone: Zone) -> Period:
    start = arguments.start
    if not isinstance(start, datetime):
        start = datetime.fromtimestamp(zone.start_of_day(start.toordinal() - _EPOCH), UTC)
    return Period(start, start + timedelta(days=arguments.days))


def _data(judged: Judged, arguments: argparse.Namespace) -> dict[str, Any]:
    machine = judged.verdict.model
    if machine is None:
        return judged.to_json()
    schedule = machine.spec.schedule
    period = _period(arguments, schedule.timezone)
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


def _picture(judged: Judged, arguments: argparse.Namespace) -> str:
    machine = judged.verdict.model
    if machine is None:
        return "".join(f"{line}\n" for line in verdict_lines(judged))
    schedule = machine.spec.schedule
    paused = "" if schedule.enabled else ", disabled"
    title = f"{judged.namespace}/{judged.name}: {schedule.compiled.describe()}{paused}"
    period = to_midnight(_period(arguments, schedule.timezone), schedule.timezone)
    lines = drawn(_touching(machine, period), schedule.timezone, period, plain=_plain())
    return "".join(f"{line}\n" for line in (title, *lines))


def _plain() -> bool:
    """Whether the terminal cannot show block characters."""
    try:
        SIGNS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
