"""From bytes on the wire to plain dicts; called by the client only."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import orjson

from service.kube.errors import Unavailable, from_status

Object = dict[str, Any]
# etcd stores no object larger than 1.5 MB by default.
_LINE_LIMIT = 16 * 1024 * 1024


class WatchEvent(NamedTuple):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream, however its chunks were cut."""
    parts: list[bytes] = []  # of a line whose end has not come yet
    held = 0
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*parts, line]) if parts else line
            parts, held = [], 0
        if rest:
            parts.append(rest)
            held += len(rest)
        if held > _LINE_LIMIT:
            raise Unavailable(f"a watch event is longer than {_LINE_LIMIT} bytes")


def event(line: bytes, what: str) -> WatchEvent:
    """One line of a watch; an ERROR line is raised as the error it describes."""
    change = decoded(line)
    kind, found = change.get("type"), change.get("object")
    if not isinstance(kind, str) or not isinstance(found, dict):
        raise Unavailable(f"{what}: the server sent something that is no event")
    if kind == "ERROR":
        raise from_status(found, what=what)
    return WatchEvent(kind, found)


def decoded(body: bytes) -> Object:
    """The JSON object in an answer."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unavailable(f"the answer is not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise Unavailable("the answer is not a JSON object")
    return answer
