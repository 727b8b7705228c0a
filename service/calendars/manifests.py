"""Calendars from manifests, for commands that work on files: with the ConfigMaps that lie beside them."""

from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from crds import names
from crds.calendarrules import KINDS, check_calendar
from crds.calendars import (
    CalendarDates,
    CalendarKind,
    CalendarProblem,
    CalendarReference,
    CalendarShelf,
    UnreadableCalendar,
)
from crds.envelope import DEFAULT_NAMESPACE, namespace_of
from crds.schedulecalendar import CalendarSpec
from service.calendars.expander import Expander

Raw = dict[str, Any]
ConfigMaps = dict[tuple[str, str], Raw]

OPERATOR_NAMESPACE: Final = "5spot-system"


async def shelf_of(
    documents: Iterable[Any], today: date, expander: Expander, operator_namespace: str = OPERATOR_NAMESPACE
) -> CalendarShelf:
    """All calendars among these documents; everything else is passed over.

    An invalid calendar is on the shelf too, as one that cannot be read: a schedule that names it is then undecidable.
    """
    known = [each for each in documents if type(each) is dict]
    config_maps: ConfigMaps = {key: each for each in known if (key := config_map_of(each))}
    shelf = CalendarShelf()
    for each in known:
        reference = reference_of(each)
        if reference is not None:
            home = operator_namespace if reference.kind is CalendarKind.CLUSTER else namespace_of(each)
            spec = check_calendar(each, kind=reference.kind, unknown="ignore").spec
            dates = await _dates(reference, spec, today, expander, _text(spec, home, config_maps))
            shelf.put(namespace_of(each), reference, dates)
    return shelf


def reference_of(document: Any) -> CalendarReference | None:
    """How schedules name this document, if it is a calendar."""
    name = _name(document)
    if name is None or document.get("apiVersion") != names.API_VERSION:
        return None
    kind = document.get("kind")
    return CalendarReference(KINDS[kind], name) if type(kind) is str and kind in KINDS else None


def config_map_of(document: Any) -> tuple[str, str] | None:
    """The namespace and name of this document, if it is a ConfigMap."""
    name = _name(document)
    if name is None or document.get("apiVersion") != "v1" or document.get("kind") != "ConfigMap":
        return None
    return namespace_of(document), name


def _name(document: Any) -> str | None:
    """The name of an object whose namespace, if it has one, is text too."""
    metadata = document.get("metadata") if type(document) is dict else None
    if type(metadata) is not dict or type(metadata.get("namespace") or "") is not str:
        return None
    name = metadata.get("name")
    return name if type(name) is str and name else None


async def _dates(
    reference: CalendarReference, spec: CalendarSpec | None, today: date, expander: Expander, text: str | None
) -> CalendarDates | UnreadableCalendar:
    if spec is None:
        return UnreadableCalendar(CalendarProblem.INVALID, f"{reference} is invalid; 5spot validate says why")
    return await expander.dates(str(reference), spec, today, text)


def _text(spec: CalendarSpec | None, namespace: str, config_maps: ConfigMaps) -> str | None:
    reference = spec.ics.config_map_key_ref if spec and spec.ics else None
    if reference is None:
        return None
    found = config_maps.get((namespace or DEFAULT_NAMESPACE, reference.name), {})
    return text_in(found, reference.key)


def text_in(config_map: Raw, key: str) -> str | None:
    """What a ConfigMap holds under a key; None if it holds no text there."""
    data = config_map.get("data")
    value = data.get(key) if type(data) is dict else None
    return value if type(value) is str else None
