"""Cuts JSON that is nested deeper than the decoder takes, so that such a review can still be judged and answered.

The API server stores objects far deeper than our decoder reads. What lies too deep gives way to a digest of itself: two
equal objects stay equal, and the rest is still much deeper than the rules allow.
"""

import re
from hashlib import sha256
from typing import Final

from crds.bounds import DEPTH_MAX

KEPT_LEVELS: Final = 2 * DEPTH_MAX
TOKENS_MAX: Final = 100_000
"""Brackets and texts that are looked at, so that the worst review costs some 50 ms."""

# An unfinished text counts as one, or each of its escaped quotes would be tried as the start of another.
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]', re.DOTALL)
_OPENING: Final = frozenset(b"[{")
_CLOSING: Final = frozenset(b"]}")


class TooManyTokensError(ValueError):
    """More brackets and texts than we are willing to look at."""


def cut(body: bytes) -> bytes:
    """The same JSON with everything below `KEPT_LEVELS` replaced.

    Raises:
        TooManyTokensError: if there is too much of it.
    """
    kept: list[bytes] = []
    depth = copied = opened = 0
    for number, token in enumerate(_TOKEN.finditer(body)):
        if number == TOKENS_MAX:
            raise TooManyTokensError
        first = body[token.start()]
        if first in _OPENING:
            depth += 1
            if depth == KEPT_LEVELS + 1:
                opened = token.start()
                kept.append(body[copied:opened])
                copied = len(body)
        elif first in _CLOSING:
            if depth == KEPT_LEVELS + 1:
                copied = token.end()
                kept.append(b'"%s"' % sha256(body[opened:copied]).hexdigest().encode())
            depth -= 1
    kept.append(body[copied:])
    return b"".join(kept)
