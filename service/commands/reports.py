"""Prints the report of `5spot report`: a table for people, JSON and CSV for programs, a page to send or print."""

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table

from service.commands.machineprinting import output_console, print_data
from service.commands.report_html import page
from service.commands.table import UsageError
from service.fleet.usage import MachineUse, ReportPeriod, Totals, UsageReport, hours_of, machine_json, report_of

_SINCE: Final = re.compile(r"([0-9]{1,4})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
LONGEST: Final = timedelta(days=366)
COLUMNS: Final = (
    *("namespace", "name", "kind", "since", "hours", "servedHours", "freeHours", "services"),
    *("windowsDue", "windowsPunctual", "drainsCutShort", "reclaims", "overrides", "cost", "saved"),
)
"""Of the CSV, whether there are machines or not."""


def length(since: str) -> timedelta:
    """How far back `--since` asks for."""
    found = _SINCE.fullmatch(since.strip())
    back = int(found[1]) * _UNITS[found[2]] if found else timedelta(0)
    if not timedelta(0) < back <= LONGEST:
        raise UsageError(f"--since needs a time such as 30d, 2w or 12h, at most 366d, not {since!r}")
    return back


def period(back: timedelta, now: datetime) -> ReportPeriod:
    """The time up to now."""
    until = now.replace(microsecond=0)
    return ReportPeriod(until - back, until)


def check_scope(namespace: str | None, output: str) -> None:
    """Metrics are about all machines of the operator, not about single ones."""
    if namespace is not None:
        raise UsageError("--prometheus reports on all machines of the operator: leave out -n")
    if output == "csv":
        raise UsageError("-o csv has a line for each machine, which metrics do not know: use table, json or html")


def made(raws: Iterable[Mapping[str, Any]], asked: ReportPeriod) -> UsageReport:
    """The report on these machines."""
    return report_of(raws, asked)


def print_report(report: UsageReport, output: str) -> int:
    """Prints it; returns the exit code."""
    match output:
        case "json":
            print_data(report.to_json(), output)
        case "csv":
            sys.stdout.write(as_csv(report))
        case "html":
            sys.stdout.write(page(report))
        case _:
            _print_table(report)
    return 0


def as_csv(report: UsageReport) -> str:
    """A line for each machine, below the names of the columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in report.machines:
        writer.writerow({column: _cell(value) for column, value in machine_json(each).items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Kubernetes names cannot begin a formula in a spreadsheet, but kinds and other text might."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "@", "-")) else value


def _print_table(report: UsageReport) -> None:
    with output_console() as out:
        for part in tables(report):
            out.print(part)


def tables(report: UsageReport) -> Iterator[RenderableType]:
    """The report for a terminal."""
    yield f"{report.period.since:%Y-%m-%d %H:%M} to {report.period.until:%Y-%m-%d %H:%M} UTC"
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, value in headline(report.totals):
        facts.add_row(name, value)
    yield facts
    if report.machines:
        yield ""
        yield _machines(report.machines)
    for note in report.notes:
        yield ""
        yield note


def headline(totals: Totals) -> Iterator[tuple[str, str]]:
    """The totals in words, one fact a line."""
    yield "machines", f"{totals.machines}"
    yield "always on", f"{totals.hours:,.1f} h"
    yield "served", f"{totals.served:,.1f} h ({share(totals.served, totals.hours)})"
    yield "hosts free", f"{totals.free:,.1f} h ({share(totals.free, totals.hours)})"
    punctual = f"{totals.punctual} of {totals.due} windows ({share(totals.punctual, totals.due)})"
    yield "Ready within a minute of the opening", punctual
    for kind, spread in totals.to_ready.items():
        times = f"{spread.p50:g} s, {spread.p90:g} s, {spread.p99:g} s"
        yield f"time to Ready, {kind} (p50, p90, p99)", f"{times} of {spread.count}"
    yield "drains cut short", f"{totals.cut_short}"
    yield "reclaims", f"{totals.reclaims}"
    yield "overrides", f"{totals.overrides}"
    if totals.cost is not None:
        yield "cost while in use", f"{totals.cost:,.2f}"
        yield "saved against always on", f"{totals.saved:,.2f}"


def share(part: float, whole: float) -> str:
    """In percent."""
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _machines(machines: Iterable[MachineUse]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("NAMESPACE", "NAME", "SERVED", "FREE", "SERVICES", "PUNCTUAL", "CUT SHORT", "SAVED"):
        table.add_column(column, justify="left" if column in ("NAMESPACE", "NAME") else "right", no_wrap=True)
    for each in machines:
        table.add_row(
            each.namespace,
            each.name,
            f"{hours_of(each.served):,.1f} h",
            f"{hours_of(each.free):,.1f} h",
            str(each.services),
            f"{each.punctual}/{each.due}",
            str(each.cut_short),
            f"{each.saved:,.2f}" if each.saved is not None else "",
        )
    return table
