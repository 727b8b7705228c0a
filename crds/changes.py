"""What an update is answerable for: only what it changes, so that objects older than a rule can still be edited."""

import re
from collections import defaultdict
from typing import Any, Final

from crds.violations import Violation

Raw = dict[str, Any]

_INDEX: Final = re.compile(r"\[[0-9]+\]")


def merely_being_deleted(raw: Raw, old: Raw) -> bool:
    """Whether an update belongs to a deletion: the object waits for its finalizers, and its spec stays as it was."""
    metadata = raw.get("metadata")
    deleting = isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None
    return deleting and same(raw.get("spec"), old.get("spec"))


def what_it_changes(raw: Raw, old: Raw, after: list[Violation], before: list[Violation]) -> list[Violation]:
    """The violations that the old object did not have, or whose fields the update touches."""
    known: defaultdict[Any, list[Any]] = defaultdict(list)
    for violation in before:
        known[_identity(violation)].append(violation.given)
    return [
        violation
        for violation in after
        if not (_untouched(violation, raw, old) and _taken(known[_identity(violation)], violation))
    ]


def _identity(violation: Violation) -> tuple[str, str, str]:
    """Two violations with the same identity may be one; entries of a list may have moved."""
    value = "" if violation.inputs else repr(violation.value)
    return _INDEX.sub("[]", violation.field), value, violation.message


def _taken(candidates: list[Any], violation: Violation) -> bool:
    """Whether the old object had this violation, by the same value and not only by one that looks alike when cut."""
    for index, given in enumerate(candidates):
        if violation.inputs or same(given, violation.given):
            del candidates[index]
            return True
    return False


def _untouched(violation: Violation, raw: Raw, old: Raw) -> bool:
    return all(same(_find(raw, path), _find(old, path)) for path in violation.inputs)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; however deep they are, and 1, 1.0 and true are three things."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if type(one) is dict:
            if one.keys() != other.keys():
                return False
            pairs += [(one[key], other[key]) for key in one]
        elif type(one) is list:
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _find(raw: Any, path: str) -> Any:
    """What stands there; null and an empty list, which defaulting writes, say the same as nothing."""
    for name in path.split("."):
        raw = raw.get(name) if isinstance(raw, dict) else None
    return None if raw == [] else raw
