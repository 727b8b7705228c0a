"""An object as the API server stores it after defaulting."""

from copy import copy
from typing import Any

from crds.defaults import absent

Raw = dict[str, Any]


def defaulted(raw: Raw) -> Raw:
    """A copy with the absent fields added."""
    result = raw
    for path, value in absent(raw).items():
        result = _with(result, path, value)
    return result


def _with(raw: Raw, path: tuple[str, ...], value: Any) -> Raw:
    name, *rest = path
    return {**raw, name: _with(raw[name], tuple(rest), value) if rest else copy(value)}
