"""The CustomResourceDefinitions of the two calendars, made from their models."""

from typing import Any, Final

from crds import names
from crds.schedulecalendar import CalendarSpec, CalendarStatus
from crds.schema import column, structural, without

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
MOVED_BY_CLUSTERCTL: Final = {"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/move": ""}
"""`clusterctl move` takes calendars along."""


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
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{names.GROUP}", "labels": dict(MOVED_BY_CLUSTERCTL)},
        "spec": {
            "group": names.GROUP,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short_name],
            },
            "versions": [_version(kind, description)],
        },
    }


def _version(kind: str, description: str) -> Schema:
    columns = [*(column(*each) for each in COLUMNS), *(column(*each, wide=True) for each in WIDE_COLUMNS)]
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": calendar_schema(kind, description)},
    }


def calendar_schema(kind: str, description: str) -> Schema:
    """The structural schema of a calendar."""
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"Always {names.API_VERSION}."},
            "kind": {"type": "string", "description": f"Always {kind}."},
            "metadata": {"type": "object"},
            "spec": {**structural(CalendarSpec), "description": "The dates of the calendar."},
            "status": without(structural(CalendarStatus), "nullable"),
        },
    }
