"""Decodes the bytes of answers and watch events to plain dicts; called by the client only.

An object that cannot be decoded breaks neither its watch nor its list: what is nested too deep is cut off, and of an
object that is too large only the identity is read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from service.kube import scan
from service.kube.errors import Unavailable, from_status

Object = dict[str, Any]
Answer = TypeVar("Answer")
LINE_BYTES: Final = 16 * 1024 * 1024
"""etcd stores no object larger than 1.5 MB by default; as JSON it can be several times as long."""
ENDLESS: Final = 16
"""A line this many times longer than the limit is treated as endless: the server is broken or hostile."""
LEVELS: Final = 400
"""Less than orjson decodes (1,024), more than it encodes (254): the cache notices objects that are too deep to keep."""
_SCANNED_IN_LOOP_BYTES: Final = 16 * 1024
_NAMES: Final = ("name", "namespace", "uid", "resourceVersion")
_OF_EVENT: Final = ("object", "metadata")
_OF_ITEM: Final = ("items", "", "metadata")
_OF_LIST: Final = ("metadata",)


class WatchEvent(NamedTuple):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object
    too_large: str = ""
    """Why the object has no more than its identity; empty if it is complete."""


class Line(NamedTuple):
    """A line of a watch; `text` is only its beginning if the line is longer than the limit."""

    text: bytes
    whole: bool = True


async def lines(chunks: AsyncIterator[bytes], most: int = LINE_BYTES) -> AsyncIterator[Line]:
    """The lines of a stream, however it is split into chunks; at most `most` bytes of each are kept."""
    parts: list[bytes] = []  # of a line that is not complete yet
    size = 0
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        del chunk  # it may take hours until the next one comes, and chunk and lines would wait with it
        ended.reverse()
        while ended:
            last = ended.pop()
            yield _line([*parts, last], size + len(last), most)
            parts = []
            size = 0
        if rest and size <= most:
            parts.append(rest)
        size += len(rest)
        if size > ENDLESS * most:
            raise Unavailable(f"a watch event is longer than {ENDLESS * most} bytes")


def _line(parts: list[bytes], size: int, most: int) -> Line:
    text = parts[0] if len(parts) == 1 else b"".join(parts)
    return Line(text) if size <= most else Line(text[:most], whole=False)


async def event(line: Line, what: str, values: int | None = None) -> WatchEvent:
    """One line of a watch; an ERROR line is raised as the error it describes."""
    if not line.whole or too_many(line.text, values):
        return await _scanned(_named_event, line.text)
    change = await decoded(line.text)
    kind = change.get("type")
    found = change.get("object")
    if not isinstance(kind, str) or not isinstance(found, dict):
        raise Unavailable(f"{what}: the server sent something that is not a watch event")
    if kind == "ERROR":
        raise from_status(found, what=what)
    return WatchEvent(kind, found)


async def decoded(body: bytes) -> Object:
    """The JSON object in an answer, without what is nested deeper than `LEVELS`."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = await _scanned(_cut, body)
    if not isinstance(answer, dict):
        raise Unavailable("the answer is not a JSON object")
    return answer


async def named_item(body: bytes) -> Object:
    """A list of one item that is too large to decode: the metadata of the list, and the identity of the item."""
    return await _scanned(_named_item, body)


def too_many(text: bytes, values: int | None) -> bool:
    """Whether a text has more values than allowed, by counting commas; every further value follows one."""
    return values is not None and text.count(b",") > values


async def _scanned(scanner: Callable[[bytes], Answer], text: bytes) -> Answer:
    """Scans large texts in a thread: a scan of megabytes would block the event loop for too long."""
    return scanner(text) if len(text) < _SCANNED_IN_LOOP_BYTES else await asyncio.to_thread(scanner, text)


def _cut(body: bytes) -> Any:
    try:
        return orjson.loads(scan.cut(body, LEVELS))
    except orjson.JSONDecodeError as error:
        raise Unavailable(f"the answer is not JSON: {error}") from error


def _named_event(text: bytes) -> WatchEvent:
    of_object = {(*_OF_EVENT, name): name for name in _NAMES}
    found = scan.texts(text, frozenset({("type",), *of_object}))
    identity = {name: found[path] for path, name in of_object.items() if path in found}
    return WatchEvent(found.get(("type",), ""), {"metadata": identity}, f"it is {len(text)} bytes long or longer")


def _named_item(body: bytes) -> Object:
    of_item = {(*_OF_ITEM, name): name for name in _NAMES}
    of_list = {(*_OF_LIST, name): name for name in ("resourceVersion", "continue")}
    found = scan.texts(body, frozenset({*of_item, *of_list}))
    identity = {name: found[path] for path, name in of_item.items() if path in found}
    listed = {name: found[path] for path, name in of_list.items() if path in found}
    return {"metadata": listed, "items": [{"metadata": identity}]}
