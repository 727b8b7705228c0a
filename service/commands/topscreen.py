"""Draws `5spot top`: counts, the list around the selected machine, and what the keys do."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.commands.machineprinting import COLOURS, in_need
from service.fleet import times
from service.fleet.board import Board, Wish
from service.fleet.summary import Summary

HEADS: Final = ("NAMESPACE", "NAME", "PHASE", "READY", "SINCE", "NEXT", "NODE", "WHAT")
WIDE: Final = 110
"""From this width on there is room for namespaces and messages."""
AROUND: Final = 5
"""Lines that the list does not get: title, head, a blank line, the foot, the prompt."""
KEYS: Final = "↑↓ select  / filter  a attention  s sort  enter why  e extend 1 h  k skip next  q quit"
QUESTIONS: Final = {
    Wish.EXTEND: "Keep {} in service for an hour longer? y/n",
    Wish.SKIP: "Skip the next window of {}? y/n",
}


@dataclass(frozen=True, slots=True)
class Size:
    """Of the terminal, in characters."""

    width: int
    height: int


def frame(
    board: Board, fleet: Sequence[Summary], shown: Sequence[Summary], now: datetime, size: Size, problem: str = ""
) -> RenderableType:
    """One full screen."""
    foot = list(_foot(board, shown, problem))
    room = max(1, size.height - AROUND - len(board.notes))
    return Group(_title(fleet, now), _list(board, shown, now, size, room), Text(), *foot)


def _title(fleet: Sequence[Summary], now: datetime) -> Text:
    phases = Counter(each.phase or "not handled" for each in fleet)
    text = Text.assemble(("5-Spot ", "bold"), (f"{now.astimezone():%a %H:%M:%S}  ", "cyan"), _number(fleet))
    for phase, count in phases.most_common():
        text.append(f"  {count} {phase}")
    attention = sum(bool(each.attention) for each in fleet)
    return text.append(f"  {in_need(attention)}", "bold red") if attention else text


def _number(fleet: Sequence[Summary]) -> str:
    return "1 machine" if len(fleet) == 1 else f"{len(fleet)} machines"


def _list(board: Board, shown: Sequence[Summary], now: datetime, size: Size, room: int) -> Table:
    wide = size.width >= WIDE
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)
    heads = HEADS if wide else HEADS[1:-1]
    for head in heads:
        table.add_column(head, no_wrap=True, overflow="ellipsis", ratio=1 if head == "WHAT" else None)
    place = board.place(shown)
    first = max(0, min(place - room // 2, len(shown) - room))
    for number, each in enumerate(shown[first : first + room], first):
        cells = tuple(_cells(each, now))
        shown_cells = cells if wide else cells[1:-1]
        table.add_row(*shown_cells, style="reverse" if number == place else "")
    return table


def _cells(each: Summary, now: datetime) -> Iterator[RenderableType]:
    yield Text(each.namespace, "dim")
    yield Text(each.name, "bold red" if each.attention else "")
    yield Text(each.phase or "-", COLOURS.get(each.status.phase, "") if each.status.phase else "dim")
    yield Text("yes", "green") if each.ready else Text("no", "dim")
    yield times.span(now - each.since) if each.since else ""
    yield f"{each.next.what} {times.relative(each.next.at, now)}" if each.next else ""
    yield Text(each.node)
    yield Text(each.attention[0] if each.attention else each.held_up or each.message)


def _foot(board: Board, shown: Sequence[Summary], problem: str) -> Iterator[Text]:
    yield from (Text(note) for note in board.notes)
    chosen = board.chosen(shown)
    if board.asked is not None and chosen is not None:
        yield Text(QUESTIONS[board.asked].format(f"{chosen.namespace}/{chosen.name}"), "bold yellow")
    elif board.typing:
        yield Text(f"filter: {board.filter.text}▏", "bold")
    elif problem:
        yield Text(f"not connected: {problem}", "bold red")
    else:
        only = "  (attention only)" if board.filter.attention else ""
        text = f"  filter: {board.filter.text}" if board.filter.text else ""
        yield Text(f"{KEYS}   {len(shown)} shown by {board.filter.sort}{text}{only}", "dim")
