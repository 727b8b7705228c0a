"""The CustomResourceDefinitions of the two calendars, made from their models."""

from typing import Any, Final

from crds import names
from crds.schedulecalendar import CalendarSpec, CalendarStatus
from crds.schema import MOVED, DefinedKind, definition, object_of, structural, without

Schema = dict[str, Any]

COLUMNS: Final = (
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', "Whether the calendar can be read"),
    ("Next", "string", ".status.nextDates[0].date", "The next date"),
    ("Name", "string", ".status.nextDates[0].name", "What the next date is called"),
    ("Age", "date", ".metadata.creationTimestamp", "Time since it was created"),
)
WIDE_COLUMNS: Final = (
    ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', "Why it can be read or not"),
    ("Message", "string", '.status.conditions[?(@.type=="Ready")].message', "What is wrong, if anything"),
)


def calendar_definitions() -> list[Schema]:
    """Both, ready to be applied."""
    return [
        _definition(
            "Namespaced", names.CALENDAR_KIND, names.CALENDAR_PLURAL, names.CALENDAR_SHORT_NAME,
            "Dates for the schedules of its namespace, such as holidays.",
        ),
        _definition(
            "Cluster", names.CLUSTER_CALENDAR_KIND, names.CLUSTER_CALENDAR_PLURAL, names.CLUSTER_CALENDAR_SHORT_NAME,
            "Dates for the schedules of all namespaces, such as holidays.",
        ),
    ]  # fmt: skip


def _definition(scope: str, kind: str, plural: str, short_name: str, description: str) -> Schema:
    what = DefinedKind(kind, plural, short_name, COLUMNS, WIDE_COLUMNS, scope, MOVED)
    return definition(what, calendar_schema(kind, description))


def calendar_schema(kind: str, description: str) -> Schema:
    """The structural schema of a calendar."""
    spec = {**structural(CalendarSpec), "description": "The dates of the calendar."}
    return object_of(kind, description, spec, without(structural(CalendarStatus), "nullable"))
