"""The demo on a terminal: schedules, machines, Nodes with their pods, events and what is still expected."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from crds.schedule import Schedule
from local import examples
from local.demo import words
from local.demo.expectations import START, Expectation, ExpectationVerdict
from local.demo.observations import Chronicle, Kind, Observation

HOUR = timedelta(hours=1)
BAR_FROM = START.replace(minute=0)
BAR_HOURS = 28
WIDE = 108
TALL = 40
SHORTEST = 2
COLOURS = {"Active": "green", "Running": "green", "ShuttingDown": "yellow", "Deleting": "yellow", "Error": "bold red"}
MARKS = {ExpectationVerdict.WAITING: ("·", "dim"), ExpectationVerdict.MET: ("✓", "green")}
WRONG = ("✗", "bold red")


@dataclass(frozen=True, slots=True)
class Screen:
    """Draws one frame after another, fitted to the terminal's size."""

    expected: Sequence[Expectation]
    schedules: Mapping[str, Schedule]
    speed: float
    address: str = ""
    """Where the console is; empty if there is none."""

    def frame(self, chronicle: Chronicle, now: datetime, width: int, height: int) -> RenderableType:
        """How things stand."""
        parts: list[RenderableType] = [
            self._title(chronicle, now),
            self._machines(chronicle, now, bars=width >= WIDE),
            *_errors(chronicle),
            _nodes(chronicle),
            self._verdicts(chronicle, now, full=height >= TALL),
        ]
        used = sum(_lines(part, width) for part in parts)
        foot = [Text(f"Console: {self.address}", "bold")] if self.address else []
        return Group(*parts, Text(), _events(chronicle, max(SHORTEST, height - used - 2 - len(foot))), *foot)

    def _title(self, chronicle: Chronicle, now: datetime) -> Text:
        over = all(each.verdict(chronicle, now) is not ExpectationVerdict.WAITING for each in self.expected)
        hint = "the story is over, the schedules go on; Ctrl-C ends" if over else "Ctrl-C ends"
        text = Text.assemble(("5-Spot ", "bold"), (f"{now:%A %d %B %Y  %H:%M}", "bold cyan"))
        return text.append(f"   an hour takes {3600 / self.speed:.3g} s; {hint}\n", "dim")

    def _machines(self, chronicle: Chronicle, now: datetime, *, bars: bool) -> Table:
        table = _table("Name", "Phase", "Machine", "Node", "Window")
        if bars:
            table.add_column(_hours(), no_wrap=True)
        for seen in sorted(chronicle.present(Kind.MACHINE), key=lambda each: examples.ALL.index(each.name)):
            facts = seen.facts
            state = (_coloured(facts["phase"]), _coloured(facts["machine"]))
            bar = [self._bar(chronicle, seen.name, now)] if bars else []
            table.add_row(seen.name, *state, facts["node"], words.boundary(seen), *bar)
        return table

    def _bar(self, chronicle: Chronicle, name: str, now: datetime) -> Text:
        """An hour a character: what was, and what the schedule says will be."""
        text = Text()
        for hour in (BAR_FROM + HOUR * n for n in range(BAR_HOURS)):
            if hour + HOUR <= now:
                text.append(*_past(chronicle.at(Kind.MACHINE, name, hour + HOUR / 2)))
            else:
                text.append(*self._coming(name, hour, now))
        return text

    def _coming(self, name: str, hour: datetime, now: datetime) -> tuple[str, str]:
        style = "reverse" if hour <= now else ""
        return ("░", style) if self.schedules[name].covers(hour + HOUR / 2) else (" ", style)

    def _verdicts(self, chronicle: Chronicle, now: datetime, *, full: bool) -> RenderableType:
        rows = words.summary(self.expected, chronicle, now)
        if full:
            return verdicts("Expected", rows)
        met = sum(verdict is ExpectationVerdict.MET for *_, verdict in rows)
        wrong = sum(verdict not in MARKS for *_, verdict in rows)
        text = Text(f" {met} of {len(rows)} things have happened as expected")
        return text.append(f", {wrong} have not", "bold red") if wrong else text


def verdicts(title: str, rows: Sequence[tuple[str, str, str, ExpectationVerdict]]) -> Table:
    """What was expected and what became of it."""
    table = Table(title=title, title_justify="left", box=None, show_header=False, padding=(0, 2, 0, 0))
    for who, what, seen, verdict in rows:
        mark, style = MARKS.get(verdict, WRONG)
        shown = seen if verdict in MARKS else f"{verdict}; {seen}"
        table.add_row(Text(mark, style), who, what, Text(shown, "dim" if verdict in MARKS else style))
    return table


def _past(seen: Observation | None) -> tuple[str, str]:
    if seen is None or seen.gone:
        return "·", "dim"
    if seen.says(phase="Error"):
        return "!", "bold red"
    if seen.says(ready="True"):
        return "█", "green"
    return ("▒", "yellow") if seen.facts["machine"] else ("·", "dim")


def _hours() -> Text:
    """`09    12    …`: every third hour over its bar."""
    labels = [f"{BAR_FROM + HOUR * n:%H}" if (BAR_FROM + HOUR * n).hour % 3 == 0 else "" for n in range(BAR_HOURS)]
    text = ""
    for n, label in enumerate(labels):
        if label and len(text) <= n and n + len(label) <= BAR_HOURS:
            text = text.ljust(n) + label
    return Text(text.ljust(BAR_HOURS))


def _errors(chronicle: Chronicle) -> Iterator[Text]:
    for seen in chronicle.present(Kind.MACHINE):
        if seen.says(phase="Error"):
            yield Text(f"{seen.name}: {seen.facts['message']}", "red")


def _nodes(chronicle: Chronicle) -> RenderableType:
    table = _table("Node", "State", "Pods", "Taints")
    pods = chronicle.present(Kind.POD)
    for seen in chronicle.present(Kind.NODE):
        mine = [_pod(pod) for pod in pods if pod.says(node=seen.name)]
        cordoned = Text(", cordoned" if seen.facts["cordoned"] else "", "yellow")
        taints = seen.facts["taints"].replace(", ", "\n")  # side by side they would squeeze all else on 80 columns
        table.add_row(seen.name, Text(seen.facts["state"]) + cordoned, Text(", ").join(mine), taints)
    if not table.row_count:
        table.add_row(Text("none at the moment", "dim"))
    return table


def _pod(seen: Observation) -> Text:
    if seen.says(state="running"):
        return Text(seen.name)
    return Text(f"{seen.name} {seen.facts['state']}", "yellow")


def _events(chronicle: Chronicle, most: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), expand=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    shown = [each for each in chronicle.of(Kind.EVENT) if not each.gone][-most:]
    for seen in shown:
        style = "red" if seen.says(type="Warning") else ""
        table.add_row(words.moment(seen.at), seen.facts["about"], Text(seen.facts["reason"], style), seen.facts["note"])
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table


def _coloured(word: str) -> Text:
    return Text(word, COLOURS.get(word, ""))


def _lines(part: RenderableType, width: int) -> int:
    paper = Console(file=io.StringIO(), width=width)
    return len(paper.render_lines(part, pad=False))
