"""The texts for the columns SCHEDULE and NEXT of `kubectl get`, which cannot shorten or convert what a status has.

Both change at the boundaries of the schedule only, so they cause no status write of their own.
"""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from crds.schedule import EVER, FOREVER, Schedule
from service.decide.effective import Effective

SCHEDULE_MAX: Final = 24
_WEEKDAY_WITHIN: Final = timedelta(days=6)
"""A weekday names only one day if the boundary before it is nearer than this."""
_YEAR_BEYOND: Final = timedelta(days=300)


@lru_cache(maxsize=1024)
def schedule_column(schedule: Schedule) -> str:
    """The schedule in a few words, such as `mon-fri 9-17 New_York`, cut to the width of the column."""
    zone = schedule.zone.name
    text = schedule.describe().removesuffix(zone) + zone.rpartition("/")[2]
    return text if len(text) <= SCHEDULE_MAX else text[: SCHEDULE_MAX - 1] + "…"


def next_column(effective: Effective, now: datetime) -> str | None:
    """When the window closes or the next one opens, in the schedule's zone, such as `closes Fri 18:00`; None if never.

    Overrides count, leads do not: users plan by the window, not by when the controller acts.
    """
    schedule, window = effective.schedule, effective.window(now)
    if schedule is None or window is None:
        return None
    if window.opens > now:
        return _opens(schedule, window.opens)
    opened = None if window.opens == EVER else window.opens
    return _closes(schedule, window.closes, opened) if window.closes != FOREVER else None


@lru_cache(maxsize=1024)
def _closes(schedule: Schedule, closes: datetime, opened: datetime | None) -> str:
    length = closes - opened if opened else timedelta.max
    return f"closes {_local(schedule, closes):{_form(length)}}"


@lru_cache(maxsize=1024)
def _opens(schedule: Schedule, opens: datetime) -> str:
    return f"opens {_local(schedule, opens):{_form(_closed_before(schedule, opens))}}"


def _closed_before(schedule: Schedule, opens: datetime) -> timedelta:
    """How long, roughly, the schedule is closed before an opening; not counted from now, so that it never changes."""
    known = (span for span in (_WEEKDAY_WITHIN, _YEAR_BEYOND) if any(schedule.windows(opens - span, opens, cut=True)))
    return next(known, timedelta.max) - timedelta(seconds=1)


def _form(span: timedelta) -> str:
    if span < _WEEKDAY_WITHIN:
        return "%a %H:%M"
    return "%d %b %H:%M" if span < _YEAR_BEYOND else "%d %b %Y"


def _local(schedule: Schedule, moment: datetime) -> datetime:
    return moment + timedelta(seconds=schedule.zone.span(int(moment.timestamp())).offset)
