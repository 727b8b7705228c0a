"""Schemas that would take long to compile or to apply are refused by counting."""

import json
import random
import time
from typing import Any

import pytest

from crds.classrules import check_class
from crds.parameters import BYTES_MAX, NOT_LISTED, InvalidSchemaError, Parameter, compiled, parameter_violations
from crds.schemacost import LISTED_WORK_MAX, PATTERN_CHARS_MAX, PATTERNS_MAX, WORK_MAX, too_many_patterns
from tests.corpus import machine_class

SECONDS = 3.0
"""Of processor time: some times what is meant to be the longest check, for a machine that has other work."""
BITS = "".join(random.Random(7).choices("ab", k=BYTES_MAX))
SLOW: dict[str, tuple[dict[str, Any], Any]] = {
    "backtracking": ({"pattern": "^(a+)+$"}, "a" * BYTES_MAX),
    "a pattern that repeats": ({"pattern": "^(a{0,800})*$"}, "a" * BYTES_MAX + "!"),
    "a pattern of many states": ({"pattern": "[ab]*a[ab]{600}c"}, BITS),
    "many patterns": ({"allOf": [{"pattern": f"[ab]*a[ab]{{{n}}}c"} for n in range(10, 74)]}, BITS),
    "a choice of types": ({"items": {"anyOf": [{"type": "object"}] * 3500}}, ["a"] * 16_000),
    "a list of objects": ({"items": {"enum": [{"a": n} for n in range(5000)]}}, [{"a": -1}] * 8000),
    "much that is missing": ({"allOf": [{"contains": {"const": n}} for n in range(1500)]}, ["a"] * 16_000),
    "divisions of huge numbers": ({"items": {"multipleOf": 1e-308}}, [1e308] * 10_000),
    "many names": (
        {"dependentSchemas": {f"{n:05d}": {"maxProperties": 1} for n in range(1500)}},
        {f"{n:05d}": 1 for n in range(6000)},
    ),
}


def shortened(value: Any, most: int) -> Any:
    """As much of a value as fits."""
    while len(json.dumps(value, separators=(",", ":"))) > most:
        keep = len(value) * 9 // 10
        value = value[:keep] if isinstance(value, str | list) else dict(list(value.items())[:keep])
    return value


@pytest.mark.parametrize("name", SLOW)
def test_the_largest_value_that_is_checked_is_checked_in_good_time(name):
    schema, value = SLOW[name]
    parameter = Parameter("x", schema)
    for most in (WORK_MAX // parameter.cost, LISTED_WORK_MAX // parameter.words):
        fitting = shortened(value, min(BYTES_MAX, WORK_MAX // parameter.cost, most))
        started = time.process_time()
        found = parameter_violations({"x": fitting}, {"x": parameter})
        assert time.process_time() - started < SECONDS
        assert not any("too long" in each.message for each in found), "it was checked"


def test_divisions_count_as_what_they_take_and_not_as_the_few_bytes_of_their_numbers():
    schema = {"items": {"allOf": [{"multipleOf": 1e-308}] * 100}}
    (violation,) = check_class(class_with(schema=schema, default=[1e308] * 900)).violations
    assert (violation.field, violation.message[:8]) == ("spec.parameters", "has defa")
    assert not check_class(class_with(schema={"items": {"multipleOf": 8}}, default=[8] * 500)).violations


def test_of_a_large_value_only_that_something_is_wrong_is_said():
    parameter = Parameter("x", {"items": {"anyOf": [{"type": "object"}, {"type": "null"}]}})
    assert len(list(parameter.violations(["a"] * 10, "x"))) == 10
    assert not list(parameter.violations([{}] * 20_000, "x"))
    (found,) = parameter.violations([{}] * 20_000 + ["a"], "x")
    assert (found.field, found.message) == ("x", NOT_LISTED)


@pytest.mark.parametrize("word", ["unevaluatedItems", "unevaluatedProperties"])
def test_words_that_take_twice_as_long_with_every_level_are_refused(word):
    with pytest.raises(InvalidSchemaError, match=f"must not use {word}, which takes too long"):
        compiled({"properties": {"x": {"anyOf": [{"items": {word: False}}]}}})


def class_with(**parameter):
    return machine_class(parameters=[{"name": "address", **parameter}])


@pytest.mark.parametrize(
    ("schemas", "refused"),
    [
        ([{"pattern": "^a"}] * PATTERNS_MAX, False),
        ([{"pattern": "^a"}] * (PATTERNS_MAX + 1), True),
        ([{"anyOf": [{"items": {"pattern": "^a"}}] * (PATTERNS_MAX + 1)}], True),
        ([{"patternProperties": {f"^{number}": {} for number in range(PATTERNS_MAX + 1)}}], True),
        ([{"pattern": r"^\p{L}\P{N}$"}] * (PATTERNS_MAX // 3), False),
        ([{"pattern": r"^\p{L}\P{N}$"}] * (PATTERNS_MAX // 3 + 1), True),
        ([{"pattern": "a" * (PATTERN_CHARS_MAX + 1)}], True),
        ([{"properties": {"pattern": {"type": "string"}}}, {"enum": [{"pattern": 1}]}, True, "pattern"], False),
    ],
)
def test_regular_expressions_are_counted_wherever_they_stand(schemas, refused):
    assert too_many_patterns(schemas) is refused


@pytest.mark.parametrize(
    "pattern",
    [
        r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$",
        r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
        r"^[A-Za-z0-9._-]{1,255}$",
        r"^ssh-ed25519 [A-Za-z0-9+/=]{68}( \S+)?$",
        r"^\p{L}+$",
    ],
)
def test_patterns_as_classes_have_them_are_taken(pattern):
    assert compiled({"pattern": pattern})


def test_a_pattern_that_is_too_large_is_refused_with_the_reason():
    (violation,) = check_class(class_with(schema={"pattern": r"^\p{L}{100}$"})).violations
    assert violation.field == "spec.parameters[0].schema"
    assert violation.message.endswith('"regex" that is taken: without look-around, and at most 64 KiB when compiled')


def test_a_long_text_is_checked_against_a_plain_schema_and_a_short_one_against_a_pattern():
    parameters = {
        "script": Parameter("script", {"type": "string"}),
        "name": Parameter("name", {"type": "string", "pattern": "^[a-z]+$"}),
    }
    assert not parameter_violations({"script": "x" * (BYTES_MAX - 2000), "name": "a" * 1000}, parameters)
    (violation,) = parameter_violations({"script": "x", "name": "a" * 10_000}, parameters)
    assert (violation.field, violation.message[:12]) == ("spec.parameters", "are too long")


def test_defaults_are_bounded_likewise():
    schema = {"anyOf": [{"contains": {"pattern": "^b"}} for _ in range(10)]}
    (violation,) = check_class(class_with(schema=schema, default=["a"] * 1000)).violations
    assert (violation.field, violation.message[:8]) == ("spec.parameters", "has defa")
    assert not check_class(class_with(schema=schema, default=["b"])).violations
