"""Instants and spans of time in the words of a person: `in 4 h 27 min`, `Fri 18:00`."""

from datetime import datetime, timedelta, tzinfo
from typing import Final

from crds.values import Zone

_WEEKDAY_WITHIN: Final = timedelta(days=6)
_YEAR_WITHIN: Final = timedelta(days=300)
_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def span(length: timedelta) -> str:
    """Its two largest units: `3 d 4 h`, `4 h 27 min`, `12 s`; below a second, `0 s`."""
    seconds = int(abs(length).total_seconds())
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append((count, unit))
    shown = [f"{count} {unit}" for count, unit in parts[:2] if count]
    return " ".join(shown) or "0 s"


def relative(at: datetime, now: datetime) -> str:
    """`in 4 h 27 min` or `3 d 4 h ago`."""
    if abs(at - now) < timedelta(seconds=1):
        return "now"
    return f"in {span(at - now)}" if at > now else f"{span(now - at)} ago"


def clock(at: datetime, now: datetime, zone: tzinfo | None = None) -> str:
    """An instant on the clock of the person who asks, as short as is clear: `18:00`, `Fri 18:00`, `24 Dec 18:00`."""
    return _form(at.astimezone(zone), now.astimezone(zone))


def clock_of(schedule_zone: Zone, at: datetime, now: datetime) -> str:
    """The same on the clock of a schedule."""
    return _form(_local(schedule_zone, at), _local(schedule_zone, now))


def both(schedule_zone: Zone, at: datetime, now: datetime, zone: tzinfo | None = None) -> str:
    """An instant on both clocks, if they differ: `Fri 18:00 Europe/London, Fri 13:00 here`."""
    there = f"{clock_of(schedule_zone, at, now)} {schedule_zone}"
    return there if same_clock(schedule_zone, at, zone) else f"{there}, {clock(at, now, zone)} here"


def same_clock(schedule_zone: Zone, at: datetime, zone: tzinfo | None = None) -> bool:
    """Whether the person's clock and the schedule's show the same at an instant."""
    offset = at.astimezone(zone).utcoffset() or timedelta(0)
    return offset == timedelta(seconds=_offset(schedule_zone, at))


def _form(at: datetime, now: datetime) -> str:
    if at.date() == now.date():
        return f"{at:%H:%M}"
    distance = abs(at - now)
    if distance < _WEEKDAY_WITHIN:
        return f"{at:%a %H:%M}"
    return f"{at:%d %b %H:%M}" if distance < _YEAR_WITHIN else f"{at:%d %b %Y %H:%M}"


def _local(zone: Zone, at: datetime) -> datetime:
    return at + timedelta(seconds=_offset(zone, at))


def _offset(zone: Zone, at: datetime) -> int:
    return zone.span(int(at.timestamp())).offset
