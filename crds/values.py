"""Typed values that users write as short texts: sets of days and hours, durations, and, re-exported, cron and zones."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Final, Self

from crds.cron import Cron
from crds.invalid import InvalidValue, ValueProblem, shown
from crds.zones import Zone

__all__ = [
    "DEFAULT_DURATION",
    "MAX_DURATION",
    "MAX_TIMEOUT",
    "Cron",
    "DaySet",
    "HourSet",
    "InvalidValue",
    "ValueProblem",
    "Zone",
    "format_duration",
    "parse_duration",
    "shown",
]

DAY_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DEFAULT_DURATION: Final = timedelta(minutes=1)
MAX_DURATION: Final = timedelta(days=7)
MAX_TIMEOUT: Final = timedelta(hours=24)

_ITEM_MAX: Final = 1024
_NOT_SPACE: Final = re.compile(r"[^\S ]")
_DAYS_ALLOWED: Final = (
    "write mon, tue, wed, thu, fri, sat or sun, a range such as mon-fri, or a list such as mon-wed,fri"
)
_HOURS_ALLOWED: Final = "write an hour from 0 to 23, a range such as 9-17 or 22-6, or a list such as 0-9,17-23"


@dataclass(frozen=True, slots=True)
class _Circle:
    """A subset of a small circle of values (a week of days, a day of hours), kept as bits."""

    bits: int = 0
    wraps: bool = False
    """Whether a range was written across the end of the circle, such as `22-6`: that may earn a warning."""

    SIZE: ClassVar[int]
    NOUN: ClassVar[str]
    ALLOWED: ClassVar[str]

    @classmethod
    def parse(cls, items: Iterable[Any]) -> Self:
        """Read the items of a list; the empty list gives the empty set.

        Raises:
            InvalidValue: naming every bad item.
        """
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise InvalidValue(f"must be a list of strings; {cls.ALLOWED}")
        read, problems = [], []
        for index, item in enumerate(items):
            try:
                read.append(cls.parse_item(item))
            except InvalidValue as error:
                problems.append(ValueProblem(index, item, error.message))
        if problems:
            raise InvalidValue.of_items(problems)
        return cls.union(read)

    @classmethod
    def parse_item(cls, text: Any) -> Self:
        """Read one item: comma-separated values and ranges."""
        if not isinstance(text, str):
            raise InvalidValue(_not_text(text, cls._quoted(text), cls.ALLOWED))
        if len(text) > _ITEM_MAX:
            raise InvalidValue(f"{shown(text)} is longer than {_ITEM_MAX} characters; {cls.ALLOWED}")
        if _NOT_SPACE.search(text):
            raise InvalidValue(f"{shown(text)} holds a tab, a newline or another blank that is not a space")
        return cls.union([cls._range(part, text) for part in text.split(",")])

    @classmethod
    def _quoted(cls, given: Any) -> str:
        number = _whole(given)
        if number is None or cls._find(str(number)) is None:
            return ""
        return f': put it in quotes, "{number}"'

    @classmethod
    def union(cls, sets: Iterable["_Circle"]) -> Self:
        """The values that are in any of the sets."""
        known = list(sets)
        if len(known) == 1 and type(known[0]) is cls:
            return known[0]
        return cls(reduce(or_, (each.bits for each in known), 0), any(each.wraps for each in known))

    @classmethod
    def _range(cls, part: str, text: str) -> Self:
        ends = [end.strip(" ") for end in part.split("-")]
        if ends == [""]:
            raise InvalidValue(f"{shown(text)} is empty or has an empty part; {cls.ALLOWED}")
        if len(ends) > 2:
            raise InvalidValue(f"{shown(part.strip(' '))} is not a range: it has more than one '-'; {cls.ALLOWED}")
        first, last = cls._position(ends[0], part), cls._position(ends[-1], part)
        length = (last - first) % cls.SIZE + 1
        return cls(_rotate((1 << length) - 1, first, cls.SIZE), last < first)

    @classmethod
    def _position(cls, name: str, part: str) -> int:
        position = cls._find(name)
        if position is None:
            where = "" if name == part.strip(" ") else f" in {shown(part.strip(' '))}"
            raise InvalidValue(f"{shown(name)}{where} is not {cls.NOUN}; {cls.ALLOWED}")
        return position

    @staticmethod
    def _find(name: str) -> int | None:
        raise NotImplementedError

    def __bool__(self) -> bool:
        return self.bits != 0

    def __contains__(self, position: int) -> bool:
        return self.bits >> position & 1 == 1

    def __len__(self) -> int:
        return self.bits.bit_count()

    @property
    def is_full(self) -> bool:
        """Whether nothing is left out."""
        return self.bits == (1 << self.SIZE) - 1

    def _text(self, name: Callable[[int], str]) -> str:
        return ",".join(name(a) if a == b else f"{name(a)}-{name(b)}" for a, b in self._ranges())

    def _ranges(self) -> list[tuple[int, int]]:
        """First and last value of each run; the run across the end is joined if it was written so."""
        runs: list[tuple[int, int]] = []
        for position in range(self.SIZE):
            if position in self:
                extends = bool(runs) and runs[-1][1] == position - 1
                runs[-1:] = [(runs[-1][0], position)] if extends else [*runs[-1:], (position, position)]
        if self.wraps and len(runs) > 1 and runs[0][0] == 0 and runs[-1][1] == self.SIZE - 1:
            runs = [*runs[1:-1], (runs[-1][0], runs[0][1])]
        return runs


class DaySet(_Circle):
    """Days of the week, Monday is 0; read from items such as `mon-wed,fri`."""

    __slots__ = ()
    SIZE = 7
    NOUN = "a day"
    ALLOWED = _DAYS_ALLOWED
    EVERY: ClassVar["DaySet"]

    @staticmethod
    def _find(name: str) -> int | None:
        return DAY_NAMES.index(name) if name in DAY_NAMES else None

    def __str__(self) -> str:
        return self._text(lambda day: DAY_NAMES[day])


class HourSet(_Circle):
    """Hours of the day, both ends of a range inclusive; read from items such as `0-9,17-23`."""

    __slots__ = ()
    SIZE = 24
    NOUN = "an hour"
    ALLOWED = _HOURS_ALLOWED
    EVERY: ClassVar["HourSet"]

    @staticmethod
    def _find(name: str) -> int | None:
        if not re.fullmatch("[0-9]{1,2}", name) or int(name) > 23:
            return None
        return int(name)

    def __str__(self) -> str:
        return self._text(str)


DaySet.EVERY = DaySet((1 << DaySet.SIZE) - 1)
HourSet.EVERY = HourSet((1 << HourSet.SIZE) - 1)

_DURATION: Final = re.compile("(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")


def parse_duration(text: Any, longest: timedelta = MAX_TIMEOUT) -> timedelta:
    """Read `<n>s|m|h` or a sum such as `1h30m`.

    Raises:
        InvalidValue: if it is no duration, zero, or longer than `longest`.
    """
    allowed = f"write a whole number with s, m or h, or a sum such as 1h30m; more than 0, at most {_limit(longest)}"
    if not isinstance(text, str):
        raise InvalidValue(_not_text(text, _with_unit(text, longest), allowed))
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise InvalidValue(f"{shown(text)} is not a duration; {allowed}")
    hours, minutes, seconds = (int(number or 0) for number in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if total == 0:
        raise InvalidValue(f"{shown(text)} is zero; {allowed}")
    if total > longest.total_seconds():
        raise InvalidValue(f"{shown(text)} is too long; {allowed}")
    return timedelta(seconds=total)


def format_duration(duration: timedelta) -> str:
    """The shortest text that `parse_duration` reads back to the same duration, in whole seconds."""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _limit(longest: timedelta) -> str:
    hours = format_duration(longest)
    return hours if longest <= timedelta(days=1) else f"{hours} ({longest.days} days)"


def _not_text(given: Any, hint: str, allowed: str) -> str:
    kind = _KINDS.get(type(given), type(given).__name__)
    return f"must be a string{hint or f', not {kind}'}; {allowed}"


_KINDS: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def _whole(given: Any) -> int | None:
    """A number of ordinary size that is whole, also where YAML made 9.0 of 09."""
    if type(given) not in (int, float) or not 0 <= given < 1e9 or given != int(given):
        return None
    return int(given)


def _with_unit(given: Any, longest: timedelta) -> str:
    number = _whole(given)
    units = ((unit, seconds) for unit, seconds in (("s", 1), ("m", 60)) if number)
    fitting = [f'"{number}{unit}"' for unit, seconds in units if (number or 0) * seconds <= longest.total_seconds()]
    return f" with a unit: write {' or '.join(fitting)}" if fitting else ""


def _rotate(bits: int, by: int, size: int) -> int:
    return (bits << by | bits >> (size - by)) & ((1 << size) - 1)
