"""Which days a schedule touches: months, days of the month and weekdays, searched by whole months at a time."""

from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

EPOCH: Final = date(1970, 1, 1).toordinal()
"""Days are counted from 1970-01-01, as Unix time counts seconds."""
LAST_DAY: Final = date(9999, 12, 31).toordinal() - EPOCH
FIRST_DAY: Final = 1 - EPOCH

ALL_MONTHS: Final = 0b1111111111110
ALL_DAYS: Final = (1 << 32) - 2
ALL_WEEKDAYS: Final = 0b1111111

_LENGTHS: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EVERY_SEVENTH: Final = sum(1 << day for day in range(0, 35, 7))
_THURSDAY: Final = 3


@dataclass(frozen=True, slots=True)
class Calendar:
    """A set of days; bits of `months` and `days` count from 1, those of `weekdays` from Monday as 0.

    With `either`, a day of the month or a weekday suffices; otherwise both must match.
    """

    months: int = ALL_MONTHS
    days: int = ALL_DAYS
    weekdays: int = ALL_WEEKDAYS
    either: bool = False

    @property
    def is_weekly(self) -> bool:
        """Whether only the weekday matters."""
        return self.months == ALL_MONTHS and self.days == ALL_DAYS and not self.either

    @property
    def is_daily(self) -> bool:
        """Whether every day is in it."""
        whole = (self.days == ALL_DAYS, self.weekdays == ALL_WEEKDAYS)
        matches = any(whole) if self.either else all(whole)
        return self.months == ALL_MONTHS and matches

    @property
    def is_empty(self) -> bool:
        """Whether no day ever matches, such as 30 February."""
        if self.either:
            return False
        return not any(self.months >> month & 1 and self.days & _up_to(_LENGTHS[month]) for month in range(1, 13))

    def next_day(self, day: int) -> int | None:
        """The first matching day from `day` on."""
        if self.is_weekly:
            ahead = lowest(_rotated(self.weekdays, (day + _THURSDAY) % 7, 7))
            return day + ahead if day + ahead <= LAST_DAY else None
        return self._search(day)

    def _search(self, day: int) -> int | None:
        if day > LAST_DAY:
            return None
        start = date.fromordinal(max(day, FIRST_DAY) + EPOCH)
        index, above = start.year * 12 + start.month - 1, start.day
        while True:
            ahead = lowest(_rotated(self.months >> 1, index % 12, 12))
            index, above = index + ahead, 1 if ahead else above
            year, month = index // 12, index % 12 + 1
            if year > 9999:
                return None
            first = date(year, month, 1).toordinal() - EPOCH
            matching = self._month(first, _length(year, month)) >> above
            if matching:
                return first + above - 1 + lowest(matching)
            index, above = index + 1, 1

    def _month(self, first: int, length: int) -> int:
        """The matching days of a month as bits, the first day is bit 1."""
        week = _rotated(self.weekdays, (first + _THURSDAY) % 7, 7)
        weekdays = week * _EVERY_SEVENTH << 1
        chosen = self.days | weekdays if self.either else self.days & weekdays
        return chosen & _up_to(length)


@lru_cache(maxsize=1024)
def widest_gap(calendar: Calendar) -> int:
    """The longest distance in days between two matching days that follow each other.

    A span of 40 years holds every kind of year, also where a century leaves out its leap day.
    """
    day = calendar.next_day(_SURVEY_FROM)
    widest = 0
    while day is not None and day < _SURVEY_TO:
        following = calendar.next_day(day + 1)
        if following is None:
            break
        widest, day = max(widest, following - day), following
    return widest


@lru_cache(maxsize=1024)
def narrowest_gap(calendar: Calendar) -> int:
    """The shortest distance in days between two matching days, as far as a few years show."""
    day = calendar.next_day(_SURVEY_FROM)
    narrowest = _SURVEY_TO - _SURVEY_FROM
    while day is not None and day < _SURVEY_FROM + 5 * 366 and narrowest > 1:
        following = calendar.next_day(day + 1)
        if following is None:
            break
        narrowest, day = min(narrowest, following - day), following
    return narrowest


_SURVEY_FROM: Final = date(2000, 1, 1).toordinal() - EPOCH
_SURVEY_TO: Final = date(2040, 1, 1).toordinal() - EPOCH


def _up_to(length: int) -> int:
    return (1 << length + 1) - 2


def _length(year: int, month: int) -> int:
    if month == 2 and (year % 4 or (year % 100 == 0 and year % 400)):
        return 28
    return _LENGTHS[month]


def lowest(bits: int) -> int:
    """The position of the lowest bit."""
    return (bits & -bits).bit_length() - 1


def _rotated(bits: int, start: int, size: int) -> int:
    """The bits of a circle with `start` first."""
    return (bits >> start | bits << size - start) & (1 << size) - 1
