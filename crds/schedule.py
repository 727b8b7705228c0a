"""The schedule algebra: a schedule denotes a set of instants, a union of half-open windows.

Nothing else in the system computes with schedule time. Pure: the current time is always an argument.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from crds.days import narrowest_gap
from crds.firings import Firings, fires_while_open
from crds.recurrence import DAY, WeeklyHours, hour_ranges, timeline, unmerged
from crds.values import DEFAULT_DURATION, MAX_DURATION, Cron, DaySet, HourSet, InvalidValue, Zone, format_duration
from crds.zones import BEGINNING, END

EVER: Final = datetime.min.replace(tzinfo=UTC)
"""The opening of a window that has always been open."""
FOREVER: Final = datetime.max.replace(tzinfo=UTC)
"""The close of a window that never closes."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RELEASED: Final = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp())
"""No schedule is older: what does not open after this never opens."""
_NONE: Final = (END, END)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Half-open `[opens, closes)`, in UTC."""

    opens: datetime
    closes: datetime

    def cut(self, start: datetime, end: datetime) -> "Window":
        """The part within a period."""
        return Window(max(self.opens, start), min(self.closes, end))

    def __contains__(self, moment: datetime) -> bool:
        return self.opens <= moment < self.closes


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a machine is in service. Build one with `weekly` or `from_cron`."""

    recurrence: WeeklyHours | Firings
    zone: Zone
    wraps_on_partial_days: bool = field(default=False, compare=False)
    """Hours written across midnight (`22-6`) on some days only: the morning belongs to the same day, not the next."""
    open_since: int | None = field(default=None, compare=False, repr=False)
    """Unix time from which it does not close any more, if there is such a time."""

    @classmethod
    def weekly(cls, days: DaySet, hours: HourSet, zone: Zone | str = "UTC") -> "Schedule":
        """Hours on days of the week; an empty set means every day or every hour.

        Raises:
            InvalidValue: if both are empty, or there is no such zone.
        """
        if not days and not hours:
            raise InvalidValue("daysOfWeek and hoursOfDay are both empty; name days, hours or both, or use cron")
        days, hours = days or DaySet.EVERY, hours or HourSet.EVERY
        partial = hours.wraps and not hours.is_full and not days.is_full
        return cls._laid_out(WeeklyHours(days.bits, hours.bits), _zone(zone), wraps_on_partial_days=partial)

    @classmethod
    def from_cron(cls, cron: Cron | str, duration: timedelta | None = None, zone: Zone | str = "UTC") -> "Schedule":
        """Each firing opens a window of `duration`, one minute if not given.

        Raises:
            InvalidValue: for an expression, duration or zone that is not allowed.
        """
        seconds = (DEFAULT_DURATION if duration is None else duration).total_seconds()
        if not 1 <= seconds <= MAX_DURATION.total_seconds() or seconds % 1:
            raise InvalidValue(f"duration must be whole seconds, at most {format_duration(MAX_DURATION)} (7 days)")
        parsed = cron if isinstance(cron, Cron) else Cron.parse(cron)
        return cls._laid_out(Firings.of(parsed, int(seconds)), _zone(zone))

    @classmethod
    def _laid_out(cls, plan: WeeklyHours | Firings, zone: Zone, *, wraps_on_partial_days: bool = False) -> "Schedule":
        return cls(plan, zone, wraps_on_partial_days, open_for_good_since(plan, zone) if plan.unbroken else None)

    def covers(self, moment: datetime) -> bool:
        """Whether the schedule is open at a moment."""
        after = _seconds(moment)
        return self._first(after)[0] <= after

    def next_boundary(self, moment: datetime) -> datetime | None:
        """The first opening or close after a moment; None if there is none, above all when always open."""
        after = _seconds(moment)
        if self._is_open_for_good(after):
            return None
        opens, _ = self._first(after)
        if opens > after:
            return _finite(opens)
        return _finite(next(timeline(self.recurrence, self.zone, after))[1])

    def windows(self, start: datetime, end: datetime, *, cut: bool = False) -> Iterator[Window]:
        """All windows that touch the period, merged, in order; whole, or with `cut` only their parts within it."""
        until = _seconds_up(end)
        for opens, closes in timeline(self.recurrence, self.zone, _seconds(start)):
            if opens >= until or start >= end:
                return
            known_from = opens if cut or opens > _seconds(start) else self._opening(opens)
            window = Window(_moment(known_from), _moment(closes))
            yield window.cut(start, end) if cut else window

    def current_window(self, moment: datetime) -> Window | None:
        """The whole window around a moment; `EVER` and `FOREVER` stand for the ends that it does not have."""
        after = _seconds(moment)
        opens, closes = next(timeline(self.recurrence, self.zone, after), _NONE)
        return None if opens > after else Window(_moment(self._opening(opens)), _moment(closes))

    def next_opening(self, moment: datetime) -> datetime | None:
        """When the next window opens, counted from the one that may be open now; None if none will."""
        after = _seconds(moment)
        if self._is_open_for_good(after):
            return None
        openings = (opens for opens, _ in timeline(self.recurrence, self.zone, after) if opens > after)
        return _finite(next(openings, END))

    @property
    def never_opens(self) -> bool:
        """Whether it has no window, such as a minute that DST always skips."""
        return self._first(_RELEASED) == _NONE

    @property
    def shortest_window(self) -> timedelta | None:
        """The length of the shortest window as long as nobody changes the clock; None if always open."""
        if self.recurrence.unbroken:
            return None
        return timedelta(seconds=_shortest(self.recurrence))

    @property
    def has_overlapping_windows(self) -> bool:
        """Whether cron fires again before the window of the last firing is over."""
        return isinstance(self.recurrence, Firings) and _overlaps(self.recurrence)

    def describe(self) -> str:
        """One line for conditions and tables, such as `mon-fri 9-17 America/New_York`."""
        return f"{_described(self.recurrence)} {self.zone.name}"

    def _first(self, after: int) -> tuple[int, int]:
        """The first run that closes after a moment, as far as one firing opens it."""
        return next(unmerged(self.recurrence, self.zone, after), _NONE)

    def _is_open_for_good(self, after: int) -> bool:
        return self.open_since is not None and self.open_since <= after

    def _opening(self, opens: int) -> int:
        """The true opening of a window that is known to be open at a moment: look back further and further."""
        back = self.recurrence.reach + DAY
        while opens - back > BEGINNING:
            found = self._run_around(opens, opens - back)
            if found > opens - back:
                return found
            back *= 4
        return self._run_around(opens, BEGINNING)

    def _run_around(self, moment: int, after: int) -> int:
        return next(opens for opens, closes in timeline(self.recurrence, self.zone, after) if closes > moment)


