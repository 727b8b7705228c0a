"""`5spot preview`: the windows of a manifest's schedule, as data or as a week to look at."""

import argparse
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from crds.base import rfc3339
from crds.schedule import Window
from crds.scheduledmachine import ScheduledMachine
from service.commands.bars import SIGNS, Period, drawn
from service.commands.validate import (
    ALLOWED,
    REJECTED,
    UNREADABLE,
    Judged,
    add_files,
    judge_all,
    print_json,
    verdict_lines,
)

DAYS_MAX: Final = 3660
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})"
)


def register(subparsers: Any) -> None:
    """Add the command to the `5spot` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "preview",
        help="show when a manifest's machine would be in service",
        description="Shows the windows of each ScheduledMachine's schedule, whether enabled or not, cut to a period of "
        "24-hour days. Exit code 0: done; 1: a document is rejected, its verdict is shown instead; 2: something could "
        "not be read or is no manifest; 70: an error of our own.",
    )
    add_files(parser)
    parser.add_argument(
        "--from",
        dest="start",
        metavar="RFC3339",
        type=_instant,
        default=None,
        help="where the period starts, for example 2026-03-08T00:00:00Z; default: now",
    )
    parser.add_argument(
        "--days", type=_days, default=7, metavar="N", help=f"length in days, 1 to {DAYS_MAX}; default: 7"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(run=run)


def _instant(text: str) -> datetime:
    if not _RFC3339.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no RFC 3339 time such as 2026-03-08T00:00:00Z")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: {error}") from None


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= DAYS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {DAYS_MAX}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Print the windows of all documents."""
    period = _period(arguments)
    if period is None:
        sys.stderr.write("--from and --days reach beyond the year 9999\n")
        return UNREADABLE
    judged, readable = judge_all(arguments)
    if arguments.output == "json":
        print_json([_data(each, period) for each in judged])
    else:
        sys.stdout.write("\n".join(_picture(each, period) for each in judged))
    if not readable:
        return UNREADABLE
    return ALLOWED if all(each.verdict.allowed for each in judged) else REJECTED


def _period(arguments: argparse.Namespace) -> Period | None:
    start = arguments.start or datetime.now(UTC).replace(microsecond=0)
    try:
        return Period(start, start + timedelta(days=arguments.days))
    except OverflowError:
        return None


def _data(judged: Judged, period: Period) -> dict[str, Any]:
    machine = judged.verdict.model
    if machine is None:
        return judged.to_json()
    schedule = machine.spec.schedule
    return {
        "name": judged.name,
        "timezone": str(schedule.timezone),
        "enabled": schedule.enabled,
        "windows": [{"opens": rfc3339(each.opens), "closes": rfc3339(each.closes)} for each in _cut(machine, period)],
    }


def _cut(machine: ScheduledMachine, period: Period) -> list[Window]:
    return list(machine.spec.schedule.compiled.windows(period.start, period.end, cut=True))


def _picture(judged: Judged, period: Period) -> str:
    machine = judged.verdict.model
    if machine is None:
        return "".join(f"{line}\n" for line in verdict_lines(judged))
    schedule = machine.spec.schedule
    paused = "" if schedule.enabled else ", disabled"
    title = f"{judged.namespace}/{judged.name}: {schedule.compiled.describe()}{paused}"
    lines = drawn(_cut(machine, period), schedule.timezone, period, plain=_plain())
    return "".join(f"{line}\n" for line in (title, *lines))


def _plain() -> bool:
    """Whether the terminal cannot show block characters."""
    try:
        SIGNS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
