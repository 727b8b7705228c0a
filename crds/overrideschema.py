"""The CustomResourceDefinition of overrides, made from their models."""

from typing import Any, Final

from crds import names
from crds.scheduleoverride import OverrideSpec, OverrideStatus
from crds.schema import CATEGORIES, DefinedKind, definition, object_of, structural, without

Schema = dict[str, Any]

DESCRIPTION: Final = "For a time, machines are in service or out of it, in spite of their schedules."
COLUMNS: Final = (
    ("Machines", "string", ".spec.machines", "The ScheduledMachines that it names"),
    ("State", "string", ".spec.state", "State that it gives them"),
    # Not dates: kubectl prints <invalid> for a date that lies ahead.
    ("From", "string", ".spec.from", "When it begins, if not at once"),
    ("Until", "string", ".spec.until", "When it ends"),
    ("By", "string", ".spec.requestedBy", "User who requested it"),
    ("In force", "string", '.status.conditions[?(@.type=="InForce")].status', "Whether it has begun and not ended"),
)
_ACCEPTED: Final = '.status.conditions[?(@.type=="Accepted")]'
WIDE_COLUMNS: Final = (
    ("Selector", "string", ".spec.selector", "The labels by which it selects ScheduledMachines"),
    ("Reason", "string", ".spec.reason", "The reason, for people to read"),
    ("Accepted", "string", f"{_ACCEPTED}.status", "Whether it counts"),
    ("Message", "string", f"{_ACCEPTED}.message", "Why it does not count"),
    ("Age", "date", ".metadata.creationTimestamp", "Time since it was created"),
)


def override_definition() -> Schema:
    """The whole object, ready to be applied. `clusterctl move` does not take overrides along: they are for tonight."""
    what = DefinedKind(
        names.OVERRIDE_KIND,
        names.OVERRIDE_PLURAL,
        names.OVERRIDE_SHORT_NAME,
        COLUMNS,
        WIDE_COLUMNS,
        categories=CATEGORIES,
    )
    return definition(what, override_schema())


def override_schema() -> Schema:
    """The structural schema of an override."""
    spec = {**structural(OverrideSpec), "description": "Which machines, what state, and until when."}
    return object_of(names.OVERRIDE_KIND, DESCRIPTION, spec, without(structural(OverrideStatus), "nullable"))
