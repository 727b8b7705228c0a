"""The two calendars, ScheduleCalendar and ClusterScheduleCalendar, which differ only in where they live."""

from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from crds import cel, fields
from crds.base import Lax, Model, StoredStatus, atomic_list, map_list
from crds.dates import Dates, Yearly
from crds.status import Condition

NEXT_DATES_MAX: Final = 10
DATE_NAME_MAX: Final = 128


class HolidaysSpec(Model):
    """The public holidays of a country."""

    country: fields.Country = Field(description="ISO 3166-1 code of the country, two letters, for example GB.")
    subdivision: fields.Subdivision | None = Field(
        default=None, description="Part of the country with holidays of its own, for example SCT."
    )


class ConfigMapKeyRef(Model):
    """A key of a ConfigMap."""

    name: fields.ObjectName = Field(description="Name of the ConfigMap.")
    key: fields.ConfigMapKey = Field(description="Key whose value is the calendar, for example holidays.ics.")


class IcsSpec(Model):
    """A calendar in the iCalendar format, as other programs export it."""

    model_config = ConfigDict(json_schema_extra=cel.validations([cel.ICS]))

    inline: fields.Ics | None = Field(default=None, description="The calendar itself, at most 1 MiB.")
    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None,
        description="Key of a ConfigMap that holds the calendar: in the calendar's own namespace, for a "
        "ClusterScheduleCalendar in the operator's.",
    )


class CalendarSpec(Model):
    """The dates of the calendar: all that is given here together."""

    model_config = ConfigDict(json_schema_extra=cel.validations([cel.CALENDAR]))

    dates: fields.CalendarDateItems = Field(
        default=Dates(),
        description="Dates such as 2026-12-24 and ranges such as 2026-12-28/2027-01-01, both ends included.",
    )
    yearly: fields.YearlyItems = Field(
        default=Yearly(), description="Days of every year, month and day, such as 12-25; 02-29 only in leap years."
    )
    holidays: HolidaysSpec | None = Field(
        default=None, description="Public holidays of a country, the days on which they are observed included."
    )
    ics: IcsSpec | None = Field(
        default=None,
        description="A calendar in the iCalendar format: each date that an event touches in the time zone of the "
        "schedule. Cancelled events do not count; nothing may recur more often than daily.",
    )


class NextDate(Model):
    """A date to come."""

    date: str = Field(max_length=10, description="The date, such as 2026-12-25.")
    name: str | None = Field(default=None, max_length=DATE_NAME_MAX, description="What it is called, if it has a name.")


class CalendarStatus(StoredStatus):
    """What the calendar says, or what is wrong with it. Written by the controller."""

    conditions: Annotated[tuple[Condition, ...], Lax] = Field(
        default=(),
        max_length=8,
        json_schema_extra=map_list("type"),
        description="Ready: whether the calendar can be read, and if not, why.",
    )
    next_dates: Annotated[tuple[NextDate, ...], Lax] = Field(
        default=(),
        max_length=NEXT_DATES_MAX,
        json_schema_extra=atomic_list(),
        description="The next dates with their names; events count in UTC here, in a schedule in its own time zone.",
    )
    known_through: str | None = Field(
        default=None,
        max_length=10,
        description="The last date up to which holidays and recurring events are worked out, moved on every year.",
    )
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status describes."
    )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data in camelCase, without absent fields and empty lists."""
        return {name: value for name, value in super().to_json().items() if value != []}
