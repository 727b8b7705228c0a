"""Instants as users write them in a spec: RFC 3339, in whole seconds, with a time zone."""

import re
from datetime import UTC, datetime
from typing import Any, Final

from crds import patterns
from crds.invalid import InvalidValue, shown

ALLOWED: Final = (
    "write a time in whole seconds with its zone, such as 2026-11-20T22:00:00Z or 2026-11-20T22:00:00+01:00"
)

_MOMENT: Final = re.compile(patterns.MOMENT)


def parse_moment(text: Any) -> datetime:
    """The instant, in UTC.

    Raises:
        InvalidValue: if it is not one.
    """
    if not isinstance(text, str):
        raise InvalidValue(f"must be a string; {ALLOWED}")
    if not _MOMENT.fullmatch(text):
        raise InvalidValue(f"{shown(text)} is not a time; {ALLOWED}")
    return datetime.fromisoformat(text).astimezone(UTC)
