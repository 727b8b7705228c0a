"""The indexes of the cache of ScheduledMachines; nothing in the objects is trusted to be well-formed."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from crds import names
from crds.classes import class_of
from service.decide.reasons import Reason
from service.runtime.cache import Object

READY: Final = "Ready"
CLASS: Final = "class"
CLASS_NAMESPACE: Final = "class-namespace"
PROVIDER_PARTS: Final = (("spec", "bootstrapSpec"), ("spec", "infrastructureSpec"))
PROVIDER_REFS: Final = (("status", "bootstrapRef"), ("status", "infrastructureRef"))


def kind_term(api_version: str, kind: str) -> str:
    """A kind in any version of its group."""
    return f"{kind}.{api_version.partition('/')[0]}"


def _kind_terms(raw: Object) -> Iterable[str]:
    """The providers' kinds that an object names, or that its children have."""
    found: set[str] = set()
    for outer, inner in (*PROVIDER_PARTS, *PROVIDER_REFS):
        match _part(_part(raw, outer), inner):
            case {"apiVersion": str(api_version), "kind": str(kind)}:
                found.add(kind_term(api_version, kind))
    return found


def _part(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, dict) else None


def _cluster_terms(raw: Object) -> Iterator[str]:
    spec = raw.get("spec")
    name = spec.get("clusterName") if isinstance(spec, dict) else None
    if isinstance(name, str):
        yield name


def _phase_terms(raw: Object) -> Iterator[str]:
    status = raw.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    yield phase if isinstance(phase, str) else "Pending"


def _ready_terms(raw: Object) -> Iterator[str]:
    """`READY`, or `NotReadyInTime`: what is counted."""
    status = raw.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(conditions, list):
        return
    for condition in conditions:
        if not isinstance(condition, dict) or condition.get("type") != READY:
            continue
        if condition.get("status") == "True":
            yield READY
        elif condition.get("reason") == Reason.NOT_READY_IN_TIME:
            yield Reason.NOT_READY_IN_TIME


def calendar_term(kind: str, name: str) -> str:
    """A calendar as schedules name it; a namespaced one is meant in the namespace of each of them."""
    return f"{kind}/{name}"


def _calendar_terms(raw: Object) -> Iterable[str]:
    """The calendars that the schedule of an object names."""
    exceptions = _part(_part(_part(raw, "spec"), "schedule"), "exceptions")
    found: set[str] = set()
    for each in exceptions if isinstance(exceptions, list) else ():
        match _part(each, "calendarRef"):
            case {"name": str(name), **rest}:
                found.add(calendar_term(str(rest.get("kind") or names.CALENDAR_KIND), name))
    return found


def _class_terms(raw: Object) -> Iterator[str]:
    name = class_of(raw)
    if name is not None:
        yield name


def _class_namespace_terms(raw: Object) -> Iterator[str]:
    """The namespace of an object that names a class."""
    if class_of(raw) is not None:
        yield str(_part(_part(raw, "metadata"), "namespace") or "")


def label_term(key: str, value: str) -> str:
    """A label with its value; the key alone is a term, too."""
    return f"{key}={value}"


def _label_terms(raw: Object) -> Iterator[str]:
    labels = _part(_part(raw, "metadata"), "labels")
    for key, value in labels.items() if isinstance(labels, dict) else ():
        yield key
        yield label_term(key, value)


INDEXES: Final = {
    "calendar": _calendar_terms,
    CLASS: _class_terms,
    CLASS_NAMESPACE: _class_namespace_terms,
    "cluster": _cluster_terms,
    "label": _label_terms,
    "phase": _phase_terms,
    "ready": _ready_terms,
    "kind": _kind_terms,
}
