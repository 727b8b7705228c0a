"""A second oracle, for windows and exceptions: walks minute by minute and remembers the latest time on the clock.

Shares no code with `crds`: times, days and dates are read in its own, naive way, and every minute is looked at.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from tests.crds.brute_force import MINUTE, WEEK, Pair, chosen, cron_match, joined, unseen, weekly, zone

Rule = tuple[list[str], str]
"""The dates, ranges and days of every year (`12-25`) of an exception, and its state."""
Beginnings = dict[tuple[int, int], list[tuple[set[int], timedelta]]]
"""By hour and minute of the clock: the days of the week on which a window begins, and its end after midnight."""
FIRINGS_RUN_UP = timedelta(days=9)
"""A firing may have opened a window that long before the period: they last up to seven days."""
RUN_UP = timedelta(days=3)
"""A window by the clock ends within a day, or two where the clock skips one."""


class Minute(NamedTuple):
    """One minute, what the clock shows, the latest that it has shown so far, and the times that are new to it."""

    moment: datetime
    local: datetime
    latest: datetime
    reached: tuple[datetime, ...]


class Exceptions:
    """The first rule that names a date decides."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = [([each.split("/") for each in dates], state) for dates, state in rules]
        self._states: dict[date, str] = {}

    def state(self, moment: datetime) -> str:
        day = moment.date()
        if day not in self._states:
            self._states[day] = self._read(day.isoformat())
        return self._states[day]

    def _read(self, text: str) -> str:
        for ranges, state in self.rules:
            if any(ends[0] <= text <= ends[-1] or ends == [text[5:]] for ends in ranges):
                return state
        return ""


def walk(zone_name: str, period: Pair, run_up: timedelta = RUN_UP) -> Sequence[Minute]:
    return _walked(zone_name, period[0] - run_up, period[1])


@lru_cache(maxsize=32)
def _walked(zone_name: str, start: datetime, end: datetime) -> Sequence[Minute]:
    """Remembered, as examples come to the same few places again and again, and clocks are slow to ask."""
    return tuple(_minutes(zone_name, start, end))


def _minutes(zone_name: str, start: datetime, end: datetime) -> Iterator[Minute]:
    place, moment = zone(zone_name), start
    latest = (moment - MINUTE).astimezone(place).replace(tzinfo=None)
    while moment < end:
        local = moment.astimezone(place).replace(tzinfo=None)
        reached = tuple(unseen(latest, local))
        latest = max(latest, local)
        yield Minute(moment, local, latest, reached)
        moment += MINUTE


def windows(entries: Sequence[dict], rules: Sequence[Rule], zone_name: str, period: Pair) -> list[Pair]:
    """The windows of `schedule.windows` with exceptions, cut to the period."""
    exceptions, begins, ends = Exceptions(rules), beginnings(entries), list[datetime]()
    pieces = []
    for minute in walk(zone_name, period):
        if exceptions.state(minute.local) != "Closed":
            ends += [end for time in minute.reached for end in ends_of(begins, time)]
        ends = [end for end in ends if end > minute.latest]
        if ends or exceptions.state(minute.latest) == "Open":
            pieces.append(minute.moment)
    return cut(pieces, period)


def beginnings(entries: Sequence[dict]) -> Beginnings:
    """The windows that begin at each time of the clock."""
    found: Beginnings = {}
    for entry in entries:
        (hour, minute), (last_hour, last_minute) = (map(int, entry[end].split(":")) for end in ("from", "to"))
        weekdays = {WEEK.index(day) for day in chosen(entry.get("days", []), WEEK)}
        end = timedelta(hours=last_hour, minutes=last_minute)
        found.setdefault((hour, minute), []).append((weekdays, end))
    return found


def ends_of(begins: Beginnings, time: datetime) -> Iterator[datetime]:
    """The ends, by the clock, of the windows that begin at a time of the clock."""
    for weekdays, after_midnight in begins.get((time.hour, time.minute), ()):
        if time.weekday() in weekdays:
            end = time.replace(hour=0, minute=0) + after_midnight
            yield end if end > time else end + timedelta(days=1)


def hours(days: Sequence[str], items: Sequence[str], rules: Sequence[Rule], zone_name: str, period: Pair) -> list[Pair]:
    """The windows of days and hours with exceptions, cut to the period."""
    active, exceptions = weekly(days, items), Exceptions(rules)
    return open_minutes(lambda minute: active(minute.local), exceptions, zone_name, period)


def open_minutes(active: Callable[[Minute], bool], exceptions: Exceptions, zone_name: str, period: Pair) -> list[Pair]:
    pieces = []
    for minute in walk(zone_name, period):
        by_schedule = active(minute) and exceptions.state(minute.local) != "Closed"
        if by_schedule or exceptions.state(minute.latest) == "Open":
            pieces.append(minute.moment)
    return cut(pieces, period)


def cron(text: str, duration: timedelta, rules: Sequence[Rule], zone_name: str, period: Pair) -> list[Pair]:
    """The windows of cron with exceptions, cut to the period; a firing that the clock skips comes right after it."""
    matches, exceptions = cron_match(text), Exceptions(rules)
    wildcard = any(field.startswith("*") for field in text.split()[:2])
    pieces: list[Pair] = []
    for minute in walk(zone_name, period, FIRINGS_RUN_UP):
        fires = matches(minute.local) if wildcard else any(map(matches, minute.reached))
        if fires and exceptions.state(minute.local) != "Closed":
            pieces.append((minute.moment, minute.moment + duration))
        if exceptions.state(minute.latest) == "Open":
            pieces.append((minute.moment, minute.moment + MINUTE))
    start, end = period
    return joined([(max(opens, start), min(closes, end)) for opens, closes in pieces if closes > start])


def cut(minutes: Sequence[datetime], period: Pair) -> list[Pair]:
    return joined([(each, each + MINUTE) for each in minutes if each >= period[0]])


def local_day(zone_name: str, moment: datetime) -> date:
    """The date that the clock shows."""
    return moment.astimezone(zone(zone_name)).date()


def midnight(text: str) -> datetime:
    """The beginning of a date in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
