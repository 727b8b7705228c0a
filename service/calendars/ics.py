"""Reads calendars in the iCalendar format. Only the worker imports this: the text may be hostile.

What is wrong is said in our own words: the text of a calendar is never quoted, as others may read the message.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import icalendar
import recurring_ical_events  # type: ignore[import-untyped]

FINER: Final = frozenset({"HOURLY", "MINUTELY", "SECONDLY"})
FINER_PARTS: Final = ("BYHOUR", "BYMINUTE", "BYSECOND")
TELLING: Final = frozenset(
    {"DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID", "STATUS", "UID"}
)
"""What says when an event is. The library passes over what it cannot read, we may not."""
IN_A_ZONE: Final = ("DTSTART", "DTEND", "RECURRENCE-ID", "RDATE", "EXDATE")
ONCE: Final = ("DTSTART", "DTEND", "DURATION", "RECURRENCE-ID", "STATUS", "UID", "SEQUENCE")
"""What an event has once at most."""
DEPTH_MAX: Final = 10
BYTE_ORDER_MARK: Final = "\ufeff"
"""Some programs begin their exports with it."""

DAY_SECONDS: Final = 86400

_EPOCH: Final = date(1970, 1, 1).toordinal()
EARLIEST: Final = date.min + timedelta(days=4)
LATEST: Final = date.max - timedelta(days=3)
"""The library reads some days around a period, which have to exist."""


class BrokenCalendar(ValueError):
    """A calendar that cannot be used; the message says why."""


def dates_of(text: str, first: date, last: date) -> tuple[list[list[Any]], list[list[Any]]]:
    """Days and timed events of all calendars in the text that touch the period, cut to some days around it.

    Days come as first, last and name; floating times have the date that they say. Events come as begin and end in Unix
    time, and name.

    Raises:
        BrokenCalendar: if it is not a calendar, or one that recurs more often than daily.
    """
    days: list[list[Any]] = []
    events: list[list[Any]] = []
    # Wider than the period, as the dates of an event differ from zone to zone.
    start = max(first, EARLIEST) - timedelta(days=2)
    end = min(last, LATEST) + timedelta(days=3)
    for calendar in _calendars(text):
        for occurrence in _occurrences(calendar, start, end):
            _sort_in(occurrence, days, events)
    # An event of millennia would be laid out as far as it goes, at each change of the clock.
    earliest, latest = _day(start), _day(end)
    return _cut(days, earliest, latest), _cut(events, earliest * DAY_SECONDS, latest * DAY_SECONDS)


def _cut(found: list[list[Any]], earliest: int, latest: int) -> list[list[Any]]:
    return [[*(min(max(each, earliest), latest) for each in ends), name] for *ends, name in found]


def _calendars(text: str) -> list[Any]:
    text = text.removeprefix(BYTE_ORDER_MARK)
    unfinished = _unfinished(text)
    try:
        found = icalendar.Calendar.from_ical(text, multiple=True)
    except (ValueError, KeyError, IndexError, AttributeError, TypeError):
        raise BrokenCalendar("is not a calendar in the iCalendar format (RFC 5545)") from None
    if unfinished:
        raise BrokenCalendar("breaks off within a VCALENDAR; its END line is missing")
    if not found:
        raise BrokenCalendar("holds no VCALENDAR")
    for each in found:
        _check(each)
        # No part of the standard; the library would move times without a zone into this one.
        each.pop("X-WR-TIMEZONE", None)
    return list(found)


def _unfinished(text: str) -> bool:
    """Whether the text breaks off within a component, which the library drops; not to be nested too deeply either."""
    depth = 0
    for line in text.split("\n"):
        if line[:6].upper() == "BEGIN:":
            depth += 1
        elif line[:4].upper() == "END:":
            depth -= 1
        if depth > DEPTH_MAX:
            raise BrokenCalendar(f"nests components deeper than {DEPTH_MAX} levels")
    return depth > 0


def _check(calendar: Any) -> None:
    if getattr(calendar, "name", "") != "VCALENDAR":
        raise BrokenCalendar("must begin with BEGIN:VCALENDAR")
    events = calendar.walk("VEVENT")
    for event in events:
        _check_event(event)
    _check_uids(events)


def _check_event(event: Any) -> None:
    if any(str(name).upper() in TELLING for name, _ in event.errors):
        raise BrokenCalendar("has an event whose times or rules cannot be read")
    if "EXRULE" in event:
        raise BrokenCalendar("has an event with an EXRULE, which is not understood; use EXDATE")
    for name in ONCE:
        if len(_listed(event, name)) > 1:
            raise BrokenCalendar(f"has an event with more than one {name}")
    for name in IN_A_ZONE:
        if any(_is_in_no_zone(each) for each in _listed(event, name)):
            raise BrokenCalendar("has an event in a time zone that is neither known nor defined in the calendar")
    if _ends_before_it_begins(event):
        raise BrokenCalendar("has an event that ends before it begins")
    for rule in _listed(event, "RRULE"):
        _check_rule(rule)


def _check_uids(events: list[Any]) -> None:
    """The library takes events of one UID for versions of the same one, and keeps only the latest by its SEQUENCE."""
    first: dict[tuple[str, ...], Any] = {}
    for event in events:
        if "UID" in event:
            version = tuple(str(event.get(name, "")) for name in ("UID", "SEQUENCE")) + _written(event, "RECURRENCE-ID")
            other = first.setdefault(version, event)
            if other is not event and any(_written(other, name) != _written(event, name) for name in TELLING):
                raise BrokenCalendar("has different events with the same UID; give each its own")


def _listed(event: Any, name: str) -> list[Any]:
    found = event.get(name, [])
    return found if isinstance(found, list) else [found]


def _written(event: Any, name: str) -> tuple[str, ...]:
    """All values of a property with their parameters, as they can be compared."""
    return tuple(f"{sorted(each.params.items())}{each.to_ical()}" for each in _listed(event, name))


def _is_in_no_zone(given: Any) -> bool:
    """Whether a time names a zone that the library passed over: it would count as floating."""
    if given.params.get("TZID") is None:
        return False
    moments = (getattr(each, "dt", None) for each in getattr(given, "dts", [given]))
    begins = (moment[0] if isinstance(moment, tuple) else moment for moment in moments)  # a period has an end too
    return any(isinstance(moment, datetime) and moment.tzinfo is None for moment in begins)


def _ends_before_it_begins(event: Any) -> bool:
    """Whether the library would change beginning and end, so that the date on which the event begins got lost."""
    if "DURATION" in event:
        return bool(event["DURATION"].dt < timedelta(0))
    begins, ends = (getattr(event.get(name), "dt", None) for name in ("DTSTART", "DTEND"))
    if not isinstance(begins, date) or not isinstance(ends, date):
        return False
    if not isinstance(begins, datetime) or not isinstance(ends, datetime):
        return _day(ends) < _day(begins)
    if begins.tzinfo is None or ends.tzinfo is None:
        return ends.replace(tzinfo=None) < begins.replace(tzinfo=None)
    return ends < begins


def _check_rule(rule: Any) -> None:
    frequencies = {str(each).upper() for each in rule.get("FREQ", [])}
    if not frequencies:
        raise BrokenCalendar("has an event whose RRULE has no FREQ")
    if any(int(each) < 1 for each in rule.get("INTERVAL", [])):
        raise BrokenCalendar("has an event whose RRULE has an INTERVAL below 1")
    if frequencies & FINER or any(len(rule.get(part, [])) > 1 for part in FINER_PARTS):
        raise BrokenCalendar("has an event that recurs more often than daily; only DAILY and coarser are allowed")


def _occurrences(calendar: Any, start: date, end: date) -> Iterator[Any]:
    try:
        yield from recurring_ical_events.of(calendar, components=["VEVENT"]).between(start, end)
    except OverflowError:
        raise BrokenCalendar("has an event or a rule that reaches thousands of years; give it an earlier end") from None
    except (ValueError, KeyError, IndexError, AttributeError, TypeError):
        raise BrokenCalendar("has an event whose times or rules make no sense") from None


def _sort_in(event: Any, days: list[list[Any]], events: list[list[Any]]) -> None:
    if str(event.get("STATUS", "")).upper() == "CANCELLED":
        return
    begins, ends, name = event.start, event.end, ", ".join(map(str, _listed(event, "SUMMARY")))[:256]
    if not isinstance(begins, datetime):
        days.append([_day(begins), max(_day(begins), _day(ends) - 1), name])
    elif begins.tzinfo is None:
        latest = max(begins, ends - timedelta(microseconds=1))
        days.append([_day(begins), _day(latest), name])
    else:
        events.append([_seconds(begins), _seconds(ends), name])


def _day(given: date) -> int:
    return given.toordinal() - _EPOCH


def _seconds(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp())
