"""The part of a ScheduledMachine that says when: one of three forms, exceptions, a time zone."""

from datetime import date, timedelta
from functools import cached_property, lru_cache
from typing import Annotated, Final, NamedTuple

from pydantic import ConfigDict, Field

from crds import cel, fields
from crds.base import Lax, Model, atomic_list
from crds.calendars import CalendarDates, CalendarKind, CalendarReference, Calendars, Undecidable, problems_with
from crds.clockwindows import ClockWindow
from crds.dates import Dates, Either, day_of
from crds.exceptions import ExceptionRule, Exceptions, State
from crds.schedule import Schedule
from crds.values import Cron, DaySet, HourSet, Zone

DEFAULT_TIMEZONE: Final = Zone.parse("UTC")


class WindowSpec(Model):
    """A window from one time of day to another, to the minute, on the local clock."""

    days: fields.Days = Field(
        default=DaySet(),
        description="Days on which the window begins: mon to sun, ranges such as mon-fri, lists such as mon-wed,fri. "
        "Absent or empty means every day.",
    )
    starts: fields.StartTime = Field(
        alias="from", description='Time at which the window begins, as a string "HH:MM", "00:00" to "23:59".'
    )
    ends: fields.EndTime = Field(
        alias="to",
        description='Time at which the window ends, "00:00" to "24:00"; if it is not after `from`, on the next day.',
    )

    @property
    def compiled(self) -> ClockWindow:
        """The window as the algebra takes it."""
        return ClockWindow.of(self.days.bits, self.starts.minutes, self.ends.minutes)


class CalendarRef(Model):
    """A calendar that names dates."""

    kind: fields.CalendarKind = Field(
        default=CalendarKind.NAMESPACED,
        description="ScheduleCalendar (the default), in the same namespace, or ClusterScheduleCalendar.",
    )
    name: fields.ObjectName = Field(description="Name of the calendar.")

    @property
    def reference(self) -> CalendarReference:
        """The key under which the calendar is looked up."""
        return CalendarReference(self.kind, self.name)


class ExceptionSpec(Model):
    """Dates, or a calendar that names them, and what the schedule is on them."""

    model_config = ConfigDict(json_schema_extra=cel.validations([cel.EXCEPTION]))

    dates: fields.DateItems = Field(
        default=Dates(),
        description="Dates such as 2026-12-24 and ranges such as 2026-12-28/2027-01-01, both ends included, in the "
        "time zone of the schedule. Either this or calendarRef.",
    )
    calendar_ref: CalendarRef | None = Field(
        default=None, description="Calendar whose dates are meant. Either this or dates."
    )
    state: Annotated[State, Lax] = Field(
        description="Closed: nothing begins on these dates, and what began before runs to its end. Open: they are in "
        "service from midnight to midnight, beside what the schedule says."
    )

    def source(self, calendars: Calendars, zone: Zone) -> Either | None:
        """The dates that are meant; None if the calendar cannot be read."""
        calendar = self._calendar(calendars)
        if self.calendar_ref is None:
            return Either(self.dates)
        return calendar.in_zone(zone) if calendar else None

    def name(self, day: int, calendars: Calendars, zone: Zone) -> str:
        """What a day is called in the calendar."""
        calendar = self._calendar(calendars)
        return calendar.name(day, zone) if calendar else ""

    def _calendar(self, calendars: Calendars) -> CalendarDates | None:
        found = calendars.get(self.calendar_ref.reference) if self.calendar_ref else None
        return found if isinstance(found, CalendarDates) else None


class ExceptionOn(NamedTuple):
    """What an exception says of a date."""

    state: State
    name: str


class CalendarsNeededError(RuntimeError):
    """A schedule was asked for its windows without the calendars that it names."""

    def __init__(self, undecidable: Undecidable) -> None:
        super().__init__(undecidable.message)
        self.undecidable = undecidable


