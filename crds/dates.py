"""Sets of dates: single ones and ranges as users write them, and days of every year.

Days are counted from 1970-01-01, as everywhere in the algebra. A set answers with runs of days, so that a range of a
year costs as much as a single date.
"""

import calendar
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache
from typing import Any, Final, NamedTuple

from crds.days import EPOCH, FIRST_DAY, LAST_DAY
from crds.invalid import InvalidValue, shown

RANGE_MAX: Final = 366
DATES_ALLOWED: Final = (
    "write a date such as 2026-12-24, in the years 1000 to 2999, or a range such as 2026-12-28/2027-01-01"
)
RANGE_MESSAGE: Final = (
    f"a range must not end before it begins, and must have at most {RANGE_MAX} days, both ends included"
)
YEARLY_ALLOWED: Final = "write a month and a day such as 12-25"

_DATE: Final = re.compile("([12][0-9]{3})-([0-9]{2})-([0-9]{2})")
_YEARLY: Final = re.compile("([0-9]{2})-([0-9]{2})")
_LEAP_YEAR: Final = 2000


class Days(NamedTuple):
    """A run of days, both ends included."""

    first: int
    last: int


class Dates:
    """A set of single days, kept as runs that neither touch nor overlap."""

    __slots__ = ("_firsts", "_hash", "_lasts")

    def __init__(self, runs: Iterable[Days] = ()) -> None:
        joined = list(_joined(sorted(runs)))
        self._firsts = array("i", [run.first for run in joined])
        self._lasts = array("i", [run.last for run in joined])
        self._hash = hash((tuple(self._firsts), tuple(self._lasts)))

    @classmethod
    def parse_item(cls, text: Any) -> "Dates":
        """Read a date or a range.

        Raises:
            InvalidValue: if it is neither.
        """
        if not isinstance(text, str):
            raise InvalidValue(f"must be a string; {DATES_ALLOWED}")
        first, slash, last = text.partition("/")
        run = Days(_day(first, text), _day(last if slash else first, text))
        if not 0 <= run.last - run.first < RANGE_MAX:
            raise InvalidValue(f"{shown(text)}: {RANGE_MESSAGE}")
        return cls([run])

    @classmethod
    def union(cls, sets: Iterable["Dates"]) -> "Dates":
        """The days that are in any of the sets."""
        return cls(run for each in sets for run in each)

    def run(self, day: int) -> Days | None:
        """The first run at or after a day."""
        index = bisect_right(self._firsts, day)
        if index and self._lasts[index - 1] >= day:
            return Days(day, self._lasts[index - 1])
        return Days(self._firsts[index], self._lasts[index]) if index < len(self._firsts) else None

    @property
    def last(self) -> int:
        """The last day."""
        return self._lasts[-1] if self._lasts else FIRST_DAY

    def texts(self) -> list[str]:
        """Items that are read back to the same set."""
        return [text for run in self for text in _written(run)]

    def __iter__(self) -> Iterator[Days]:
        return map(Days, self._firsts, self._lasts)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dates):
            return NotImplemented
        return self is other or (self._firsts == other._firsts and self._lasts == other._lasts)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Dates({', '.join(self.texts())})"


class Anniversary(NamedTuple):
    """A day of every year; 29 February only of leap years."""

    month: int
    day: int

    @classmethod
    def parse(cls, text: Any) -> "Anniversary":
        """Read `12-25`.

        Raises:
            InvalidValue: if there is no such day in any year.
        """
        if not isinstance(text, str):
            raise InvalidValue(f"must be a string; {YEARLY_ALLOWED}")
        match = _YEARLY.fullmatch(text)
        try:
            found = date(_LEAP_YEAR, int(match[1]), int(match[2])) if match else None
        except ValueError:
            found = None
        if found is None:
            raise InvalidValue(f"{shown(text)} is not a day of a year; {YEARLY_ALLOWED}")
        return cls(found.month, found.day)

    def __str__(self) -> str:
        return f"{self.month:02}-{self.day:02}"


class Yearly(frozenset[Anniversary]):
    """Days of every year."""

    __slots__ = ()

    def texts(self) -> list[str]:
        """Items that are read back to the same set."""
        return [str(each) for each in sorted(self)]

    def run(self, day: int) -> Days | None:
        """The first run of them at or after a day, also over the end of a year; one that began earlier is cut there."""
        if not self or day > LAST_DAY:
            return None
        if len(self) == RANGE_MAX:
            return Days(day, LAST_DAY)
        year = date.fromordinal(max(day, FIRST_DAY) + EPOCH).year
        # 29 February comes again after eight years at the latest.
        runs = _joined(run for each in range(year, min(year + 10, 10_000)) for run in _in_year(self, each))
        found = next((run for run in runs if run.last >= day), None)
        return found and Days(max(found.first, day), found.last)


class Either(NamedTuple):
    """Single days and days of every year."""

    dates: Dates
    yearly: Yearly = Yearly()

    def run(self, day: int) -> Days | None:
        """The earlier run of both."""
        one, other = self.dates.run(day), self.yearly.run(day)
        if one is None or other is None:
            return one or other
        return min(one, other, key=lambda run: (run.first, -run.last))


def day_of(given: date) -> int:
    """The number of a date."""
    return given.toordinal() - EPOCH


def date_of(day: int) -> date:
    """The date of a number."""
    return date.fromordinal(day + EPOCH)


def _in_year(yearly: Yearly, year: int) -> Iterator[Days]:
    """The runs of a year."""
    before = day_of(date(year, 1, 1)) - 1
    return (Days(before + first, before + last) for first, last in _days_of_year(yearly, calendar.isleap(year)))


@lru_cache(maxsize=4096)
def _days_of_year(yearly: Yearly, leap: bool) -> tuple[Days, ...]:  # noqa: FBT001 - a key of the cache
    """The runs of a year of this kind, counted from its first day as 1."""
    year = _LEAP_YEAR if leap else _LEAP_YEAR + 1
    known = (date(year, *each).timetuple().tm_yday for each in yearly if leap or each != (2, 29))
    return tuple(_joined(Days(day, day) for day in sorted(known)))


def _day(text: str, whole: str) -> int:
    match = _DATE.fullmatch(text)
    try:
        if match:
            return day_of(date(int(match[1]), int(match[2]), int(match[3])))
    except ValueError:
        raise InvalidValue(f"{shown(whole)}: there is no {text}; {DATES_ALLOWED}") from None
    raise InvalidValue(f"{shown(whole)} is not a date; {DATES_ALLOWED}")


def _joined(runs: Iterable[Days]) -> Iterator[Days]:
    current: Days | None = None
    for run in runs:
        if current is None:
            current = run
        elif run.first <= current.last + 1:
            current = Days(current.first, max(current.last, run.last))
        else:
            yield current
            current = run
    if current is not None:
        yield current


def _written(run: Days) -> Iterator[str]:
    """A run as items, each of which is not too long."""
    for first in range(run.first, run.last + 1, RANGE_MAX):
        last = min(first + RANGE_MAX - 1, run.last)
        yield date_of(first).isoformat() if first == last else f"{date_of(first)}/{date_of(last)}"
