"""Reads manifests from files and standard input as kubectl does, within limits; errors name the line.

Values that JSON does not have (dates, sexagesimal numbers, repeated keys) are text or errors here, so that a manifest
means the same to 5spot as to the API server.
"""

import errno
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from crds import bounds
from service.commands.scalars import scalar

SIZE_MAX: Final = 8 * 1024 * 1024
NODES_MAX: Final = 200_000
"""How many values aliases may repeat in one document; the size of the file limits the others."""
DEPTH_MAX: Final = 2 * bounds.DEPTH_MAX
"""More than the rules allow, so that they can name the field that is too deep."""
PATH_SHOWN: Final = 5
"""How many names of a path that is too deep an error shows."""
STDIN: Final = "-"

_LOADER: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_VISIBLE: Final = re.compile(r"[^ \t\r\n]")


class UnreadableFile(Exception):
    """A file that is not YAML, or beyond the limits; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest, and the file and line where it starts."""

    source: str
    line: int
    content: Any


def read(source: str) -> Iterator[Document]:
    """All documents of a file, or of standard input for `-`; empty ones are left out.

    Raises:
        UnreadableFile: at the first document that cannot be read.
    """
    name = "standard input" if source == STDIN else source
    text = _text(source, name)
    try:
        yield from _as_json(name, text) or _documents(name, yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise UnreadableFile(f"{name}:{_line(error)}: {_problem(error)}") from None
    except yaml.YAMLError as error:
        raise UnreadableFile(f"{name}: is not YAML: {' '.join(str(error).split())[:200]}") from None


def _text(source: str, name: str) -> str:
    try:
        data = _standard_input() if source == STDIN else _bounded(Path(source))
    except OSError as error:
        raise UnreadableFile(f"{name}: {error.strerror or error}") from None
    if len(data) > SIZE_MAX:
        raise UnreadableFile(f"{name}: is larger than {SIZE_MAX // 1024 // 1024} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFile(f"{name}:{line}: is not UTF-8 text") from None


def _as_json(name: str, text: str) -> list[Document]:
    """JSON objects one after the other; PyYAML rejects some JSON (tabs, surrogate pairs). Empty if it is not JSON."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        return list(_objects(name, text))
    except (ValueError, RecursionError):
        return []  # the YAML reader names the line


def _objects(name: str, text: str) -> Iterator[Document]:
    at, line = 0, 1
    while visible := _VISIBLE.search(text, at):
        line += text.count("\n", at, visible.start())
        content, end = _DECODER.raw_decode(text, visible.start())
        if content is not None:
            yield Document(name, line, content)
        line += text.count("\n", visible.start(), end)
        at = end


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("repeated keys")
    return read


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)


def _standard_input() -> bytes:
    if sys.stdin is None:  # the shell closed it
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


class _Builder:
    """Turns the events of one document into JSON data."""

    def __init__(self, name: str, events: Iterator[yaml.Event]) -> None:
        self._name = name
        self._events = events
        self._anchors: dict[str, Any] = {}
        self._repeated = 0
        self._path: list[str] = []

    def build(self, event: Any, depth: int) -> Any:
        """The value that starts with this event, at most `depth` levels deep."""
        self._require(event, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        value = self._value(event, depth - 1)
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items = enumerate(self._until(yaml.SequenceEndEvent))
            return [self._inside(f"[{index}]", each, depth) for index, each in items]
        return self._mapping(depth)

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for event in self._until(yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._error(event, "has a key that is not plain text")
            key = str(event.value)
            value = self._inside(key, next(self._events), depth)
            if key == "<<" and not event.style:
                merged = self._merged(event, value, merged)
            elif key in mapping:
                raise self._error(event, f"repeats the key {key!r}; write it once")
            else:
                mapping[key] = value
        return {**merged, **mapping}

    def _inside(self, key: str, event: Any, depth: int) -> Any:
        self._path.append(key)
        value = self.build(event, depth)
        self._path.pop()
        return value

    def _merged(self, event: Any, value: Any, sofar: dict[str, Any]) -> dict[str, Any]:
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, dict):
                raise self._error(event, "merges a value that is not a mapping")
            sofar = {**each, **sofar}
        return sofar

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Any:
        if event.anchor not in self._anchors:
            raise self._error(event, f"refers to *{event.anchor}, which is not defined before")
        value = self._anchors[event.anchor]
        size, height = _measured(value)
        self._require(event, depth - height)
        self._repeated += size
        if self._repeated > NODES_MAX:
            raise self._error(event, f"has aliases that repeat more than {NODES_MAX} values")
        return value

    def _require(self, event: yaml.Event, depth: int) -> None:
        if depth <= 0:
            where = ".".join(self._path[:PATH_SHOWN]).replace(".[", "[")
            raise self._error(event, f"{where}…: must not be nested deeper than {bounds.DEPTH_MAX} levels")

    def _until(self, end: type[yaml.Event]) -> Iterator[Any]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _error(self, event: yaml.Event, problem: str) -> UnreadableFile:
        return UnreadableFile(f"{self._name}:{_at(event)}: {problem}")


def _measured(value: Any) -> tuple[int, int]:
    """How many values there are in this one, itself and keys included, and how many levels are below it."""
    if isinstance(value, dict):
        inner, keys = list(value.values()), len(value)
    elif isinstance(value, list):
        inner, keys = value, 0
    else:
        return 1, 0
    measured = [_measured(each) for each in inner]
    height = 1 + max((height for _, height in measured), default=-1)
    return 1 + keys + sum(size for size, _ in measured), height
