"""Reads the times that options take: `--from` of `5spot preview`, `--until` of the commands for overrides."""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
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


_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_LOCAL: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}")


def end_instant(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The instant that `--until` means, in UTC: a time of day is the next one on the user's clock.

    Raises:
        ValueError: with a sentence that says what to write instead.
    """
    try:
        if match := _CLOCK.fullmatch(text):
            return _next(int(match[1]), int(match[2]), now, zone)
        if _LOCAL.fullmatch(text):
            return _instant(datetime.fromisoformat(text.upper()), zone)
        if _RFC3339.fullmatch(text):
            return datetime.fromisoformat(text.upper()).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} does not exist: {error}") from None
    raise ValueError(
        f"{text!r} is neither a time of day such as 22:00, nor a time such as 2026-11-20T22:00 on your clock or "
        "2026-11-20T22:00:00Z"
    )


def _next(hour: int, minute: int, now: datetime, zone: tzinfo | None) -> datetime:
    """The next time that the user's clock shows this: today, maybe a second time, or tomorrow if that has passed."""
    today = now.astimezone(zone).replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None, fold=0)
    showings = (_instant(each, zone) for each in (today, today.replace(fold=1)))
    tomorrow = _instant(today + timedelta(days=1), zone)
    return next((each for each in showings if each > now), tomorrow)


def _instant(local: datetime, zone: tzinfo | None) -> datetime:
    return (local.replace(tzinfo=zone) if zone else local).astimezone(UTC)
