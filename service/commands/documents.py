"""Reads manifests from files and standard input as kubectl would: bounded, without surprises, errors with their line.

What is not said in JSON (dates, sexagesimal numbers, repeated keys) is not said here either, so that a manifest means
the same to us as to the API server.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

SIZE_MAX: Final = 8 * 1024 * 1024
NODES_MAX: Final = 200_000
"""Values in one document, those that aliases repeat included."""
DEPTH_MAX: Final = 100
STDIN: Final = "-"

_LOADER: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_BASED: Final = re.compile(r"[-+]?0(?:x[0-9a-fA-F_]+|o?[0-7_]+|b[01_]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_STRING_TAG: Final = "tag:yaml.org,2002:str"


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
        if (whole := _as_json(text)) is not None:
            yield Document(name, 1, whole)
        else:
            yield from _documents(name, yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise Unreadable(f"{name}:{_line(error)}: {_problem(error)}") from None
    except yaml.YAMLError as error:
        raise Unreadable(f"{name}: is not YAML: {' '.join(str(error).split())[:200]}") from None


def _text(source: str, name: str) -> str:
    try:
        data = sys.stdin.buffer.read(SIZE_MAX + 1) if source == STDIN else _bounded(Path(source))
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror or error}") from None
    if len(data) > SIZE_MAX:
        raise Unreadable(f"{name}: is larger than {SIZE_MAX // 1024 // 1024} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{name}:{line}: is not UTF-8 text") from None


def _as_json(text: str) -> Any:
    """One JSON object, which YAML's reader would not always understand (tabs, surrogate pairs); None if it is not."""
    if not text.lstrip().startswith("{") or _depth(text) > DEPTH_MAX:
        return None
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except ValueError:
        return None


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
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def build(self, event: Any, depth: int) -> Any:
        """The value that starts with this event."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._count
        self._spend(event, 1)
        if depth == 0:
            raise self._error(event, f"is nested deeper than {DEPTH_MAX} levels")
        value = self._value(event, depth)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._count - before)
        return value

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return [self.build(each, depth - 1) for each in self._until(yaml.SequenceEndEvent)]
        return self._mapping(depth)

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for event in self._until(yaml.MappingEndEvent):
            key = self._key(event)
            value = self.build(next(self._events), depth - 1)
            if key == "<<" and not event.style:
                merged = self._merged(event, value, merged)
            elif key in mapping:
                raise self._error(event, f"repeats the key {key!r}; write it once")
            else:
                mapping[key] = value
        return {**merged, **mapping}

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error(event, "has a key that is no plain text")
        self._spend(event, 1)
        return str(event.value)

    def _merged(self, event: Any, value: Any, sofar: dict[str, Any]) -> dict[str, Any]:
        sources = value if isinstance(value, list) else [value]
        for each in sources:
            if not isinstance(each, dict):
                raise self._error(event, "merges something that is not a mapping")
            sofar = {**each, **sofar}
        return sofar

    def _alias(self, event: yaml.AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            raise self._error(event, f"refers to *{event.anchor}, which is not defined before")
        value, size = self._anchors[event.anchor]
        self._spend(event, size)
        return value

    def _until(self, end: type[yaml.Event]) -> Iterator[Any]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _spend(self, event: yaml.Event, count: int) -> None:
        self._count += count
        if self._count > NODES_MAX:
            raise self._error(event, f"has more than {NODES_MAX} values; aliases may be multiplying them")

    def _error(self, event: yaml.Event, problem: str) -> Unreadable:
        return Unreadable(f"{self._name}:{_at(event)}: {problem}")


def _scalar(event: yaml.ScalarEvent) -> Any:
    """The value of a plain scalar as kubectl reads it; whatever is quoted or tagged `!!str` is text."""
    text = event.value
    if event.style or event.tag == _STRING_TAG:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    return _number(text)


def _number(text: str) -> Any:
    plain = text.replace("_", "")
    if len(text) > 400:
        return text
    if _DECIMAL.fullmatch(text):
        return int(plain)
    if _BASED.fullmatch(text) and plain[-1] not in "xob":
        sign, digits = (-1, plain[1:]) if plain[0] == "-" else (1, plain.lstrip("+"))
        octal = digits[1:].isdigit()
        return sign * int(digits, 8 if octal else 0)
    if _FLOAT.fullmatch(text):
        number = float(plain)
        # 1e999 is no number in JSON.
        return number if abs(number) != float("inf") else text
    return text
