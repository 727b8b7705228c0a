"""Reads manifests from files and standard input as kubectl would: bounded, without surprises, errors with their line.

What is not said in JSON (dates, sexagesimal numbers, repeated keys) is not said here either, so that a manifest means
the same to us as to the API server.
"""

import errno
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from crds import bounds
from service.commands.scalars import scalar

SIZE_MAX: Final = 8 * 1024 * 1024
NODES_MAX: Final = 200_000
"""Values that aliases may repeat in one document; what is written out is bounded by the size of the file."""
DEPTH_MAX: Final = 2 * bounds.DEPTH_MAX
"""More than any object may have, so that one that is too deep gets the webhook's verdict."""
PATH_SHOWN: Final = 5
"""Names of a path that leads too deep; the others tell little."""
STDIN: Final = "-"

_LOADER: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_VISIBLE: Final = re.compile(r"[^ \t\r\n]")


class Unreadable(Exception):
    """A file that is no YAML, or more than we are willing to read; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest and where it was found."""

    source: str
    line: int
    content: Any


def read(source: str) -> Iterator[Document]:
    """All documents of a file, or of standard input for `-`; empty ones are left out.

    Raises:
        Unreadable: when it comes to what cannot be read.
    """
    name = "standard input" if source == STDIN else source
    text = _text(source, name)
    try:
        yield from _as_json(name, text) or _documents(name, yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise Unreadable(f"{name}:{_line(error)}: {_problem(error)}") from None
    except yaml.YAMLError as error:
        raise Unreadable(f"{name}: is not YAML: {' '.join(str(error).split())[:200]}") from None


def _text(source: str, name: str) -> str:
    try:
        data = _standard_input() if source == STDIN else _bounded(Path(source))
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror or error}") from None
    if len(data) > SIZE_MAX:
        raise Unreadable(f"{name}: is larger than {SIZE_MAX // 1024 // 1024} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{name}:{line}: is not UTF-8 text") from None


def _as_json(name: str, text: str) -> list[Document]:
    """JSON objects one after the other, which YAML's reader would not always understand (tabs, surrogate pairs).

    Nothing if it is anything else.
    """
    if not text.lstrip().startswith("{") or _depth(text) > DEPTH_MAX:
        return []
    try:
        return list(_objects(name, text))
    except ValueError:
        return []


def _objects(name: str, text: str) -> Iterator[Document]:
    at, line = 0, 1
    while visible := _VISIBLE.search(text, at):
        line += text.count("\n", at, visible.start())
        content, end = _DECODER.raw_decode(text, visible.start())
        if content is not None:
            yield Document(name, line, content)
        line += text.count("\n", visible.start(), end)
        at = end


def _depth(text: str) -> int:
    """At least the depth of nesting; brackets within texts count too, and then YAML's reader decides."""
    opened = deepest = 0
    for bracket in _BRACKETS.findall(text):
        opened += 1 if bracket in "{[" else -1
        deepest = max(deepest, opened)
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("repeated keys")
    return read


def _no_number(_name: str) -> Any:
    raise ValueError("no JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)


def _standard_input() -> bytes:
    # A program started with its standard input closed has none.
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed")
    return sys.stdin.buffer.read(SIZE_MAX + 1)


def _bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(SIZE_MAX + 1)


def _line(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 1


def _problem(error: yaml.MarkedYAMLError) -> str:
    return " ".join(f"{error.context or ''} {error.problem or 'is not YAML'}".split())


def _at(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _documents(name: str, events: Iterator[yaml.Event]) -> Iterator[Document]:
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _Builder(name, events)
            first = next(events)
            content = builder.build(first, DEPTH_MAX)
            if content is not None:
                yield Document(name, _at(first), content)


class _Anchored(NamedTuple):
    """A value that may be repeated, with how much and how deep it is."""

    value: Any
    size: int
    height: int


class _Builder:
    """Turns the events of one document into JSON data."""

    def __init__(self, name: str, events: Iterator[yaml.Event]) -> None:
        self._name = name
        self._events = events
        self._anchors: dict[str, _Anchored] = {}
        self._count = 0
        self._repeated = 0
        self._lowest = DEPTH_MAX
        self._path: list[str] = []

    def build(self, event: Any, depth: int) -> Any:
        """The value that starts with this event."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        before, above = self._count, self._lowest
        self._count += 1
        self._lowest = depth
        self._refuse_depth(event, depth)
        value = self._value(event, depth)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, self._count - before, depth - self._lowest)
        self._lowest = min(above, self._lowest)
        return value

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items = enumerate(self._until(yaml.SequenceEndEvent))
            return [self._within(f"[{index}]", each, depth) for index, each in items]
        return self._mapping(depth)

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for event in self._until(yaml.MappingEndEvent):
            key = self._key(event)
            value = self._within(key, next(self._events), depth)
            if key == "<<" and not event.style:
                merged = self._merged(event, value, merged)
            elif key in mapping:
                raise self._error(event, f"repeats the key {key!r}; write it once")
            else:
                mapping[key] = value
        return {**merged, **mapping}

    def _within(self, name: str, event: Any, depth: int) -> Any:
        """The value under a key or an index."""
        self._path.append(name)
        value = self.build(event, depth - 1)
        self._path.pop()
        return value

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error(event, "has a key that is no plain text")
        self._count += 1
        return str(event.value)

    def _merged(self, event: Any, value: Any, sofar: dict[str, Any]) -> dict[str, Any]:
        sources = value if isinstance(value, list) else [value]
        for each in sources:
            if not isinstance(each, dict):
                raise self._error(event, "merges something that is not a mapping")
            sofar = {**each, **sofar}
        return sofar

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Any:
        if event.anchor not in self._anchors:
            raise self._error(event, f"refers to *{event.anchor}, which is not defined before")
        value, size, height = self._anchors[event.anchor]
        self._lowest = min(self._lowest, depth - height)
        self._refuse_depth(event, depth - height)
        self._count += size
        self._repeated += size
        if self._repeated > NODES_MAX:
            raise self._error(event, f"has aliases that repeat more than {NODES_MAX} values")
        return value

    def _refuse_depth(self, event: yaml.Event, left: int) -> None:
        if left <= 0:
            where = ".".join(self._path[:PATH_SHOWN]).replace(".[", "[")
            raise self._error(event, f"{where}…: must not be nested deeper than {bounds.DEPTH_MAX} levels")

    def _until(self, end: type[yaml.Event]) -> Iterator[Any]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _error(self, event: yaml.Event, problem: str) -> Unreadable:
        return Unreadable(f"{self._name}:{_at(event)}: {problem}")
