"""Reads JSON that a decoder refuses: nested too deep, truncated, or too large to be worth decoding.

Works on bytes, without recursion. Slower than a decoder, so `decode` scans large texts in a thread.
"""

import re
from collections.abc import Iterator
from typing import Final

import orjson

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_COLON: Final = re.compile(rb"\s*:")
_OPENING: Final = b"[{"
_QUOTE: Final = ord('"')

Path = tuple[str, ...]


def cut(text: bytes, levels: int) -> bytes:
    """The same JSON with null in place of everything nested deeper than so many levels."""
    kept: list[bytes] = []
    start = depth = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == _QUOTE:
            continue
        if first in _OPENING:
            if depth == levels:
                kept += [text[start : token.start()], b"null"]
            depth += 1
        else:
            depth -= 1
            if depth == levels:
                start = token.end()
    if depth <= levels:
        kept.append(text[start:])
    return b"".join(kept)


def texts(text: bytes, wanted: frozenset[Path]) -> dict[Path, str]:
    """The strings at the wanted paths of keys; the text may be truncated."""
    found: dict[Path, str] = {}
    for path, value in _strings(text, max(map(len, wanted))):
        if path in wanted and path not in found:
            found[path] = value
            if len(found) == len(wanted):
                break
    return found


def _strings(text: bytes, deepest: int) -> Iterator[tuple[Path, str]]:
    """Every string that is the value of a key, with the path of keys to it, down to a depth."""
    keys = [""] * (deepest + 1)
    depth = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in _OPENING:
            depth += 1
            if depth <= deepest:
                keys[depth] = ""
        elif first != _QUOTE:
            depth -= 1
        elif depth <= deepest:
            value = _string(token.group())
            if _COLON.match(text, token.end()):
                keys[depth] = value
            else:
                yield tuple(keys[1 : depth + 1]), value


def _string(quoted: bytes) -> str:
    try:
        return str(orjson.loads(quoted))
    except orjson.JSONDecodeError:
        return ""