@lru_cache(maxsize=4096)
def open_for_good_since(recurrence: WeeklyHours | Firings, zone: Zone) -> int | None:
    """The moment from which a recurrence without gaps of its own is not interrupted by changes of the clock either."""
    opens, closes = next(timeline(recurrence, zone, _RELEASED), (END, 0))
    return max(opens, _RELEASED) if closes >= END else None


def _shortest(recurrence: WeeklyHours | Firings) -> int:
    if isinstance(recurrence, Firings):
        day = recurrence.shape
        runs = list(zip(day.opens, day.closes, strict=True))
        every_day = recurrence.cron.calendar.is_daily
    else:
        runs = list(hour_ranges(recurrence.hours))
        every_day = recurrence.weekdays == 0b1111111
    lengths = [closes - opens for opens, closes in runs]
    if every_day and runs[-1][1] >= runs[0][0] + DAY and len(runs) > 1:
        # The last run of a day and the first of the next are one window.
        lengths = [*lengths[1:-1], runs[0][1] + DAY - runs[-1][0]]
    return min(lengths)


def _overlaps(firings: Firings) -> bool:
    day = firings.shape
    if fires_while_open(day, firings.reach):
        return True
    overnight = DAY - day.last + day.first
    return firings.reach > overnight and firings.reach > overnight + (narrowest_gap(firings.calendar) - 1) * DAY


def _described(recurrence: WeeklyHours | Firings) -> str:
    if isinstance(recurrence, Firings):
        return f"cron {recurrence.cron} for {format_duration(timedelta(seconds=recurrence.reach))}"
    days, hours = DaySet(recurrence.weekdays, wraps=True), HourSet(recurrence.hours, wraps=True)
    return f"{'every day' if days.is_full else days} {'all hours' if hours.is_full else hours}"


def _zone(zone: Zone | str) -> Zone:
    return zone if isinstance(zone, Zone) else Zone.parse(zone)


def _seconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return since.days * DAY + since.seconds


def _seconds_up(moment: datetime) -> int:
    return _seconds(moment) + (moment.microsecond > 0)


def _moment(seconds: int) -> datetime:
    if seconds >= END:
        return FOREVER
    return EVER if seconds <= BEGINNING else _EPOCH + timedelta(seconds=seconds)


def _finite(seconds: int) -> datetime | None:
    return None if seconds >= END else _moment(seconds)
