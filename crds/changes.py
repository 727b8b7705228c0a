"""What an update is answerable for: only what it changes, so that objects older than a rule can still be edited."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

import orjson

from crds.violations import Violation

Raw = dict[str, Any]

_INDEX: Final = re.compile(r"\[[0-9]+\]")


def merely_being_deleted(raw: Raw, old: Raw) -> bool:
    """Whether an update belongs to a deletion: the object waits for its finalizers, and its spec stays as it was."""
    metadata = raw.get("metadata")
    deleting = isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None
    return deleting and same(raw.get("spec"), old.get("spec"))


def answers_for(
    raw: Raw,
    old: Raw | None,
    violations: list[Violation],
    before: Callable[[Raw], list[Violation]],
    moved: Callable[[Raw, Raw], Iterable[Violation]] = lambda _raw, _old: (),
) -> list[Violation]:
    """The violations that are held against an object: all if it is new, of an update those that it brings or touches.

    `before` finds those of the old object, `moved` the fields that the update must not change.
    """
    if old is None:
        return violations
    if merely_being_deleted(raw, old):
        return []
    brought = what_it_changes(raw, old, violations, before(old)) if violations else []
    return [*brought, *moved(raw, old)]


def what_it_changes(raw: Raw, old: Raw, after: list[Violation], before: list[Violation]) -> list[Violation]:
    """The violations that the old object did not have, or whose fields the update touches."""
    known = Counter(map(_identity, before))
    return [violation for violation in after if not (_untouched(violation, raw, old) and _taken(known, violation))]


def _identity(violation: Violation) -> Hashable:
    """Two violations with the same identity are one, by the same value; entries of a list may have moved."""
    value = None if violation.inputs else _fingerprint(violation.given)
    return _INDEX.sub("[]", violation.field), violation.message, value


def _taken(known: Counter[Hashable], violation: Violation) -> bool:
    """Whether the old object had this violation; each counts once."""
    identity = _identity(violation)
    if not known[identity]:
        return False
    known[identity] -= 1
    return True


def _fingerprint(value: Any) -> Hashable:
    """Equal for values that are the `same`; made in linear time, so that a thousand lists are not compared in pairs."""
    if type(value) is str:
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # too deep for it, or half of a character
        return _taken_apart(value)


def _taken_apart(value: Any) -> Hashable:
    parts, left = list[Hashable](), [value]
    while left:
        one = left.pop()
        if type(one) is dict:
            keys = sorted(one, key=str)
            parts.append((dict, tuple(keys)))
            left += [one[key] for key in keys]
        elif type(one) is list:
            parts.append((list, len(one)))
            left += one
        else:
            parts.append((type(one), one))
    return tuple(parts)


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
