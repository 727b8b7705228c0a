"""The schedule algebra: a schedule denotes a set of instants, a union of half-open windows.

Nothing else in the system computes with schedule time. Pure: the current time is always an argument.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from crds.clockwindows import ClockWindow, ClockWindows
from crds.exceptions import Excepted, Exceptions
from crds.firings import Firings
from crds.recurrence import DAY, YEAR, Recurrence, WeeklyHours, timeline, unmerged
from crds.traits import Recurring, described, overlaps, shortest_run
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
_LONG_AGO: Final = 100 * YEAR


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
    """When a machine is in service. Build one with `weekly`, `from_cron` or `from_windows`, then add exceptions."""

    recurrence: Recurring
    zone: Zone
    exceptions: Exceptions | None = None
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
    def from_windows(cls, windows: Iterable[ClockWindow], zone: Zone | str = "UTC") -> "Schedule":
        """Each window opens at one time of day and closes at another, to the minute; the schedule is their union.

        Raises:
            InvalidValue: if there are no windows, or there is no such zone.
        """
        plan = ClockWindows.of(windows)
        if not plan.windows:
            raise InvalidValue("has no windows; name one at least")
        return cls._laid_out(plan, _zone(zone))

    @classmethod
    def _laid_out(cls, plan: Recurring, zone: Zone, *, wraps_on_partial_days: bool = False) -> "Schedule":
        since = open_for_good_since(plan, zone) if plan.unbroken else None
        return cls(plan, zone, None, wraps_on_partial_days, since)

    def excepted(self, exceptions: Exceptions) -> "Schedule":
        """The same schedule with other exceptions, closed or open on their dates in spite of what it says."""
        plain = self._laid_out(self.recurrence, self.zone, wraps_on_partial_days=self.wraps_on_partial_days)
        if not exceptions.rules:
            return plain
        return replace(plain, exceptions=exceptions, open_since=_open_after(plain, exceptions))

    @property
    def source(self) -> Recurrence:
        """What is laid out: the recurrence with its exceptions."""
        return self.recurrence if self.exceptions is None else Excepted(self.recurrence, self.exceptions)

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
        return _finite(next(timeline(self.source, self.zone, after))[1])

    def windows(self, start: datetime, end: datetime, *, cut: bool = False) -> Iterator[Window]:
        """All windows that touch the period, merged, in order; whole, or with `cut` only their parts within it."""
        until = _seconds_up(end)
        for opens, closes in self._runs(_seconds(start)):
            if opens >= until or start >= end:
                return
            known_from = opens if cut or opens > _seconds(start) else self._opening(opens)
            window = Window(_moment(known_from), _moment(closes))
            yield window.cut(start, end) if cut else window

    def current_window(self, moment: datetime) -> Window | None:
        """The whole window around a moment; `EVER` and `FOREVER` stand for the ends that it does not have."""
        after = _seconds(moment)
        opens, closes = next(self._runs(after), _NONE)
        return None if opens > after else Window(_moment(self._opening(opens)), _moment(closes))

    def next_opening(self, moment: datetime) -> datetime | None:
        """When the next window opens, counted from the one that may be open now; None if none will."""
        after = _seconds(moment)
        if self._is_open_for_good(after):
            return None
        openings = (opens for opens, _ in timeline(self.source, self.zone, after) if opens > after)
        return _finite(next(openings, END))

    @property
    def never_opens(self) -> bool:
        """Whether it has no window, such as a minute that DST always skips."""
        return self._first(_RELEASED) == _NONE

    @property
    def shortest_window(self) -> timedelta | None:
        """The length of the shortest window without changes of the clock and exceptions; None if always open."""
        if self.recurrence.unbroken:
            return None
        return timedelta(seconds=shortest_run(self.recurrence))

    @property
    def has_overlapping_windows(self) -> bool:
        """Whether cron fires again before the window of the last firing is over."""
        return isinstance(self.recurrence, Firings) and overlaps(self.recurrence)

    def describe(self) -> str:
        """One line for conditions and tables, such as `mon-fri 9-17 America/New_York, with exceptions`."""
        exceptions = ", with exceptions" if self.exceptions else ""
        return f"{described(self.recurrence)} {self.zone.name}{exceptions}"

    def _first(self, after: int) -> tuple[int, int]:
        """The first run that closes after a moment, as far as one firing opens it."""
        return next(unmerged(self.source, self.zone, after), _NONE)

    def _runs(self, after: int) -> Iterator[tuple[int, int]]:
        """The merged runs that close after a moment; the first may have opened earlier than it says."""
        if self._is_open_for_good(after):
            return iter(((after, END),))
        return timeline(self.source, self.zone, after)

    def _is_open_for_good(self, after: int) -> bool:
        return self.open_since is not None and self.open_since <= after

    def _opening(self, opens: int) -> int:
        """The true opening of a window that is known to be open at a moment: look back further and further.

        One that has been open for a century counts as one that has always been.
        """
        back = self.recurrence.reach + DAY
        while back < _LONG_AGO:
            found = self._run_around(opens, opens - back)
            if found > opens - back:
                return found
            back *= 4
        return BEGINNING

    def _run_around(self, moment: int, after: int) -> int:
        """The opening of the merged run around a moment; how long that run goes on does not matter."""
        found, until = moment, BEGINNING - 1
        for opens, closes in unmerged(self.source, self.zone, after):
            if opens > until:
                found = opens
            until = max(until, closes)
            if until > moment:
                break
        return min(found, moment)


@lru_cache(maxsize=4096)
def open_for_good_since(recurrence: Recurring, zone: Zone) -> int | None:
    """The moment from which a recurrence without gaps of its own is not interrupted by changes of the clock either."""
    opens, closes = next(timeline(recurrence, zone, _RELEASED), (END, 0))
    return max(opens, _RELEASED) if closes >= END else None


def _open_after(plain: Schedule, exceptions: Exceptions) -> int | None:
    """The moment from which a schedule does not close any more, if that is certain without a search.

    On the last closed date nothing opens; what opens next may do so as late as windows are long.
    """
    last = exceptions.last_closed
    if plain.open_since is None or last is None:
        return None
    return max(plain.open_since, (last + 2) * DAY + plain.recurrence.reach)


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
