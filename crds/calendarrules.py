"""What may be said in a calendar, for webhook, command line and controller alike; both kinds have the same rules."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from crds import cel, countries, names, syntax
from crds.bounds import CALENDAR, fitted
from crds.calendars import CalendarKind
from crds.changes import answers_for
from crds.envelope import UnknownFields, envelope_rules, in_no_namespace, parsed_spec
from crds.schedulecalendar import CalendarSpec
from crds.unread import UNREAD_MAX, unread_fields
from crds.violations import Violation, ViolationReason

Raw = dict[str, Any]

KINDS: Final = {names.CALENDAR_KIND: CalendarKind.NAMESPACED, names.CLUSTER_CALENDAR_KIND: CalendarKind.CLUSTER}


@dataclass(frozen=True, slots=True)
class CalendarVerdict:
    """The judgement on a calendar: its spec if it could be read, and all that is wrong with it."""

    spec: CalendarSpec | None
    violations: tuple[Violation, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.violations


def check_calendar(
    raw: Any, *, kind: CalendarKind, old: Raw | None = None, unknown: UnknownFields = "forbid"
) -> CalendarVerdict:
    """Judge a calendar that is to be stored; `old` is what an update would replace. Never raises.

    An update answers only for what it changes; `spec` is None if the calendar as a whole cannot be read.
    """
    if type(raw) is not dict:
        return CalendarVerdict(None, (Violation.of("", raw, "must be an object", ViolationReason.TYPE),))
    spec, violations = _examined(raw, kind, unknown)
    readable = spec if not violations else None
    held = answers_for(raw, old, violations, lambda before: _examined(before, kind, "forbid")[1])
    return CalendarVerdict(readable, tuple(held))


def _examined(given: Raw, kind: CalendarKind, unknown: UnknownFields) -> tuple[CalendarSpec | None, list[Violation]]:
    raw, violations = fitted(given, CALENDAR)
    parsed, wrong = parsed_spec(CalendarSpec, raw.get("spec"), unknown)
    violations += map(_without_text, wrong)
    violations += envelope_rules(raw, unknown, kind=kind, name_max=syntax.PREFIX_MAX)
    if kind is CalendarKind.CLUSTER:
        violations += in_no_namespace(raw, kind)
    if type(raw.get("spec")) is dict:
        violations += _unread(raw["spec"]) if unknown == "ignore" else ()
        violations += _spec_rules(raw["spec"])
    return parsed, violations


def _unread(spec: Raw) -> Iterator[Violation]:
    """Unknown fields of a stored calendar: each may add dates or take some away."""
    return islice(unread_fields(CalendarSpec, spec, "spec"), UNREAD_MAX)


def _without_text(violation: Violation) -> Violation:
    """The text of a calendar is never quoted: who reads the message need not be who may read the calendar."""
    if violation.field != "spec.ics.inline" or not isinstance(violation.given, str):
        return violation
    size = f"{len(violation.given)} characters"
    return replace(violation, value=size, given=size)


def _spec_rules(spec: Raw) -> Iterator[Violation]:
    filled = spec.get("dates") or spec.get("yearly")
    if not filled and spec.get("holidays") is None and spec.get("ics") is None:
        yield Violation.of("spec", spec, cel.CALENDAR["message"], ViolationReason.REQUIRED)
    ics = spec.get("ics")
    if type(ics) is dict and (ics.get("inline") is None) == (ics.get("configMapKeyRef") is None):
        yield Violation.of("spec.ics", ics, cel.ICS["message"])
    holidays = spec.get("holidays")
    if type(holidays) is dict:
        yield from _holiday_rules(holidays)


def _holiday_rules(holidays: Raw) -> Iterator[Violation]:
    country, subdivision = holidays.get("country"), holidays.get("subdivision")
    if not syntax.is_country(country):
        return  # the model has said so
    refusal = countries.refusal_of_country(country)
    if refusal:
        yield Violation.of("spec.holidays.country", country, refusal, ViolationReason.NOT_SUPPORTED)
    elif isinstance(subdivision, str) and subdivision:
        refusal = countries.refusal_of_subdivision(country, subdivision)
        if refusal:
            inputs = ("spec.holidays.country", "spec.holidays.subdivision")
            yield Violation.of("spec.holidays.subdivision", subdivision, refusal, ViolationReason.NOT_SUPPORTED, inputs)
