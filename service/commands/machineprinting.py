"""Prints machines and explanations for people, or as JSON or YAML for programs."""

import io
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from crds.status import Phase
from crds.text import one_line
from service.commands.fleet import Details, Occurrence, Scope
from service.commands.verdicts import print_json
from service.fleet import times
from service.fleet.explanation import Explanation
from service.fleet.summary import Summary

FILE_WIDTH: Final = 160
"""How wide a table is that goes to a file or another program."""
MESSAGE_MAX: Final = 300
LINE_MAX: Final = 2048
ATTENTION_SHOWN: Final = 20


class View(NamedTuple):
    """How to print: as a table, JSON or YAML, and how many lines a table has at most; 0 means all."""

    output: str
    limit: int = 0


COLOURS: Final = {
    Phase.ACTIVE: "green",
    Phase.PENDING: "cyan",
    Phase.SHUTTING_DOWN: "yellow",
    Phase.EMERGENCY_REMOVE: "magenta",
    Phase.TERMINATED: "magenta",
    Phase.ERROR: "bold red",
}


def print_fleet(found: Sequence[Summary], chosen: Sequence[Summary], scope: Scope, view: View) -> int:
    """Prints a line for each machine that was chosen of those found; a table has no more lines than its limit."""
    output, limit = view
    shown = chosen[: limit or None]
    if output != "table":
        return print_data([each.to_json() for each in chosen], output)
    with output_console() as console:
        console.print(_counts(found, scope))
        if shown:
            console.print(_fleet(shown, scope.clock.now(), with_namespace=scope.namespace is None))
            _print_rest(console, len(chosen) - len(shown))
            _print_attention(console, chosen)
        elif found:
            console.print("No ScheduledMachine matches the options.")
    return 0


def print_details(found: Sequence[Details], scope: Scope, output: str) -> int:
    """Prints each machine at length."""
    if output != "table":
        return print_data([_data(each) for each in found], output)
    now = scope.clock.now()
    with output_console() as console:
        for each in found:
            console.print(_title(each.summary))
            console.print(_grid(_lines(each.summary, now)))
            _print_events(console, each.events, now)
    return 0


def print_explanation(found: Explanation, output: str) -> int:
    """Prints why a machine is as it is."""
    if output != "text":
        return print_data(found.to_json(), output)
    with output_console() as console:
        console.print(Text(found.headline, "bold"))
        for text in filter(None, (found.meaning, found.differs)):
            console.print(Text(text))
        _print_rules(console, found)
        _section(console, "What the decision looks at", _grid(found.facts))
        if found.changes:
            _section(console, "What changes it", _list("→", found.changes))
    return 0


def _print_rules(console: Console, found: Explanation) -> None:
    if found.unread:
        _section(
            console, "You may not read all that the rules look at, so this rests on the reported status. Not read:"
        )
        console.print(_list("-", found.unread))
        return
    _section(console, "The rule that decides", _list("✓", [found.rule], "green"))
    _section(console, "What it does", _list("→", [found.does]))
    if found.passed:
        _section(console, "Rules before it, which do not apply", _list("·", found.passed, "dim"))


def _counts(found: Sequence[Summary], scope: Scope) -> Text:
    where = f"namespace {scope.namespace}" if scope.namespace else "all namespaces"
    if not found:
        return Text(f"There is no ScheduledMachine in {where}.")
    phases = Counter(each.phase or "not handled yet" for each in found)
    counted = ", ".join(f"{count} {phase}" for phase, count in phases.most_common())
    text = Text.assemble((_number(found), "bold"), f" in {where}: {counted}")
    attention = sum(bool(each.attention) for each in found)
    return text.append(f"; {in_need(attention)}", "bold red") if attention else text


def _number(found: Sequence[Summary]) -> str:
    return "1 ScheduledMachine" if len(found) == 1 else f"{len(found)} ScheduledMachines"


def in_need(count: int) -> str:
    """How many machines a person should look at."""
    return "1 needs attention" if count == 1 else f"{count} need attention"


