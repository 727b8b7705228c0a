"""What can be said of a recurrence without asking for a moment: how short its runs are, and a line for people."""

from datetime import timedelta
from typing import Final

from crds import clockwindows
from crds.clockwindows import ClockWindow, ClockWindows
from crds.days import lowest, narrowest_gap
from crds.firings import Firings, fires_while_open
from crds.recurrence import DAY, WeeklyHours, hour_ranges
from crds.values import DaySet, HourSet, format_duration

Recurring = WeeklyHours | Firings | ClockWindows

_DESCRIBED: Final = 3
"""Of more windows than this, a description names only the first."""


def shortest_run(recurrence: Recurring) -> int:
    """The seconds of the shortest run without changes of the clock; only for what has a gap."""
    if isinstance(recurrence, ClockWindows):
        return clockwindows.shortest_run(recurrence.windows)
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


def overlaps(firings: Firings) -> bool:
    """Whether cron fires again before the window of the last firing is over."""
    day = firings.shape
    if fires_while_open(day, firings.reach):
        return True
    overnight = DAY - day.last + day.first
    return firings.reach > overnight and firings.reach > overnight + (narrowest_gap(firings.calendar) - 1) * DAY


def described(recurrence: Recurring) -> str:
    """One line for people, such as `mon-fri 9-17`."""
    if isinstance(recurrence, Firings):
        return f"cron {recurrence.cron} for {format_duration(timedelta(seconds=recurrence.reach))}"
    if isinstance(recurrence, ClockWindows):
        return _described_windows(recurrence.windows)
    hours = HourSet(recurrence.hours, wraps=True)
    return f"{_described_days(recurrence.weekdays)} {'all hours' if hours.is_full else hours}"


def _described_windows(windows: tuple[ClockWindow, ...]) -> str:
    ordered = sorted(windows, key=lambda window: (lowest(window.weekdays), window.starts))
    described = [f"{_described_days(window.weekdays)} {window.times}" for window in ordered[:_DESCRIBED]]
    if len(windows) > _DESCRIBED:
        described.append(f"and {len(windows) - _DESCRIBED} more")
    return ", ".join(described)


def _described_days(weekdays: int) -> str:
    days = DaySet(weekdays, wraps=True)
    return "every day" if days.is_full else str(days)
