"""What an update is answerable for: only what it changes, so that objects older than a rule can still be edited."""

import re
from collections import Counter
from typing import Any, Final

from crds.violations import Violation

Raw = dict[str, Any]

_INDEX: Final = re.compile(r"\[[0-9]+\]")
_ABSENT: Final = object()


def being_deleted(raw: Raw) -> bool:
    """Whether the object only waits for its finalizers."""
    metadata = raw.get("metadata")
    return isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None


def what_it_changes(raw: Raw, old: Raw, after: list[Violation], before: list[Violation]) -> list[Violation]:
    """The violations that the old object did not have, or whose fields the update touches."""
    known = Counter(_identity(violation) for violation in before)
    blamed = []
    for violation in after:
        identity = _identity(violation)
        if known[identity] and _untouched(violation, raw, old):
            known[identity] -= 1
        else:
            blamed.append(violation)
    return blamed


def _identity(violation: Violation) -> tuple[str, str, str]:
    """Two violations with the same identity are one; entries of a list may have moved."""
    return _INDEX.sub("[]", violation.field), repr(violation.value), violation.message


def _untouched(violation: Violation, raw: Raw, old: Raw) -> bool:
    return all(_find(raw, path) == _find(old, path) for path in violation.inputs)


def _find(raw: Any, path: str) -> Any:
    for name in path.split("."):
        raw = raw.get(name, _ABSENT) if isinstance(raw, dict) else _ABSENT
    return raw
