"""A first look at sizes, so that a manifest with a hundred thousand wrong entries is answered at once, and briefly.

What is too large is named and then cut to what may be there: all other rules still look at the rest.
"""

from collections.abc import Iterable, Iterator
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
    PAIRS_MAX,
    TAINTS_MAX,
    WINDOWS_MAX,
    YEARLY_MAX,
)
from crds.schedulecalendar import CalendarSpec, ConfigMapKeyRef, HolidaysSpec, IcsSpec
from crds.scheduledmachine import MachineTemplate, NodeTaint, ProviderSpec, ScheduledMachineSpec
from crds.schedulespec import CalendarRef, ExceptionSpec, ScheduleSpec, WindowSpec
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

    @property
    def holds(self) -> bool:
        """Whether there is something to look at within."""
        return bool(self.inner or self.each)

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
_SPEC: Final = Limit(
    known=field_names(ScheduledMachineSpec),
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
        "bootstrapSpec": _PROVIDER,
        "infrastructureSpec": _PROVIDER,
        "machineTemplate": Limit(known=field_names(MachineTemplate), inner={"labels": _PAIRS, "annotations": _PAIRS}),
        "killIfCommands": Limit(COMMANDS_MAX),
        "nodeTaints": Limit(TAINTS_MAX, each=Limit(known=field_names(NodeTaint))),
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


def _object(spec: Limit) -> Limit:
    metadata = Limit(known=METADATA, inner={"labels": _METADATA, "annotations": _METADATA, "finalizers": _METADATA})
    return Limit(known=TOP_LEVEL, inner={"spec": spec, "metadata": metadata})


MACHINE: Final = _object(_SPEC)
CALENDAR: Final = _object(_CALENDAR)


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
        if _deeper_than(payload, DEPTH_MAX):
            yield Violation(
                f"spec.{name}.spec", "deeply nested", DEPTH_MESSAGE, ViolationReason.TOO_LONG, given=payload
            )


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [inner for item in level for inner in _contents(item)]
        if not level:
            return False
    return True


def _contents(value: Any) -> Iterable[Any]:
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else ()


def _too_many(path: str, given: Any, limit: int) -> Violation:
    message = f"must have at most {limit} entries"
    return Violation(path, f"{len(given)} entries", message, ViolationReason.TOO_LONG, given=given)