def _fleet(shown: Sequence[Summary], now: datetime, *, with_namespace: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    heads = ["NAMESPACE"] * with_namespace + ["NAME", "PHASE", "READY", "SINCE", "SCHEDULE", "NEXT", "NODE"]
    for head in heads:
        table.add_column(head, no_wrap=True)
    for each in shown:
        cells = [each.namespace] * with_namespace + [each.name]
        table.add_row(*cells, _phase(each), _ready(each), *_when(each, now), each.node)
    return table


def _when(summary: Summary, now: datetime) -> Iterator[str]:
    yield times.span(now - summary.since) if summary.since else ""
    yield summary.status.schedule or summary.schedule
    upcoming = summary.next
    yield f"{upcoming.what} {times.clock(upcoming.at, now)}" if upcoming else ""


def _phase(summary: Summary) -> Text:
    return Text(summary.phase or "-", COLOURS.get(summary.status.phase, "") if summary.status.phase else "dim")


def _ready(summary: Summary) -> Text:
    return Text("yes", "green") if summary.ready else Text("no", "dim")


def _print_attention(console: Console, shown: Sequence[Summary]) -> None:
    lines = [(each.name, text[:MESSAGE_MAX]) for each in shown for text in each.attention]
    if not lines:
        return
    _section(console, "Needs attention", _grid(lines[:ATTENTION_SHOWN]))
    if len(lines) > ATTENTION_SHOWN:
        console.print(f"  … and {len(lines) - ATTENTION_SHOWN} more; see them with --attention -o json")


def _print_rest(console: Console, count: int) -> None:
    if count:
        hint = "narrow the list with --attention, --phase, --cluster or -l, or see all with --limit 0"
        console.print(Text(f"… and {count} more; {hint}", "dim"))


def _title(summary: Summary) -> Text:
    reason = f" ({summary.reason})" if summary.reason else ""
    ready = ", Ready" if summary.ready else f", not Ready{reason}"
    return Text.assemble((f"{summary.namespace}/{summary.name}", "bold"), "  ", _phase(summary), ready)


def _lines(summary: Summary, now: datetime) -> Iterator[tuple[str, str]]:
    """What there is to say about a machine, without empty lines."""
    since = summary.since
    lines = (
        ("Message", summary.message),
        ("Since", f"{times.clock(since, now)}, {times.relative(since, now)}" if since else ""),
        ("Schedule", summary.schedule),
        ("Next", _next_at_length(summary, now)),
        ("Override", _override(summary, now)),
        ("Cluster", summary.cluster),
        ("Machine", f"{summary.machine}, {summary.machine_phase or 'not seen yet'}" if summary.machine else ""),
        ("Node", summary.node),
        ("Held up by", summary.held_up),
        *((f"{each.type}={each.status}", f"{each.reason}: {each.message}") for each in summary.status.conditions),
    )
    yield from ((name, text) for name, text in lines if text)
    yield from (("Attention", text) for text in summary.attention)


def _override(summary: Summary, now: datetime) -> str:
    found = summary.override
    if found is None:
        return ""
    by = f", by {found.by}" if found.by else ""
    return f"{found.name}: {found.state} until {times.clock(found.until, now)}{by}"


def _next_at_length(summary: Summary, now: datetime) -> str:
    """`closes Fri 18:00 Europe/London, Fri 13:00 here, in 4 h`."""
    upcoming = summary.next
    if upcoming is None:
        return ""
    there = f"{upcoming.what} {times.clock_of(summary.zone, upcoming.at, now)} {summary.zone}"
    here = "" if times.same_clock(summary.zone, upcoming.at) else f", {times.clock(upcoming.at, now)} here"
    return f"{there}{here}, {times.relative(upcoming.at, now)}"


def _print_events(console: Console, events: Sequence[Occurrence] | None, now: datetime) -> None:
    if events is None:
        console.print(Text("You may not read its Events.\n", "dim"))
        return
    if not events:
        console.print()
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for each in events:
        reason = Text(one_line(each.reason, LINE_MAX), "red" if each.warning else "")
        table.add_row(times.relative(each.at, now), reason, Text(one_line(each.note, LINE_MAX)))
    _section(console, "Latest events", table)
    console.print()


def _data(details: Details) -> dict[str, Any]:
    events = details.events
    found = {**details.summary.to_json(), "conditions": [each.to_json() for each in details.summary.status.conditions]}
    if events is None:
        return found
    shown = [{"at": each.at.isoformat(), "reason": each.reason, "note": each.note} for each in events]
    return {**found, "events": shown}


def print_data(found: Any, output: str) -> int:
    """Prints data as JSON or YAML."""
    if output == "json":
        print_json(found)
        return 0
    import yaml  # noqa: PLC0415 - the other outputs do not need it

    sys.stdout.write(yaml.safe_dump(found, sort_keys=False, allow_unicode=True))
    return 0


def _section(console: Console, title: str, content: Table | Padding | None = None) -> None:
    console.print()
    console.print(Text(title, "bold"))
    if content is not None:
        console.print(content)


def _grid(lines: Sequence[tuple[str, str]] | Iterator[tuple[str, str]]) -> Padding:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, text in lines:
        table.add_row(name, Text(one_line(text, LINE_MAX)))
    return Padding(table, (0, 0, 0, 2))


def _list(mark: str, lines: Sequence[str], style: str = "") -> Padding:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for line in lines:
        table.add_row(Text(mark, style), Text(line, style))
    return Padding(table, (0, 0, 0, 2))


@contextmanager
def output_console() -> Iterator[Console]:
    """As wide as the terminal; a file gets wide lines without colours. Lines do not end in blanks.

    What it shows was written by many users: brackets in it are no markup.
    """
    shown = sys.stdout.isatty()
    width = (None if shown else FILE_WIDTH) or shutil.get_terminal_size().columns
    text = io.StringIO()
    yield Console(file=text, force_terminal=shown, width=width, highlight=False, markup=False, emoji=False)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()))
