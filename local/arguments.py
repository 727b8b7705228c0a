"""Values that several commands read from their command lines; a ValueError says what to write instead."""

from datetime import datetime

FASTEST = 100_000


def instant(text: str) -> datetime:
    """A time with its zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"{text!r} is not a time with its zone, such as 2026-03-06T08:55:00Z")
    return moment


def speed(text: str) -> float:
    """A factor for the operator's clock."""
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= FASTEST:
        raise ValueError(f"{text!r} is not a number above 0 and up to {FASTEST}")
    return factor
