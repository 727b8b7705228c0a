"""What is wrong with a manifest, in words for its author: field path, offending value and what is allowed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from crds.base import field_names
from crds.values import InvalidValue

VALUE_MAX: Final = 120
EXACT_MAX: Final = 1024
"""Text up to this length is given to programs as it is."""
KEY_MAX: Final = 80
MAPS: Final = frozenset({"labels", "annotations", "matchLabels"})

JSONScalar = str | int | float | bool | None


class ViolationReason(StrEnum):
    """The cause types of Kubernetes' `Status`."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TYPE = "FieldValueTypeInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    TOO_LONG = "FieldValueTooLong"
    FORBIDDEN = "FieldValueForbidden"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong.

    `inputs` are the fields that it depends on, if not `field` alone; `given` is the value as it was found, of which
    `value` shows as much as fits a message.
    """

    field: str
    value: JSONScalar
    message: str
    reason: ViolationReason = ViolationReason.INVALID
    inputs: tuple[str, ...] = ()
    given: Any = dataclass_field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        field: str,
        given: Any,
        message: str,
        reason: ViolationReason = ViolationReason.INVALID,
        inputs: tuple[str, ...] = (),
    ) -> "Violation":
        """A violation by this very value."""
        return cls(field, shown(given), message, reason, inputs, given)

    def to_json(self) -> dict[str, JSONScalar]:
        """As `5spot validate -o json` prints it: text is not escaped, as JSON does that itself."""
        exact = isinstance(self.given, str) and len(self.given) <= EXACT_MAX
        return {"field": self.field, "value": self.given if exact else self.value, "message": self.message}

    def __str__(self) -> str:
        if self.reason is ViolationReason.REQUIRED:
            return f"{self.field}: {self.message}"
        # Text is escaped already, see `printable`.
        value = f'"{self.value}"' if isinstance(self.value, str) else json.dumps(self.value)
        return f"{self.field}: {value}: {self.message}"


def shown(value: Any) -> JSONScalar:
    """A value fit for showing: scalars as they are, text bounded and without control characters, the rest as JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if abs(value) < 2**63 else _bounded(str(value)[: VALUE_MAX + 1])
    if isinstance(value, str):
        return printable(value)
    return printable(_outline(value))


def printable(text: str, limit: int = VALUE_MAX) -> str:
    """Text cut to `limit` characters, everything unprintable escaped."""
    head = text[: limit + 1]
    return _bounded(head if head.isprintable() else "".join(map(_escaped, head)), limit)


@lru_cache(maxsize=1024)  # a hostile object has thousands of them, and mostly the same
def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def _bounded(text: str, limit: int = VALUE_MAX) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _outline(value: Any) -> str:
    """A short sketch of a list or an object; never walks all of it, as it may be huge."""
    if isinstance(value, dict):
        keys = [printable(str(key), 20) for key, _ in zip(value, range(4), strict=False)]
        return "{" + ", ".join(keys) + (", …" if len(value) > 4 else "") + "}"
    if isinstance(value, list | tuple):
        return f"[list of {len(value)}]"
    return type(value).__name__


def path_of(root: str, loc: Sequence[int | str]) -> str:
    """A location written as `spec.nodeTaints[0].key`; entries of a map as `labels[key]`."""
    path, before = root, ""
    for part in loc:
        if isinstance(part, int) or before in MAPS:
            path += f"[{printable(str(part), KEY_MAX)}]"
        elif part != "[key]":
            path += f".{printable(part, KEY_MAX)}"
        before = str(part)
    return path


def translated(error: ValidationError, root: str, model: type[BaseModel]) -> list[Violation]:
    """Everything that the models found wrong."""
    return [_violation(detail, root, model) for detail in error.errors(include_url=False)]


def _violation(detail: ErrorDetails, root: str, model: type[BaseModel]) -> Violation:
    field, kind = path_of(root, detail["loc"]), detail["type"]
    if kind == "missing":
        return Violation(field, None, "is required", ViolationReason.REQUIRED)
    if kind == "extra_forbidden":
        allowed = ", ".join(sorted(field_names(_model_at(model, detail["loc"][:-1]))))
        return Violation.of(field, detail["input"], f"unknown field; known here: {allowed}", ViolationReason.FORBIDDEN)
    given = detail["loc"][-2] if detail["loc"][-1:] == ("[key]",) else detail["input"]
    return Violation.of(field, given, _message(detail), _REASONS.get(kind, ViolationReason.INVALID))


def _message(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, InvalidValue):
        return cause.message
    words = _MESSAGES.get(detail["type"])
    return words.format_map(context) if words else "is not allowed here"


_MESSAGES: Final = {
    "string_type": "must be a string",
    "string_unicode": "holds half of a character (a lone surrogate); write it as plain UTF-8 text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false, without quotes",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "enum": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must be at most {max_length} characters",
    "string_too_short": "must be at least {min_length} character",
    "too_long": "must have at most {max_length} entries",
}

_REASONS: Final = {
    **dict.fromkeys(
        ("string_type", "int_type", "bool_type", "list_type", "tuple_type", "dict_type", "model_type"),
        ViolationReason.TYPE,
    ),
    "enum": ViolationReason.NOT_SUPPORTED,
    "string_too_long": ViolationReason.TOO_LONG,
    "too_long": ViolationReason.TOO_LONG,
}


def _model_at(model: type[BaseModel], loc: Sequence[int | str]) -> type[BaseModel]:
    """The model whose field is at `loc`."""
    for part in loc:
        inner = next((field.annotation for field in model.model_fields.values() if field.alias == part), None)
        model = model_in(inner) or model
    return model


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `Model`, `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := model_in(inner))), None)
