"""Cron expressions of five fields, read into sets of minutes, hours and days."""

import re
from dataclasses import dataclass
from typing import Any, Final, Self

from crds.days import Calendar
from crds.invalid import InvalidValue, shown

CRON_MAX: Final = 512

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
ALLOWED: Final = (
    "write five fields (minute, hour, day of month, month, day of week) of numbers, names such as mon or jan, *, "
    "lists, ranges and steps, for example: 0 9 * * mon-fri"
)
_TERM: Final = re.compile(
    r"(?:(?P<star>\*)|(?P<first>[a-z0-9]{1,4})(?:-(?P<last>[a-z0-9]{1,4}))?)(?:/(?P<step>[0-9]{1,4}))?"
)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    names_from: int = 0

    def parse(self, text: str) -> int:
        """The chosen values as bits."""
        bits = 0
        for term in text.split(","):
            bits |= self._term(term)
        return bits

    def _term(self, term: str) -> int:
        match = _TERM.fullmatch(term)
        if match is None:
            raise InvalidValue(f"{self.name}: {shown(term)} is not understood; {self._allowed()}")
        first, last = self._ends(match, term)
        step = int(match["step"] or 1)
        if step == 0:
            raise InvalidValue(f"{self.name}: the step in {shown(term)} is 0; write 1 or more")
        return sum(1 << value for value in range(first, last + 1, step))

    def _ends(self, match: re.Match[str], term: str) -> tuple[int, int]:
        if match["star"]:
            return self.low, self.high
        first = self._value(match["first"])
        if match["last"] is None:
            # A number with a step starts there: `5/20` is 5, 25, 45.
            return first, self.high if match["step"] else first
        last = self._value(match["last"])
        if last < first:
            raise InvalidValue(
                f"{self.name}: the range {shown(term)} runs backwards; split it in two, {self._split(term)}"
            )
        return first, last

    def _split(self, term: str) -> str:
        first, last = term.partition("/")[0].split("-")
        if self.names and last in ("sun", "0"):
            return f"for example {first}-6,0"
        return f"for example {first}-{self.high},{self.low}-{last}"

    def _value(self, text: str) -> int:
        if text in self.names:
            return self.names.index(text) + self.names_from
        if not text.isdigit() or not self.low <= int(text) <= self.high:
            raise InvalidValue(f"{self.name}: {shown(text)} is not allowed; {self._allowed()}")
        return int(text)

    def _allowed(self) -> str:
        names = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"write {self.low} to {self.high}{names}, *, lists, ranges and steps such as */2"


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS, 1),
    _Field("day of week", 0, 7, _DAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """When a cron expression fires: bits of minutes and hours on the days of a calendar.

    `follows_clock` is Debian cron's "wildcard job": minute or hour starts with `*`. Such a job fires at the wall-clock
    minutes that really happen. Any other fires once for each wall-clock time, at the next minute if DST skips it.
    """

    minutes: int
    hours: int
    calendar: Calendar
    follows_clock: bool
    text: str

    @classmethod
    def parse(cls, text: Any) -> Self:
        """Read an expression.

        Raises:
            InvalidValue: naming every bad field, or that it never fires.
        """
        minute, hour, day, month, weekday = fields = _fields(text)
        bits = _all_bits(fields)
        calendar = Calendar(
            months=bits[3],
            days=bits[2],
            weekdays=_from_monday(bits[4]),
            # Vixie's rule looks at the first character only: `*/2` counts as a star.
            either=not (day.startswith("*") or weekday.startswith("*")),
        )
        if calendar.is_empty:
            raise InvalidValue(f"{shown(text)} never fires: day of month {day} does not occur in month {month}")
        follows_clock = minute.startswith("*") or hour.startswith("*")
        return cls(bits[0], bits[1], calendar, follows_clock, " ".join(fields))

    def __str__(self) -> str:
        return self.text


def _fields(text: Any) -> list[str]:
    if not isinstance(text, str):
        raise InvalidValue(f"must be a string; {ALLOWED}")
    if len(text) > CRON_MAX:
        raise InvalidValue(f"{shown(text)} is longer than {CRON_MAX} characters")
    if not text.isascii() or re.search(r"[^\t -~]", text):
        raise InvalidValue(f"{shown(text)} holds a character that cron does not know; {ALLOWED}")
    fields = text.lower().split()
    if text.strip().startswith("@"):
        raise InvalidValue(f"{shown(text)}: shorthands such as @daily are not supported; {ALLOWED}")
    if len(fields) != 5:
        seconds = " (there is no seconds field)" if len(fields) == 6 else ""
        raise InvalidValue(f"{shown(text)} has {len(fields)} fields{seconds}; {ALLOWED}")
    return fields


def _all_bits(fields: list[str]) -> list[int]:
    bits, wrong = [], []
    for part, text in zip(_FIELDS, fields, strict=True):
        try:
            bits.append(part.parse(text))
        except InvalidValue as error:
            wrong.append(error.message)
    if wrong:
        raise InvalidValue("; ".join(wrong))
    return bits


def _from_monday(bits: int) -> int:
    """Cron's week, where 0 and 7 are Sunday, as bits that start with Monday."""
    sunday = bits & 1 | bits >> 7 & 1
    return bits >> 1 & 0b111111 | sunday << 6
