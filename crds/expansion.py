"""From a calendar's spec to its dates: pure, with the holidays and events that a subprocess worked out as data.

Dates and days of every year need nothing else and hold for ever. Holidays and ICS are worked out up to a horizon of ten
years, which moves on with each new year.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from crds.base import rfc3339
from crds.calendars import CalendarDates, CalendarEvent, NamedDays, UnreadableCalendar
from crds.dates import date_of, day_of
from crds.reasons import CalendarConditionReason
from crds.schedulecalendar import DATE_NAME_MAX, NEXT_DATES_MAX, CalendarSpec, CalendarStatus, NextDate
from crds.status import Condition
from crds.text import one_line
from crds.zones import Zone

YEARS_BACK: Final = 1
YEARS_AHEAD: Final = 10


class Horizon(NamedTuple):
    """The dates for which holidays and events are worked out, both ends included."""

    first: date
    last: date

    @classmethod
    def around(cls, today: date) -> "Horizon":
        """Whole years, so that it moves once a year."""
        last = min(today.year + YEARS_AHEAD, date.max.year)
        return cls(date(max(today.year - YEARS_BACK, 1), 1, 1), date(last, 12, 31))


@dataclass(frozen=True, slots=True)
class ExpansionRequest:
    """What has to be worked out in a subprocess; `ics` is the text itself, wherever it comes from."""

    horizon: Horizon
    country: str | None = None
    subdivision: str | None = None
    ics: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As the subprocess reads it."""
        return {
            "first": self.horizon.first.isoformat(),
            "last": self.horizon.last.isoformat(),
            "country": self.country,
            "subdivision": self.subdivision,
            "ics": self.ics,
        }


@dataclass(frozen=True, slots=True)
class Computed:
    """What a subprocess worked out."""

    days: tuple[NamedDays, ...]
    events: tuple[CalendarEvent, ...]
    last: date
    """The last date that is known: the end of the horizon, or of what is known of a country's holidays."""

    @classmethod
    def of(cls, answer: dict[str, Any]) -> "Computed":
        """From its JSON."""
        days = tuple(NamedDays(first, last, _name(name)) for first, last, name in answer["days"])
        events = tuple(CalendarEvent(begins, ends, _name(name)) for begins, ends, name in answer["events"])
        return cls(days, events, date.fromisoformat(answer["last"]))


def request_for(spec: CalendarSpec, ics: str | None, horizon: Horizon) -> ExpansionRequest | None:
    """What is to be worked out for a calendar; None if its spec says it all.

    `ics` is the text that the ConfigMap holds, if the spec names one.
    """
    text = spec.ics.inline if spec.ics and spec.ics.inline is not None else ics
    if spec.holidays is None and spec.ics is None:
        return None
    country = spec.holidays.country if spec.holidays else None
    subdivision = spec.holidays.subdivision if spec.holidays else None
    return ExpansionRequest(horizon, country, subdivision, text if spec.ics else None)


def expanded(spec: CalendarSpec, computed: Computed | None = None) -> CalendarDates:
    """All dates of a calendar."""
    written = tuple(NamedDays(run.first, run.last) for run in spec.dates)
    return CalendarDates(
        days=written + (computed.days if computed else ()),
        yearly=tuple(sorted(spec.yearly)),
        events=computed.events if computed else (),
        through=day_of(computed.last) if computed else None,
    )


def without_dates(dates: CalendarDates) -> str:
    """What to say of a calendar that names no date at all; empty if it names one."""
    if dates.days or dates.yearly or dates.events or dates.through is None:
        return ""
    return f"names no date until {date_of(dates.through)}; schedules that name it are as without it"


class CalendarOutlook(NamedTuple):
    """A calendar's status, and the moment at which it will say something else."""

    status: CalendarStatus
    changes_at: datetime | None


def outlook(
    dates: CalendarDates | UnreadableCalendar, now: datetime, generation: int, before: CalendarStatus
) -> CalendarOutlook:
    """What the controller reports of a calendar. It is to look again when the next date is over, or the year is."""
    if isinstance(dates, UnreadableCalendar):
        ready = _ready(CalendarConditionReason.INVALID, dates.message, now, generation, before)
        return CalendarOutlook(CalendarStatus(conditions=(ready,), observed_generation=generation), None)
    today = day_of(now.astimezone(UTC).date())
    upcoming = dates.upcoming(today, NEXT_DATES_MAX, Zone.parse("UTC"))
    status = CalendarStatus(
        conditions=(_ready(CalendarConditionReason.READ, without_dates(dates), now, generation, before),),
        next_dates=tuple(NextDate(date=each.date, name=_name(each.name) or None) for each in upcoming),
        known_through=None if dates.through is None else str(date_of(dates.through)),
        observed_generation=generation,
    )
    ends = [date.fromisoformat(upcoming[0].date) + timedelta(days=1)] if upcoming else []
    if dates.through is not None:
        ends.append(date(now.astimezone(UTC).year + 1, 1, 1))
    return CalendarOutlook(status, datetime.combine(min(ends), datetime.min.time(), UTC) if ends else None)


def _ready(
    reason: CalendarConditionReason, message: str, now: datetime, generation: int, before: CalendarStatus
) -> Condition:
    old = next((each for each in before.conditions if each.type == reason.condition), None)
    since = old.last_transition_time if old and old.status == reason.status else now
    return Condition.parse(
        {
            "type": reason.condition,
            "status": reason.status,
            "reason": reason.value,
            "message": message,
            "lastTransitionTime": rfc3339(since),
            "observedGeneration": generation,
        }
    )


def _name(text: str) -> str:
    return one_line(text, DATE_NAME_MAX)
