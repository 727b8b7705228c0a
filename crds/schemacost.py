"""What the schemas of a class may cost, counted in what is written, before the library compiles or applies them.

A class is judged in the event loop that also renews leases, and any caller of the webhook can send one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

PATTERNS_MAX: Final = 64
"""Regular expressions in all schemas of a class; each `\\p{…}` in one counts as one more, for it is a long list."""
PATTERN_CHARS_MAX: Final = 8 * 1024
TOO_MANY_PATTERNS: Final = (
    f"must have at most {PATTERNS_MAX} regular expressions, each \\p in them counted as one more, and "
    f"{PATTERN_CHARS_MAX // 1024} KiB of them"
)
WORK_MAX: Final = 16 * 1024 * 1024
"""Bytes of a schema times bytes of its value, of all parameters together: some 40 ms at the worst."""
PATTERN_COST: Final = 8 * 1024
"""What a regular expression counts for in that product: it is applied to every byte of a text."""
DIVISION_COST: Final = 4 * 1024
"""What a `multipleOf` counts for there: the library divides exactly, which takes long for a number such as 1e308."""
LISTED_WORK_MAX: Final = 50_000
"""Words of a schema times bytes of its value up to which all that is wrong is listed: every word may be wrong about
every part of it, and to say so takes a hundred times as long as to see it."""
WORD_BYTES: Final = 64
"""So many bytes of a schema, such as those of a list of names, count as a word."""
DOUBLING: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
"""Words of a schema whose work doubles with every level of them."""
TOO_MUCH_WORK: Final = "are too long for the schemas of the class; shorten the values, or have simpler schemas"


def too_many_patterns(schemas: Sequence[Any]) -> bool:
    """Whether compiling the regular expressions of all schemas of a class would take long."""
    found = [pattern for schema in schemas for pattern in _patterns(schema)]
    return _weight(found) > PATTERNS_MAX or sum(map(len, found)) > PATTERN_CHARS_MAX


def schema_cost(schema: Any) -> int:
    """What each byte of a value costs that is checked against a schema."""
    return (
        len(orjson.dumps(schema))
        + PATTERN_COST * _weight(list(_patterns(schema)))
        + DIVISION_COST * _count(schema, "multipleOf")
    )


def word_count(schema: Any) -> int:
    """How many words of a schema may each be wrong about a value."""
    return _names(schema) + len(orjson.dumps(schema)) // WORD_BYTES + 1


def _names(schema: Any) -> int:
    if type(schema) is dict:
        return len(schema) + sum(map(_names, schema.values()))
    return sum(map(_names, schema)) if type(schema) is list else 0


def _count(schema: Any, word: str) -> int:
    """How often a word stands in a schema."""
    if type(schema) is dict:
        return (word in schema) + sum(_count(inner, word) for inner in schema.values())
    return sum(_count(inner, word) for inner in schema) if type(schema) is list else 0


def too_much_work(given: Mapping[str, Any], costs: Mapping[str, int]) -> bool:
    """Whether checking values would take long; `costs` are those of the schemas, by the same names."""
    return sum(costs[name] * len(orjson.dumps(value)) for name, value in given.items() if name in costs) > WORK_MAX


def _weight(patterns: Sequence[str]) -> int:
    return sum(1 + pattern.count("\\p") + pattern.count("\\P") for pattern in patterns)


def _patterns(schema: Any) -> Iterator[str]:
    """The regular expressions in a schema, and now and then a text that only looks like one."""
    if type(schema) is list:
        for inner in schema:
            yield from _patterns(inner)
    elif type(schema) is dict:
        for word, inner in schema.items():
            if word == "pattern" and type(inner) is str:
                yield inner
            elif word == "patternProperties" and type(inner) is dict:
                yield from inner
            yield from _patterns(inner)
