"""An oracle for schedules: walks minute by minute with Python's own zoneinfo, by the letter of docs/schedules.md.

Shares no code with `crds`: it reads the items and cron fields in its own, naive way, and looks at every minute.
"""

import pkgutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
CRON_WEEK = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
CRON_YEAR = ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

Pair = tuple[datetime, datetime]


@cache
def zone(name: str) -> ZoneInfo:
    """A zone from the tzdata package, whatever the host has."""
    data = pkgutil.get_data("tzdata", f"zoneinfo/{name}")
    assert data is not None
    return ZoneInfo.from_file(BytesIO(data), key=name)


def chosen(items: Sequence[str], circle: Sequence[str]) -> set[str]:
    """What a list of items names, going around the circle from the first end of a range to the last."""
    found = set()
    for part in (part.strip() for item in items for part in item.split(",")):
        first, _, last = part.partition("-")
        at = circle.index(first.strip())
        found.add(circle[at])
        while last and circle[at] != last.strip():
            at = (at + 1) % len(circle)
            found.add(circle[at])
    return found or set(circle)


def weekly(days: Sequence[str], hours: Sequence[str]) -> Callable[[datetime], bool]:
    """Day and hour are tested independently on the local clock."""
    week, day = chosen(days, WEEK), chosen(hours, [str(hour) for hour in range(24)])
    return lambda local: WEEK[local.weekday()] in week and str(local.hour) in day


def cron_field(text: str, low: int, high: int, names: Sequence[str] = ()) -> set[int]:
    """The numbers that a cron field names."""
    found: set[int] = set()
    for term in text.split(","):
        body, _, step = term.partition("/")
        first, _, last = body.partition("-")
        start = low if first == "*" else number(first, names)
        end = high if first == "*" or (step and not last) else number(last or first, names)
        found.update(range(start, end + 1, int(step or 1)))
    return found


def number(text: str, names: Sequence[str]) -> int:
    return list(names).index(text) if text in names else int(text)


def cron_day(text: str) -> Callable[[datetime], bool]:
    _, _, day, month, weekday = text.split()
    days, months = cron_field(day, 1, 31), cron_field(month, 1, 12, CRON_YEAR)
    weekdays = {each % 7 for each in cron_field(weekday, 0, 7, CRON_WEEK)}
    both = day.startswith("*") or weekday.startswith("*")

    def matches(local: datetime) -> bool:
        by_date, by_weekday = local.day in days, local.isoweekday() % 7 in weekdays
        return local.month in months and (by_date and by_weekday if both else by_date or by_weekday)

    return matches


def cron_match(text: str) -> Callable[[datetime], bool]:
    """Whether a minute on the local clock matches an expression."""
    minute, hour, *_ = text.split()
    minutes, hours, day = cron_field(minute, 0, 59), cron_field(hour, 0, 23), cron_day(text)
    return lambda local: local.minute in minutes and local.hour in hours and day(local)


def firings(text: str, zone_name: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """The minutes at which Debian's cron would fire.

    Jobs with a star in minute or hour go by the clock as it is. All others run once for each time on the clock: what a
    change skips runs right after it, what it repeats has run already.
    """
    matches = cron_match(text)
    wildcard = any(field.startswith("*") for field in text.split()[:2])
    place = zone(zone_name)
    # Three hours earlier, to have seen what the clock repeats at the start.
    moment = start.replace(second=0) - timedelta(hours=3)
    latest = moment.astimezone(place).replace(tzinfo=None)
    while moment < end:
        local = moment.astimezone(place).replace(tzinfo=None)
        fires = matches(local) if wildcard else any(matches(minute) for minute in unseen(latest, local))
        if fires and moment >= start:
            yield moment
        latest = max(latest, local)
        moment += MINUTE


def unseen(latest: datetime, local: datetime) -> Iterator[datetime]:
    """The minutes on the clock after the latest one seen so far."""
    while latest < local:
        latest += MINUTE
        yield latest


def weekly_windows(
    days: Sequence[str], hours: Sequence[str], zone_name: str, period: Pair, step: timedelta = MINUTE
) -> list[Pair]:
    """The windows of days and hours, cut to the period."""
    active, place = weekly(days, hours), zone(zone_name)
    moment, pieces = period[0], []
    while moment < period[1]:
        if active(moment.astimezone(place)):
            pieces.append((moment, moment + step))
        moment += step
    return joined(pieces)


def cron_windows(text: str, duration: timedelta, zone_name: str, period: Pair) -> list[Pair]:
    """The windows of a cron expression, cut to the period."""
    start, end = period
    pieces = [(fired, fired + duration) for fired in firings(text, zone_name, start - duration, end)]
    return joined([(max(opens, start), min(closes, end)) for opens, closes in pieces if closes > start])


def joined(pieces: Sequence[Pair]) -> list[Pair]:
    """Pieces that touch or overlap, made one."""
    whole: list[Pair] = []
    for opens, closes in sorted(pieces):
        if whole and opens <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(whole[-1][1], closes))
        else:
            whole.append((opens, closes))
    return whole


def utc(text: str) -> datetime:
    """An instant from ISO text without a zone."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
