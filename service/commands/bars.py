"""Draws windows as one bar for each local day, days with a clock change included; for `5spot preview`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from crds.schedule import Window
from crds.values import Zone
from crds.zones import END

DAY: Final = 86400
CELL: Final = 1800
CELLS: Final = DAY // CELL
TIMES_MAX: Final = 3
LABEL: Final = 15

_EPOCH: Final = date(1970, 1, 1).toordinal()


class Shade(StrEnum):
    """What a part of a day is besides open or closed; of several the first is shown."""

    LEAD = "lead"
    ADDED = "added"
    """In service by an override only."""
    REMOVED = "removed"
    """Out of service by an override only."""


_BLOCKS: Final = {
    "open": "█",
    "partly": "▄",
    "closed": "·",
    "skipped": " ",
    "more": "…",
    "becomes": "→",
    Shade.LEAD: "░",
    Shade.ADDED: "▓",
    Shade.REMOVED: "x",
}
_PLAIN: Final = {
    "open": "#",
    "partly": "+",
    "closed": ".",
    "skipped": " ",
    "more": "...",
    "becomes": "->",
    Shade.LEAD: "-",
    Shade.ADDED: "o",
    Shade.REMOVED: "x",
}
_NO_NOTES: Final[Mapping[date, str]] = {}
_NO_SHADES: Final[Mapping[Shade, Iterable[Window]]] = {}
SIGNS: Final = "".join(_BLOCKS.values())
"""A terminal that cannot show all of these gets plain signs."""


class Period(NamedTuple):
    """The time that is shown."""

    start: datetime
    end: datetime


class Piece(NamedTuple):
    """A part of one local day without a clock change: seconds since midnight on the local clock."""

    day: int
    start: int
    end: int


@dataclass
class Day:
    """One local day: which of its hours lie in the period, and which of them are open."""

    shown: list[Piece] = field(default_factory=list)
    open: list[Piece] = field(default_factory=list)
    shades: dict[Shade, list[Piece]] = field(default_factory=lambda: {shade: [] for shade in Shade})
    opened_before: bool = False
    """Whether its first window opened before the period."""
    closes_after: bool = False
    """Whether its last window closes after the period."""


def to_midnight(period: Period, zone: Zone) -> Period:
    """The period, extended to the end of its last local day."""
    end = int(period.end.timestamp())
    day, second = divmod(end + zone.span(end).offset, DAY)
    if second == 0:
        return period
    midnight = min(zone.start_of_day(day + 1), END - 1)
    return period._replace(end=datetime.fromtimestamp(midnight, UTC))


def local_days(period: Period, zone: Zone) -> Iterator[date]:
    """The dates of the period on the local clock, without those that the zone leaves out."""
    pieces = _pieces(Window(period.start, period.end), zone)
    yield from (date.fromordinal(day + _EPOCH) for day in dict.fromkeys(piece.day for piece in pieces))


def sign(shade: Shade, *, plain: bool) -> str:
    """The sign for a part of the day of a shade."""
    return (_PLAIN if plain else _BLOCKS)[shade]


def drawn(
    windows: Iterable[Window],
    zone: Zone,
    period: Period,
    notes: Mapping[date, str] = _NO_NOTES,
    *,
    shades: Mapping[Shade, Iterable[Window]] = _NO_SHADES,
    plain: bool = False,
) -> Iterator[str]:
    """The lines of the table: a scale, then a bar for each local day of the period; `windows` come whole."""
    days: defaultdict[int, Day] = defaultdict(Day)
    latest: int | None = None
    for piece in _pieces(Window(period.start, period.end), zone):
        if latest is not None and piece.day > latest and piece.start:
            days[piece.day].shown.append(Piece(piece.day, 0, 0))  # the clock skips midnight, which is noted
        days[piece.day].shown.append(piece)
        latest = piece.day
    for window in windows:
        pieces = list(_pieces(window.cut(period.start, period.end), zone))
        for piece in pieces:
            days[piece.day].open.append(piece)
        days[pieces[0].day].opened_before |= window.opens < period.start
        days[pieces[-1].day].closes_after |= window.closes > period.end
    for shade, parts in shades.items():
        for part in parts:
            for piece in _pieces(part.cut(period.start, period.end), zone):
                days[piece.day].shades[shade].append(piece)
    yield " " * LABEL + "".join(f"{hour:<6}" for hour in range(0, 24, 3)).rstrip()
    signs = _PLAIN if plain else _BLOCKS
    for number, day in sorted(days.items()):
        note = notes.get(date.fromordinal(number + _EPOCH))
        line = _line(number, day, signs)
        yield f"{line}  [{note}]" if note else line


def _pieces(window: Window, zone: Zone) -> Iterator[Piece]:
    """Cuts a window at local midnights and where the clock changes."""
    now, end = int(window.opens.timestamp()), int(window.closes.timestamp())
    while now < end:
        span = zone.span(now)
        day, second = divmod(now + span.offset, DAY)
        length = min(DAY - second, span.end - now, end - now)
        yield Piece(day, second, second + length)
        now += length


def _line(number: int, day: Day, signs: dict[str, str]) -> str:
    when = date.fromordinal(number + _EPOCH)
    shades = zip(*(_cells(pieces) for pieces in day.shades.values()), strict=True)
    cells = zip(_cells(day.shown), _cells(day.open), shades, strict=True)
    bar = "".join(signs[_state(*cell)] for cell in cells)
    return f"{when:%a} {when.isoformat()} {bar}  {_times(day, signs)}{_change(day, signs)}".rstrip()


def _state(shown: int, opened: int, shaded: tuple[int, ...]) -> str:
    if shown == 0:
        return "skipped"
    if any(shaded):
        return next(shade for shade, seconds in zip(Shade, shaded, strict=True) if seconds)
    if opened == 0:
        return "closed"
    return "open" if opened == shown else "partly"


def _cells(pieces: list[Piece]) -> list[int]:
    """How many seconds of each cell of the day the pieces cover."""
    covered = [0] * CELLS
    for _, start, end in pieces:
        for cell in range(start // CELL, -(-end // CELL)):
            covered[cell] += min(end, (cell + 1) * CELL) - max(start, cell * CELL)
    return covered


def _times(day: Day, signs: dict[str, str]) -> str:
    joined = _joined(day.open)
    listed = ", ".join(f"{_clock(start)}-{_clock(end)}" for start, end in joined[:TIMES_MAX])
    before = signs["more"] if day.opened_before else ""
    after = signs["more"] if day.closes_after else ""
    count = f", {signs['more']} ({len(joined)})" if len(joined) > TIMES_MAX else ""
    return f"{before}{listed}{count or after}"


def _joined(pieces: list[Piece]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for piece in pieces:
        if joined and joined[-1][1] == piece.start:
            joined[-1] = (joined[-1][0], piece.end)
        else:
            joined.append((piece.start, piece.end))
    return joined


def _clock(second: int) -> str:
    hours, rest = divmod(second, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")


def _change(day: Day, signs: dict[str, str]) -> str:
    """A note on a clock change: where one shown part of the day ends and the next begins."""
    runs = _joined(day.shown)
    return "".join(
        f"  [clock {_clock(before)} {signs['becomes']} {_clock(after)}]" for (_, before), (after, _) in pairwise(runs)
    )
