"""A first look at sizes, so that a manifest with a hundred thousand wrong entries is answered at once, and briefly.

What is too large is named and then cut to what may be there: all other rules still look at the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from crds.base import field_names
from crds.envelope import METADATA, TOP_LEVEL
from crds.fields import (
    CALENDAR_DATES_MAX,
    COMMANDS_MAX,
    DATES_MAX,
    DAY_ITEMS_MAX,
    EXCEPTIONS_MAX,
    HOUR_ITEMS_MAX,
    OVERRIDDEN_MAX,
    PAIRS_MAX,
    PARAMETERS_MAX,
    SELECTED_MAX,
    SELECTOR_VALUES_MAX,
    TAINTS_MAX,
    WINDOWS_MAX,
    YEARLY_MAX,
)
from crds.parameters import deeper_than
from crds.schedulecalendar import CalendarSpec, ConfigMapKeyRef, HolidaysSpec, IcsSpec
from crds.scheduledmachine import ClassRef, MachineTemplate, NodeTaint, ProviderSpec, WrittenSpec
from crds.scheduledmachineclass import ClassParameter, ClassProviderSpec, ClassSpec
from crds.scheduleoverride import OverrideSpec
from crds.schedulespec import CalendarRef, ExceptionSpec, ScheduleSpec, WindowSpec
from crds.selector import Requirement, Selector
from crds.violations import Violation, ViolationReason

FIELDS_MAX: Final = 100
"""Fields of one object: far more than any has, few enough to be listed one by one."""
DEPTH_MAX: Final = 100
DEPTH_MESSAGE: Final = f"must not be nested deeper than {DEPTH_MAX} levels"
METADATA_MAX: Final = 10_000

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """How many entries there may be, and which limits hold within.

    An object that has too many fields keeps those it is `known` to have, anything else its first entries.
    """

    most: int = FIELDS_MAX
    known: frozenset[str] = frozenset()
    inner: "dict[str, Limit]" = field(default_factory=dict)
    each: "Limit | None" = None

    holds: bool = field(init=False)
    """Whether there is something to look at within."""

    def __post_init__(self) -> None:
        """Finds out once what is asked for every object."""
        object.__setattr__(self, "holds", bool(self.inner or self.each))

    def cut(self, given: Any) -> Any:
        """As much of it as is worth a closer look."""
        if self.known and type(given) is dict:
            return {name: given[name] for name in given if name in self.known}
        kept = islice(given.items() if type(given) is dict else given, min(self.most, FIELDS_MAX))
        return dict(kept) if type(given) is dict else list(kept)


_PAIRS: Final = Limit(PAIRS_MAX)
_METADATA: Final = Limit(METADATA_MAX)
_PROVIDER: Final = Limit(known=field_names(ProviderSpec))
_WINDOW: Final = Limit(known=field_names(WindowSpec), inner={"days": Limit(DAY_ITEMS_MAX)})
_EXCEPTION: Final = Limit(
    known=field_names(ExceptionSpec),
    inner={"dates": Limit(DATES_MAX), "calendarRef": Limit(known=field_names(CalendarRef))},
)
_SETTABLE: Final = {
    "machineTemplate": Limit(known=field_names(MachineTemplate), inner={"labels": _PAIRS, "annotations": _PAIRS}),
    "killIfCommands": Limit(COMMANDS_MAX),
    "nodeTaints": Limit(TAINTS_MAX, each=Limit(known=field_names(NodeTaint))),
}
_SPEC: Final = Limit(
    known=field_names(WrittenSpec),
    inner={
        "schedule": Limit(
            known=field_names(ScheduleSpec),
            inner={
                "daysOfWeek": Limit(DAY_ITEMS_MAX),
                "hoursOfDay": Limit(HOUR_ITEMS_MAX),
                "windows": Limit(WINDOWS_MAX, each=_WINDOW),
                "exceptions": Limit(EXCEPTIONS_MAX, each=_EXCEPTION),
            },
        ),
        "classRef": Limit(known=field_names(ClassRef)),
        "parameters": Limit(PARAMETERS_MAX),
        "bootstrapSpec": _PROVIDER,
        "infrastructureSpec": _PROVIDER,
        **_SETTABLE,
    },
)
_CALENDAR: Final = Limit(
    known=field_names(CalendarSpec),
    inner={
        "dates": Limit(CALENDAR_DATES_MAX),
        "yearly": Limit(YEARLY_MAX),
        "holidays": Limit(known=field_names(HolidaysSpec)),
        "ics": Limit(known=field_names(IcsSpec), inner={"configMapKeyRef": Limit(known=field_names(ConfigMapKeyRef))}),
    },
)
_REQUIREMENT: Final = Limit(known=field_names(Requirement), inner={"values": Limit(SELECTOR_VALUES_MAX)})
_SELECTOR: Final = Limit(
    known=field_names(Selector),
    inner={"matchLabels": Limit(SELECTED_MAX), "matchExpressions": Limit(SELECTED_MAX, each=_REQUIREMENT)},
)
_OVERRIDE: Final = Limit(
    known=field_names(OverrideSpec), inner={"machines": Limit(OVERRIDDEN_MAX), "selector": _SELECTOR}
)
_OF_CLASS: Final = Limit(known=field_names(ClassProviderSpec))
_CLASS: Final = Limit(
    known=field_names(ClassSpec),
    inner={
        "namespaceSelector": _SELECTOR,
        "parameters": Limit(PARAMETERS_MAX, each=Limit(known=field_names(ClassParameter))),
        "bootstrapSpec": _OF_CLASS,
        "infrastructureSpec": _OF_CLASS,
        **_SETTABLE,
    },
)


def _object(spec: Limit) -> Limit:
    metadata = Limit(known=METADATA, inner={"labels": _METADATA, "annotations": _METADATA, "finalizers": _METADATA})
    return Limit(known=TOP_LEVEL, inner={"spec": spec, "metadata": metadata})


MACHINE: Final = _object(_SPEC)
CALENDAR: Final = _object(_CALENDAR)
OVERRIDE: Final = _object(_OVERRIDE)
CLASS: Final = _object(_CLASS)


def fitted(raw: Raw, limit: Limit = MACHINE) -> tuple[Raw, list[Violation]]:
    """The object with all that is too large cut to size, itself if nothing is, and what was too large."""
    found: list[Violation] = []
    kept = _fitted(raw, limit, "", found)
    found += _too_deep(raw)
    return kept, found


def _fitted(given: Any, limit: Limit, path: str, found: list[Violation]) -> Any:
    if len(given) > limit.most:
        found.append(_too_many(path, given, limit.most))
        given = limit.cut(given)
    if limit.each and type(given) is list:
        return _fitted_items(given, limit.each, path, found)
    if type(given) is not dict:
        return given
    for name, inner in limit.inner.items():
        value = given.get(name)
        if (type(value) is dict or type(value) is list) and (inner.holds or len(value) > inner.most):
            kept = _fitted(value, inner, f"{path}.{name}" if path else name, found)
            if kept is not value:
                given = {**given, name: kept}
    return given


def _fitted_items(given: list[Any], limit: Limit, path: str, found: list[Violation]) -> list[Any]:
    if not limit.holds and not any(type(item) is dict and len(item) > limit.most for item in given):
        return given
    kept = [
        _fitted(item, limit, f"{path}[{index}]", found) if type(item) is dict else item
        for index, item in enumerate(given)
    ]
    return given if all(one is other for one, other in zip(kept, given, strict=True)) else kept


def _too_deep(raw: Raw) -> Iterator[Violation]:
    """Provider specs are not inspected, but must be of a depth that every JSON reader on their way can take."""
    given = raw.get("spec")
    spec: Raw = given if type(given) is dict else {}
    for name in ("bootstrapSpec", "infrastructureSpec"):
        envelope = spec.get(name)
        payload = envelope.get("spec") if type(envelope) is dict else None
        if deeper_than(payload, DEPTH_MAX):
            yield Violation(
                f"spec.{name}.spec", "deeply nested", DEPTH_MESSAGE, ViolationReason.TOO_LONG, given=payload
            )


def _too_many(path: str, given: Any, limit: int) -> Violation:
    message = f"must have at most {limit} entries"
    return Violation(path, f"{len(given)} entries", message, ViolationReason.TOO_LONG, given=given)
