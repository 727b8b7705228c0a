"""The rule on nodeTaints that is about several entries; ScheduledMachines and classes have it in common.

The API server checks it itself, as the list is a map by key and effect; files are read without it.
"""

from collections.abc import Iterator
from typing import Any

from crds.violations import Violation, ViolationReason


def repeated_taints(spec: dict[str, Any]) -> Iterator[Violation]:
    """Taints whose key and effect an earlier one has."""
    taints = spec.get("nodeTaints")
    if type(taints) is not list:
        return
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        identity = _taint_identity(taint)
        if identity is not None and identity in seen:
            what = f"{identity[0]}:{identity[1]}"
            message = "repeats an earlier taint; key and effect together must be unique"
            yield Violation.of(f"spec.nodeTaints[{index}]", what, message, ViolationReason.DUPLICATE)
        elif identity is not None:
            seen.add(identity)


def _taint_identity(taint: Any) -> tuple[str, str] | None:
    key, effect = (taint.get("key"), taint.get("effect")) if type(taint) is dict else (None, None)
    return (key, effect) if type(key) is str and type(effect) is str else None
