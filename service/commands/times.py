"""Reads the time that `5spot preview --from` takes."""

import re
from datetime import UTC, date, datetime
from typing import Final

DAYS_MAX: Final = 3660
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})"
)


def first_instant(text: str) -> date:
    """A `datetime` in UTC, or a `date`, which has no time zone yet.

    Raises:
        ValueError: with a sentence that says what to write instead.
    """
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        if _RFC3339.fullmatch(text):
            return datetime.fromisoformat(text.upper()).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} does not exist: {error}") from None
    raise ValueError(f"{text!r} is neither a date such as 2026-03-08 nor a time such as 2026-03-08T00:00:00Z")