class ScheduleSpec(Model):
    """When the machine is in service: days and hours of the week, cron with a duration, or windows to the minute."""

    model_config = ConfigDict(json_schema_extra=cel.validations(cel.SCHEDULE))

    days_of_week: fields.Days = Field(
        default=DaySet(),
        description="Days with service: mon to sun, ranges such as mon-fri or fri-mon, lists such as mon-wed,fri. "
        "Empty means every day.",
    )
    hours_of_day: fields.Hours = Field(
        default=HourSet(),
        description="Hours with service, 0 to 23, as strings: 9, ranges such as 9-17 (09:00 up to 18:00) or 22-6, "
        "lists such as 0-9,17-23. Empty means every hour. Day and hour are tested separately on the local clock.",
    )
    cron: fields.Cron | None = Field(
        default=None,
        description="Instead of days and hours: five-field cron expression; each firing opens a window.",
    )
    duration: fields.WindowDuration | None = Field(
        default=None, description="How long a window opened by cron lasts, for example 8h; at most 7 days; default 1m."
    )
    windows: Annotated[tuple[WindowSpec, ...], Lax] = Field(
        default=(),
        max_length=fields.WINDOWS_MAX,
        json_schema_extra=atomic_list(nullable=True),
        description="Instead of days and hours or cron: windows from one time of day to another, to the minute. The "
        "machine is in service in all of them.",
    )
    exceptions: Annotated[tuple[ExceptionSpec, ...], Lax] = Field(
        default=(),
        max_length=fields.EXCEPTIONS_MAX,
        json_schema_extra=atomic_list(nullable=True),
        description="Dates on which the schedule is closed or open in spite of what it says. The first exception that "
        "names a date decides about it.",
    )
    timezone: fields.Timezone = Field(
        default=DEFAULT_TIMEZONE,
        description="IANA name of the time zone that days, hours, cron and windows are read in.",
    )
    start_early: fields.Lead | None = Field(
        default=None,
        description="How long before a window opens the machine is requested, so that its Node is Ready at the "
        "opening: a duration such as 10m, at most 1h, or Auto, which the controller learns from earlier services.",
    )
    stop_early: fields.Lead | None = Field(
        default=None,
        description="How long before a window closes the shutdown begins, so that the host is free at the close: a "
        "duration such as 10m, at most 1h, or Auto. A window that is not longer than this is skipped.",
    )
    enabled: bool = Field(
        default=True, description="false pauses the schedule: what runs stays, nothing is created or removed."
    )

    @cached_property
    def compiled(self) -> Schedule:
        """The set of instants that this schedule denotes, whether enabled or not.

        Raises:
            CalendarsNeededError: if it names calendars; then ask `resolved`.
        """
        found = self.resolved({})
        if isinstance(found, Undecidable):
            raise CalendarsNeededError(found)
        return found

    def resolved(self, calendars: Calendars) -> Schedule | Undecidable:
        """The set of instants that this schedule denotes with these calendars, or why that cannot be said."""
        if not self.exceptions:
            return self.recurring
        undecidable = problems_with(self.calendars, calendars)
        return undecidable or _excepted(self.recurring, self._rules(calendars))

    @property
    def calendars(self) -> tuple[CalendarReference, ...]:
        """The calendars that it names, each once."""
        named = (each.calendar_ref.reference for each in self.exceptions if each.calendar_ref)
        return tuple(dict.fromkeys(named))

    def exception_on(self, day: date, calendars: Calendars) -> ExceptionOn | None:
        """What the deciding exception says of a date, with the date's name; None if no readable one names it."""
        found = self.deciding_exception(day, calendars)
        return ExceptionOn(found.state, found.name(day_of(day), calendars, self.timezone)) if found else None

    def deciding_exception(self, day: date, calendars: Calendars) -> ExceptionSpec | None:
        """The first exception that names a date; None if no readable one does."""
        for each in self.exceptions:
            source = each.source(calendars, self.timezone)
            if source is not None and ExceptionRule(source, each.state).names(day_of(day)):
                return each
        return None

    def _rules(self, calendars: Calendars) -> Exceptions:
        sources = ((each.source(calendars, self.timezone), each.state) for each in self.exceptions)
        return Exceptions(tuple(ExceptionRule(source, state) for source, state in sources if source is not None))

    @cached_property
    def recurring(self) -> Schedule:
        """The schedule without its exceptions."""
        if self.windows:
            return _from_windows(tuple(window.compiled for window in self.windows), self.timezone)
        return _compile(self.days_of_week, self.hours_of_day, self.cron, self.duration, self.timezone)


@lru_cache(maxsize=8192)
def _compile(days: DaySet, hours: HourSet, cron: Cron | None, duration: timedelta | None, zone: Zone) -> Schedule:
    if cron is None:
        return Schedule.weekly(days, hours, zone)
    return Schedule.from_cron(cron, duration, zone)


_from_windows = lru_cache(maxsize=8192)(Schedule.from_windows)
_excepted = lru_cache(maxsize=8192)(Schedule.excepted)


@lru_cache(maxsize=8192)
def never_opens(schedule: Schedule) -> bool:
    """Whether there is no window in any year to come."""
    return schedule.never_opens
