"""IANA time zones from the `tzdata` package, never from the host, as spans of constant offset from UTC.

The package's files are read directly: Python's own `zoneinfo` would prefer the host's, and changing its search path
would reach into the process that imports this package.
"""

import pkgutil
import re
import struct
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Final, NamedTuple

from crds.days import EPOCH
from crds.invalid import InvalidValue, shown

NAME_MAX: Final = 64
BEGINNING: Final = (1 - EPOCH) * 86400
"""The first second of year 1 and the end of year 9999, the limits of Python's dates, in Unix time."""
END: Final = (date(9999, 12, 31).toordinal() + 1 - EPOCH) * 86400

FURTHEST_EAST: Final = 26 * 3600
"""No zone has ever been so far ahead of UTC (15:13:42 in Manila's first), so every day begins after this."""
_WRITTEN_OUT_TO: Final = 2080

_HEADER: Final = struct.Struct(">4sc15x6l")
_RULE: Final = re.compile(
    r"(?:<[^>]+>|[A-Za-z]+)(?P<std>[-+0-9:]+)(?:<[^>]+>|[A-Za-z]+)(?P<dst>[-+0-9:]+)?"
    r",M(?P<on>\d+\.\d\.\d)(?:/(?P<on_at>[-+0-9:]+))?,M(?P<off>\d+\.\d\.\d)(?:/(?P<off_at>[-+0-9:]+))?"
)


class OffsetSpan(NamedTuple):
    """A stretch of Unix time `[start, end)` in which local time is UTC plus `offset` seconds."""

    start: int
    end: int
    offset: int


@dataclass(frozen=True, slots=True)
class _Change:
    """A yearly change of the clock: month, week (5 is the last), weekday (0 is Sunday), local second, offsets."""

    month: int
    week: int
    weekday: int
    second: int
    before: int
    after: int

    def instant(self, year: int) -> int:
        first = date(year, self.month, 1)
        day = first.toordinal() + (self.weekday - first.isoweekday()) % 7 + 7 * (self.week - 1)
        if self.week == 5 and date.fromordinal(day).month != self.month:
            day -= 7
        return (day - EPOCH) * 86400 + self.second - self.before


class Zone:
    """One time zone. There is one object per name, so that identity serves as equality."""

    __slots__ = ("_instants", "_offsets", "_yearly", "name", "settled")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self._instants, self._offsets, rule = _read(data)
        self._yearly = _yearly(rule)
        self.settled = self._instants[-1] if self._instants else BEGINNING
        """The moment after which the clock changes by a yearly rule or not at all."""
        self._write_out_rule()

    def _write_out_rule(self) -> None:
        """Put the changes of the next decades into the table: a search there is ten times faster."""
        for year in range(_year(self.settled), _WRITTEN_OUT_TO if self._yearly else 0):
            for moment, offset in sorted((change.instant(year), change.after) for change in self._yearly):
                if moment > self._instants[-1]:
                    self._instants.append(moment)
                    self._offsets.append(offset)

    @classmethod
    def parse(cls, name: Any) -> "Zone":
        """Find a zone by its exact name.

        Raises:
            InvalidValue: if there is none of that name.
        """
        if not isinstance(name, str):
            raise InvalidValue("must be a string: an IANA time zone such as Europe/Berlin")
        if len(name) > NAME_MAX:
            raise InvalidValue(f"{shown(name)} is longer than {NAME_MAX} characters")
        if name not in names():
            raise InvalidValue(f"{shown(name)} is not an IANA time zone{_suggestion(name)}")
        return load(name)

    def span(self, moment: int) -> OffsetSpan:
        """The span of constant offset around a moment of Unix time."""
        index = bisect_right(self._instants, moment)
        if index == len(self._instants) and self._yearly:
            return self._yearly_span(moment)
        start = self._instants[index - 1] if index else BEGINNING
        end = self._instants[index] if index < len(self._instants) else END
        return OffsetSpan(start, end, self._offsets[index])

    def start_of_day(self, day: int) -> int:
        """The first second of a local day, counted from 1970; where the clock skips midnight, the day begins later."""
        return self.first_showing(day * 86400)

    def first_showing(self, wall: int) -> int:
        """The first moment at which the local clock shows a time, or a later one; `wall` counts its seconds since 1970.

        A time that the clock skips is the moment of the change, and of one that it shows twice the first counts. So a
        later time on the clock is never an earlier moment.
        """
        span = self.span(max(wall - FURTHEST_EAST, BEGINNING))
        while wall - span.offset >= span.end and span.end < END:
            span = self.span(span.end)
        return max(wall - span.offset, span.start)

    def _yearly_span(self, moment: int) -> OffsetSpan:
        year = _year(moment)
        changes = [
            (change.instant(each), change.after)
            for each in range(max(year - 1, 1), min(year + 1, 9999) + 1)
            for change in self._yearly
        ]
        changes.sort()
        index = bisect_right(changes, (moment, END))
        start, offset = changes[index - 1] if index else (BEGINNING, self._offsets[-1])
        end = changes[index][0] if index < len(changes) else END
        last = self._instants[-1]
        if start < last:
            start, offset = last, self._offsets[-1]
        return OffsetSpan(start, end, offset)

    def __reduce__(self) -> tuple[Any, ...]:
        return Zone.parse, (self.name,)

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """All names that are allowed; `Factory` is tzdata's word for "not set"."""
    return frozenset(_package_file("zones").decode("ascii").split()) - {"Factory"}


