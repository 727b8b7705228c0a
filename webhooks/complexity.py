"""How much work a review would be, counted in its bytes before anything is built from them.

Reading JSON costs by the value, not by the byte: three megabytes of text take milliseconds, as many brackets a second.
All scans here run at the speed of C and end as soon as the answer is known.
"""

from typing import Final

VALUES_MAX: Final = 20_000
"""Values in a review, of both objects and all that surrounds them: a hundred times as many as an ordinary one has."""
QUOTES_MAX: Final = 5 * VALUES_MAX
"""Strings have two quotes each, and text that is JSON itself, like kubectl's copy of a manifest, has them escaped."""
_SLICE: Final = 256 * 1024


def most_values(body: bytes, enough: int) -> int:
    """No fewer values than there are, as text may look like values too; counts on to a little beyond `enough` only."""
    found = 0
    for start in range(0, len(body), _SLICE):
        end = start + _SLICE
        # Every value but the first of a list or object follows a comma, and the first one a bracket.
        found += body.count(b",", start, end) + body.count(b"[", start, end) + body.count(b"{", start, end)
        if found > enough:
            break
    return found


def too_complex(body: bytes) -> bool:
    """Whether there are more than `VALUES_MAX` values, or so many quotes that telling text from values takes long."""
    if most_values(body, VALUES_MAX) <= VALUES_MAX:
        return False
    parts = body.split(b'"', QUOTES_MAX)
    if len(parts) > QUOTES_MAX:
        return True
    plain = parts[::2] if b'\\"' not in body else _outside_strings(parts)
    return most_values(b"".join(plain), VALUES_MAX) > VALUES_MAX


def _outside_strings(parts: list[bytes]) -> list[bytes]:
    """What of a text split at its quotes lies between strings; a quote after an odd number of backslashes ends none."""
    plain, inside = [], False
    for part in parts:
        if not inside:
            plain.append(part)
            inside = True
        elif not part.endswith(b"\\") or (len(part) - len(part.rstrip(b"\\"))) % 2 == 0:
            inside = False
    return plain
