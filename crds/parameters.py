"""The values that a ScheduledMachine gives to the parameters of its class, checked against the class's JSON schemas.

The library is loaded when the first schema is compiled: a service and a command that see no class do without it. Its
regular expressions take linear time, and it fetches nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from crds.fields import PARAMETERS_MAX
from crds.schemacost import DOUBLING, LISTED_WORK_MAX, TOO_MUCH_WORK, schema_cost, too_much_work, word_count
from crds.violations import KEY_MAX, Violation, ViolationReason, path_of, printable

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

BYTES_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 32
PATTERN_BYTES: Final = 64 * 1024
"""What one regular expression may need when it is compiled."""
PATTERN_CACHE_BYTES: Final = 1024 * 1024
"""What it may use in addition to be quick."""
PATTERN_HINT: Final = f" that is taken: without look-around, and at most {PATTERN_BYTES // 1024} KiB when compiled"
LISTED_MAX: Final = 20
"""Of one parameter, further violations are not listed."""
FIELD: Final = "spec.parameters"
TOO_LARGE: Final = f"must be at most {BYTES_MAX // 1024} KiB together"
TOO_DEEP: Final = f"must not be nested deeper than {DEPTH_MAX} levels"
NOT_LISTED: Final = "does not meet its schema in the class; both are too large to list what is wrong"
UNREADABLE: Final = "must be JSON: texts in plain UTF-8, whole numbers of at most 64 bits"
SUBJECT: Final = "it"
"""What the library says instead of quoting the value."""
REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor", "$schema"})
"""Words of a schema that lead elsewhere."""


class InvalidSchemaError(Exception):
    """Not a JSON schema that is taken here; the message says why."""


def compiled(schema: Any) -> "Validator":
    """A validator for a schema of a class.

    Raises:
        InvalidSchemaError: if it is none, or refers to another one.
    """
    import jsonschema_rs  # noqa: PLC0415 - only classes need it

    word = next(_words(schema, REFERENCES), None)
    if word is not None:
        raise InvalidSchemaError(f"must not use {word}: a schema stands alone")
    word = next(_words(schema, DOUBLING), None)
    if word is not None:
        raise InvalidSchemaError(f"must not use {word}, which takes too long; say items or additionalProperties")
    patterns = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_CACHE_BYTES)
    try:
        return jsonschema_rs.Draft202012Validator(
            schema, pattern_options=patterns, validate_formats=True, ignore_unknown_formats=False, mask=SUBJECT,
            offline=True,
        )  # fmt: skip
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        why = error.message if isinstance(error, jsonschema_rs.ValidationError) else str(error)
        hint = PATTERN_HINT if '"regex"' in why else ""
        raise InvalidSchemaError(f"is not a JSON schema: {printable(why)}{hint}") from None


def _words(schema: Any, wanted: frozenset[str]) -> Iterator[str]:
    """Those of the wanted words that a schema uses."""
    if type(schema) is dict:
        for key, value in schema.items():
            if key in wanted:
                yield key
            yield from _words(value, wanted)
    elif type(schema) is list:
        for value in schema:
            yield from _words(value, wanted)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a class; without a default it must be given."""

    name: str
    schema: Any
    default: Any = None

    @cached_property
    def validator(self) -> "Validator":
        """Compiled when the first value comes, once for all users of the class."""
        return compiled(self.schema)

    @cached_property
    def cost(self) -> int:
        """What checking a byte of a value costs."""
        return schema_cost(self.schema)

    @cached_property
    def words(self) -> int:
        """How many words of the schema may each be wrong about a part of a value."""
        return word_count(self.schema)

    def violations(self, value: Any, path: str) -> Iterator[Violation]:
        """All that is wrong with a value, at most `LISTED_MAX`; of a large one only that something is."""
        if self.words * len(orjson.dumps(value)) <= LISTED_WORK_MAX:
            for error in islice(self.validator.iter_errors(value), LISTED_MAX):
                yield _violation(error, path)
        elif not self.validator.is_valid(value):
            yield Violation.of(path, value, NOT_LISTED)


def _violation(error: "ValidationError", path: str) -> Violation:
    where = path_of(path, list(error.instance_path))
    message = error.message.removeprefix(f"{SUBJECT} ")
    return Violation.of(where, error.instance, printable(message))


def size_violations(given: Mapping[str, Any]) -> Iterator[Violation]:
    """Whether values are too many, too large or too deep to be looked at more closely."""
    if len(given) > PARAMETERS_MAX:
        message = f"must have at most {PARAMETERS_MAX} entries"
        yield Violation(FIELD, f"{len(given)} entries", message, ViolationReason.TOO_LONG, given=given)
        return
    deep = [name for name, value in given.items() if deeper_than(value, DEPTH_MAX)]
    for name in deep:
        where = f"{FIELD}.{printable(str(name), KEY_MAX)}"
        yield Violation(where, "deeply nested", TOO_DEEP, ViolationReason.TOO_LONG, given=given[name])
    if not deep:
        yield from too_many_bytes(given)


def too_many_bytes(given: Any) -> Iterator[Violation]:
    """Whether parameters, those of a class or of a machine, are no JSON, or too large together."""
    try:
        size = len(orjson.dumps(given))
    except orjson.JSONEncodeError:
        yield Violation.of(FIELD, given, UNREADABLE)
        return
    if size > BYTES_MAX:
        yield Violation(FIELD, f"{size} bytes", TOO_LARGE, ViolationReason.TOO_LONG, given=given)


def work_violations(given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> Iterator[Violation]:
    """Whether checking values, each of which fits by itself, would take too long."""
    costs = {name: parameter.cost for name, parameter in parameters.items()}
    if too_much_work(given, costs):
        yield Violation.of(FIELD, given, TOO_MUCH_WORK, ViolationReason.TOO_LONG)


def deeper_than(value: Any, limit: int) -> bool:
    """Whether there are more levels than that below a value."""
    level = _containers((value,))
    for _ in range(limit):
        if not level:
            return False
        level = [inner for each in level for inner in _containers(each.values() if type(each) is dict else each)]
    return any(level)


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) is dict or type(value) is list]


def parameter_violations(given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> list[Violation]:
    """All that is wrong with the values that a ScheduledMachine gives; null counts as not given."""
    too_large = list(size_violations(given)) or list(work_violations(given, parameters))
    if too_large:
        return too_large
    return [*_unknown(given, parameters), *_missing(given, parameters), *_mistaken(given, parameters)]


def _unknown(given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> Iterator[Violation]:
    known = ", ".join(parameters) or "none"
    for name, value in given.items():
        if value is not None and name not in parameters:
            where = f"{FIELD}.{printable(str(name), KEY_MAX)}"
            message = f"unknown parameter; the class has: {printable(known, 500)}"
            yield Violation.of(where, value, message, ViolationReason.FORBIDDEN)


def _missing(given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> Iterator[Violation]:
    for name, parameter in parameters.items():
        if given.get(name) is None and parameter.default is None:
            message = "is required by the class"
            yield Violation(f"{FIELD}.{name}", None, message, ViolationReason.REQUIRED)


def _mistaken(given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> Iterator[Violation]:
    for name, value in given.items():
        if value is not None and name in parameters:
            yield from parameters[name].violations(value, f"{FIELD}.{name}")
