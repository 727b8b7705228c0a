"""Puts parameters into the specs of a class: value by value in the JSON, never as text of a manifest.

A text that is `$(params.port)` and nothing else becomes the value, with its type; within a longer text it becomes the
value's text. What is put in is not looked at again, so a value can change nothing but its own place. `$$(` stands for
`$(`. Names of fields are left as they are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from crds import syntax
from crds.violations import path_of

START: Final = "$(params."
MENTIONS_MAX: Final = 1000
"""References in one spec of a class: each of 64 parameters many times."""
_REFERENCE: Final = re.compile(rf"\$\(params\.({syntax.PARAMETER_NAME})\)")
_CONTAINERS: Final = frozenset({dict, list})
_TOKEN: Final = re.compile(rf"\$\$\(|\$\(params\.({syntax.PARAMETER_NAME})\)")
SIZE_MAX: Final = 1024 * 1024
"""Characters of all texts that are put in: a class that repeats a long parameter must not make a huge object."""


class OversizedSpecError(Exception):
    """The spec with its parameters would be larger than any object can be."""


class _Budget:
    """What may still be put in."""

    def __init__(self) -> None:
        self._left = SIZE_MAX

    def spend(self, size: int) -> None:
        """Counts what is put in."""
        self._left -= size
        if self._left < 0:
            raise OversizedSpecError


def substituted(template: Any, values: Mapping[str, Any]) -> Any:
    """A copy of the template with its references replaced; all of them are among the values.

    Raises:
        OversizedSpecError: if the copy would be larger than an object can be.
    """
    return _filled(template, values, _Budget())


def _filled(template: Any, values: Mapping[str, Any], budget: _Budget) -> Any:
    if type(template) is dict:
        return {key: _filled(value, values, budget) for key, value in template.items()}
    if type(template) is list:
        return [_filled(value, values, budget) for value in template]
    return _filled_text(template, values, budget) if type(template) is str else template


def _filled_text(text: str, values: Mapping[str, Any], budget: _Budget) -> Any:
    if "$" not in text:
        return text
    whole = _TOKEN.fullmatch(text)
    if whole is not None and whole[1] is not None:
        value = values[whole[1]]
        budget.spend(_size(value))
        return value

    def replacement(found: re.Match[str]) -> str:
        put = "$(" if found[1] is None else text_of(values[found[1]])
        budget.spend(len(put))
        return put

    return _TOKEN.sub(replacement, text)


def text_of(value: Any) -> str:
    """A text as it is, a number or true and false as JSON writes them."""
    return value if type(value) is str else orjson.dumps(value).decode()


def _size(value: Any) -> int:
    return len(value) if type(value) is str else len(orjson.dumps(value))


class Reference(NamedTuple):
    """A reference to a parameter: where it stands, which one, and whether it is the whole text."""

    where: str
    name: str
    alone: bool


@dataclass(slots=True)
class Mentions:
    """Where a template names parameters, and where it seems to."""

    references: list[Reference] = field(default_factory=list)
    mistakes: list[tuple[str, str]] = field(default_factory=list)
    """Texts in which `$(params.` begins and no reference follows, with their paths."""
    keys: list[str] = field(default_factory=list)
    """The paths of names of fields that look like references; nothing is put in there."""
    left: int = MENTIONS_MAX
    """How many more are looked at."""

    @property
    def more(self) -> bool:
        """Whether there are more than were looked at."""
        return self.left < 0


def mentions(template: Any, path: str) -> Mentions:
    """Where a template names parameters: the first `MENTIONS_MAX`."""
    found = Mentions()
    _search(template, path, [], found)
    return found


def _search(template: Any, root: str, loc: list[str | int], found: Mentions) -> None:
    """Goes through all of it; a path is written out only where something is found."""
    if type(template) is str:
        if START in template:
            _search_text(template, path_of(root, loc), found)
        return
    inner: Iterable[tuple[str | int, Any]] = template.items() if type(template) is dict else enumerate(template)
    for key, value in inner:
        if found.more:
            return
        if type(key) is str and START in key:
            found.left -= 1
            found.keys.append(path_of(root, [*loc, key]))
        # Most texts name nothing: they are passed by at once.
        if START in value if type(value) is str else type(value) in _CONTAINERS:
            loc.append(key)
            _search(value, root, loc, found)
            loc.pop()


def _search_text(text: str, where: str, found: Mentions) -> None:
    mistaken = False
    for at in _starts(text):
        found.left -= 1
        if found.more:
            return
        reference = _REFERENCE.match(text, at)
        if reference is not None:
            found.references.append(Reference(where, reference[1], len(reference[0]) == len(text)))
        elif not mistaken:
            mistaken = True
            found.mistakes.append((where, text))


def _starts(text: str) -> Iterator[int]:
    """Where `$(params.` begins; behind another `$` it is a text."""
    at = text.find(START)
    while at >= 0:
        if at == 0 or text[at - 1] != "$":
            yield at
        at = text.find(START, at + len(START))