@lru_cache(maxsize=1024)
def load(name: str) -> Zone:
    """The zone of a name that exists."""
    return Zone(name, _package_file(f"zoneinfo/{name}"))


def _package_file(path: str) -> bytes:
    data = pkgutil.get_data("tzdata", path)
    if data is None:
        raise RuntimeError(f"the tzdata package cannot be read: {path} is missing; install it again")
    return data


@lru_cache(maxsize=1)
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in names()}


def _suggestion(name: str) -> str:
    meant = _by_lower_case().get(name.strip().lower())
    if meant:
        return f"; names are case-sensitive, did you mean {meant}?"
    return "; write one such as UTC, Europe/Berlin or America/New_York"


def _read(data: bytes) -> tuple["array[int]", "array[int]", str]:
    """Moments at which the offset changes, the offsets before, between and after them, and the rule that follows."""
    at = _HEADER.size + _body_size(_HEADER.unpack_from(data), 4)
    header = _HEADER.unpack_from(data, at)
    count, types = header[5], header[6]
    at += _HEADER.size
    moments = struct.unpack_from(f">{count}q", data, at)
    chosen = data[at + 8 * count : at + 9 * count]
    kinds = [struct.unpack_from(">lb", data, at + 9 * count + 6 * index) for index in range(types)]
    rule = data[at + _body_size(header, 8) :].decode("ascii").strip("\n")
    before = next((offset for offset, is_dst in kinds if not is_dst), kinds[0][0])
    return *_changes(moments, [kinds[index][0] for index in chosen], before), rule


def _body_size(header: tuple[Any, ...], width: int) -> int:
    _, _, universal, standard, leaps, moments, types, characters = header
    return int(moments * (width + 1) + types * 6 + characters + leaps * (width + 4) + standard + universal)


def _changes(moments: tuple[int, ...], offsets: list[int], before: int) -> tuple["array[int]", "array[int]"]:
    """Without the entries that change only a name or a flag; the last one stays, as the yearly rule starts there."""
    instants, kept = array("q"), array("i", [before])
    for moment, offset in zip(moments, offsets, strict=True):
        if moment <= BEGINNING:
            kept[-1] = offset
        elif offset != kept[-1] or moment == moments[-1]:
            instants.append(moment)
            kept.append(offset)
    return instants, kept


def _yearly(rule: str) -> tuple[_Change, ...]:
    if "," not in rule:
        return ()
    match = _RULE.fullmatch(rule)
    if match is None:
        raise RuntimeError(f"this version of tzdata holds a rule that is not understood: {rule}")
    # POSIX counts offsets westwards.
    standard = -_seconds(match["std"])
    summer = -_seconds(match["dst"]) if match["dst"] else standard + 3600
    return (
        _change(match["on"], match["on_at"], standard, summer),
        _change(match["off"], match["off_at"], summer, standard),
    )


def _change(day: str, time: str | None, before: int, after: int) -> _Change:
    month, week, weekday = (int(number) for number in day.split("."))
    return _Change(month, week, weekday, _seconds(time or "2"), before, after)


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")] + [0, 0]
    return sign * (parts[0] * 3600 + parts[1] * 60 + parts[2])


def _year(moment: int) -> int:
    return date.fromordinal(min(max(moment // 86400 + EPOCH, 1), END // 86400 + EPOCH - 1)).year
