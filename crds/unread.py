"""Fields of a stored object that this version does not know, in parts that it must read whole.

A newer version, with its own CRD, may have stored them. In most parts of a spec they are passed over. In a schedule or
a calendar each field may change when a machine is in service, so one unknown field makes the whole unreadable.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel

from crds.base import field_names
from crds.violations import KEY_MAX, Violation, ViolationReason, model_in, printable

UNREAD: Final = "is not known to this version of 5-Spot; upgrade the operator, or remove the field"
UNREAD_MAX: Final = 20
"""More unknown fields are not listed: one is enough to refuse the whole."""


def unread_fields(model: type[BaseModel], given: Any, path: str) -> Iterator[Violation]:
    """Each field in `given`, at any depth, that the model and its inner models do not have; null means absent."""
    if type(given) is not dict:
        return
    inner = _inner_models(model)
    for key, value in given.items():
        where = f"{path}.{printable(str(key), KEY_MAX)}"
        if value is not None and key not in field_names(model):
            yield Violation.of(where, value, UNREAD, ViolationReason.FORBIDDEN)
        elif key in inner:
            yield from _within(inner[key], value, where)


def _within(model: type[BaseModel], value: Any, path: str) -> Iterator[Violation]:
    if type(value) is not list:
        yield from unread_fields(model, value, path)
        return
    for index, each in enumerate(value):
        yield from unread_fields(model, each, f"{path}[{index}]")


@lru_cache(maxsize=64)
def _inner_models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The models of those fields that are objects or lists of objects, by the names that users write."""
    found = ((field.alias or name, model_in(field.annotation)) for name, field in model.model_fields.items())
    return {name: inner for name, inner in found if inner is not None}
