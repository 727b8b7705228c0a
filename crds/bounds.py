"""A first look at sizes: a manifest with a hundred thousand wrong entries gets one answer, not as many, and at once."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from crds.fields import COMMANDS_MAX, DAY_ITEMS_MAX, HOUR_ITEMS_MAX, PAIRS_MAX, TAINTS_MAX
from crds.violations import Reason, Violation

FIELDS_MAX: Final = 100
"""Fields of one object: far more than any has, few enough to be listed one by one."""
DEPTH_MAX: Final = 100
METADATA_MAX: Final = 10_000

Limits = dict[str, tuple[int, Any]]

_NONE: Final[Limits] = {}
_ENVELOPE: Final = (FIELDS_MAX, _NONE)
_LIMITS: Final[Limits] = {
    "spec": (
        FIELDS_MAX,
        {
            "schedule": (FIELDS_MAX, {"daysOfWeek": (DAY_ITEMS_MAX, _NONE), "hoursOfDay": (HOUR_ITEMS_MAX, _NONE)}),
            "bootstrapSpec": _ENVELOPE,
            "infrastructureSpec": _ENVELOPE,
            "machineTemplate": (FIELDS_MAX, {"labels": (PAIRS_MAX, _NONE), "annotations": (PAIRS_MAX, _NONE)}),
            "killIfCommands": (COMMANDS_MAX, _NONE),
            "nodeTaints": (TAINTS_MAX, _NONE),
        },
    ),
    "metadata": (
        FIELDS_MAX,
        {
            "labels": (METADATA_MAX, _NONE),
            "annotations": (METADATA_MAX, _NONE),
            "finalizers": (METADATA_MAX, _NONE),
        },
    ),
}


def oversized(raw: dict[str, Any]) -> list[Violation]:
    """Every list and object that has more entries than it may."""
    found = [*_within(raw, _LIMITS, ""), *_too_deep(raw)]
    if len(raw) > FIELDS_MAX:
        found.append(_too_many("", len(raw), FIELDS_MAX))
    return found or list(_taints(raw))


def _within(given: dict[str, Any], limits: Limits, path: str) -> Iterator[Violation]:
    for name, (limit, inner) in limits.items():
        value = given.get(name)
        if type(value) is not dict and type(value) is not list:
            continue
        if len(value) > limit:
            yield _too_many(f"{path}{name}", len(value), limit)
        if inner and type(value) is dict:
            yield from _within(value, inner, f"{path}{name}.")


def _too_deep(raw: dict[str, Any]) -> Iterator[Violation]:
    """Provider specs are not inspected, but must be of a depth that every JSON reader on their way can take."""
    given = raw.get("spec")
    spec: dict[str, Any] = given if type(given) is dict else {}
    for name in ("bootstrapSpec", "infrastructureSpec"):
        envelope = spec.get(name)
        payload = envelope.get("spec") if type(envelope) is dict else None
        if _deeper_than(payload, DEPTH_MAX):
            message = f"must not be nested deeper than {DEPTH_MAX} levels"
            yield Violation(f"spec.{name}.spec", "deeply nested", message, Reason.TOO_LONG)


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


def _taints(raw: dict[str, Any]) -> Iterator[Violation]:
    spec = raw.get("spec")
    taints = spec.get("nodeTaints") if type(spec) is dict else None
    for index, taint in enumerate(taints if type(taints) is list else ()):
        if type(taint) is dict and len(taint) > FIELDS_MAX:
            yield _too_many(f"spec.nodeTaints[{index}]", len(taint), FIELDS_MAX)


def _too_many(field: str, count: int, limit: int) -> Violation:
    return Violation(field, f"{count} entries", f"must have at most {limit} entries", Reason.TOO_LONG)
