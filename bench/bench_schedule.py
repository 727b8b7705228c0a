"""How fast schedules answer: `next_boundary` for 10,000 schedules, and what laying them out costs.

Run it with `python -m bench.bench_schedule`; it exits 1 if an answer misses its budget: one second, and 1.5 s where a
third of the schedules have calendars of 200 dates.
"""

import argparse
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from crds import clockwindows, dates, days, firings, recurrence, schedule, zones
from crds.calendars import CalendarDates, CalendarEvent, NamedDays
from crds.clockwindows import ClockWindow
from crds.exceptions import ExceptionRule, Exceptions, State
from crds.schedule import Schedule
from crds.values import Cron, DaySet, HourSet

BUDGET = 1.0
CALENDAR_BUDGET = 1.5
CALENDARS = "a third with calendars"
NOW = datetime(2026, 11, 16, 12, 34, 56, tzinfo=UTC)
TWENTY_ZONES = (
    *("UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "America/Chicago"),
    *("America/Denver", "America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo", "Africa/Cairo"),
    *("Africa/Casablanca", "Asia/Tokyo", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Gaza", "Australia/Sydney"),
    *("Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham"),
)
DAYS = ("mon-fri", "sat-sun", "fri-mon", "mon,wed,fri", "tue-thu", "sun")
HOURS = ("9-17", "22-6", "0-9,17-23", "8", "6-11,13-18")

ALWAYS = "always open"

Layout = Callable[[str], Schedule]
"""Lays a schedule out in a zone, from values that are parsed already."""


def weekly(number: int) -> Layout:
    week, day = DaySet.parse([DAYS[number % len(DAYS)]]), HourSet.parse([HOURS[number % len(HOURS)]])
    return lambda zone: Schedule.weekly(week, day, zone)


def dense(number: int) -> Layout:
    first = number % 9
    text, duration = (
        ("* 9-17 * * mon-fri", timedelta(minutes=1)),
        (f"* {first}-{first + 8} * * mon-fri", timedelta(minutes=1)),
        (f"*/{number % 7 + 2} {first}-17 * * *", timedelta(minutes=30)),
        (f"{number % 60} */2 * * mon-sat", timedelta(hours=number % 5 + 1)),
        (f"{number % 60} {first} * * tue,thu", timedelta(days=3)),
    )[number % 5]
    cron = Cron.parse(text)
    return lambda zone: Schedule.from_cron(cron, duration, zone)


def yearly(number: int) -> Layout:
    cron = Cron.parse(f"{number % 60} {number % 24} {number % 28 + 1} {number % 12 + 1} *")
    return lambda zone: Schedule.from_cron(cron, timedelta(hours=8), zone)


def always(number: int) -> Layout:
    if number % 2:
        return lambda zone: Schedule.weekly(DaySet.EVERY, HourSet(), zone)
    cron, duration = Cron.parse(f"*/{number % 9 + 1} * * * *"), timedelta(hours=3, seconds=number % 600)
    return lambda zone: Schedule.from_cron(cron, duration, zone)


def windows(number: int) -> Layout:
    starts = number * 7 % 1440
    night = ClockWindow.of(0b11111, starts, (starts + 600 + number % 300) % 1440)
    morning = ClockWindow.of(0b1100000, 540, 765)
    return lambda zone: Schedule.from_windows([night, morning], zone)


def calendar(number: int) -> CalendarDates:
    """200 dates in ten years, a few of them events whose dates depend on the zone."""
    first = dates.day_of(NOW.date()) - 400 + number
    named = tuple(NamedDays(first + 18 * each, first + 18 * each, f"holiday {each}") for each in range(190))
    noon = 86400 * first + 12 * 3600
    events = tuple(CalendarEvent(noon + 86400 * 91 * each, noon + 86400 * 91 * each + 50_000) for each in range(10))
    return CalendarDates(named, (dates.Anniversary(12, 25),), events, first + 4000)


SHARED = [calendar(number) for number in range(50)]
"""Calendars are shared: many machines keep the same holidays."""


def excepted(number: int) -> Layout:
    plain, known = (weekly, windows, dense)[number % 3](number), SHARED[number % len(SHARED)]
    state = State.OPEN if number % 5 == 0 else State.CLOSED

    def lay_out(zone: str) -> Schedule:
        made = plain(zone)
        own = dates.Dates.parse_item("2026-12-28/2027-01-01")
        rules = (ExceptionRule(dates.Either(own), State.OPEN), ExceptionRule(known.in_zone(made.zone), state))
        return made.excepted(Exceptions(rules))

    return lay_out


MIXES: dict[str, tuple[Callable[[int], Layout], ...]] = {
    "a third of each": (weekly, dense, yearly),
    "days and hours": (weekly,),
    "dense or overlapping cron": (dense,),
    "once a year": (yearly,),
    ALWAYS: (always,),
    "windows to the minute": (windows,),
    CALENDARS: (windows, weekly, excepted),
}


def parsed(mix: Sequence[Callable[[int], Layout]], size: int) -> list[Layout]:
    return [mix[number % len(mix)](number // len(mix)) for number in range(size)]


def laid_out(layouts: Iterable[Layout], names: Sequence[str]) -> list[Schedule]:
    return [layout(names[number % len(names)]) for number, layout in enumerate(layouts)]


def forget() -> None:
    """Empty every cache that laying out fills, so that the next run starts as a fresh process does."""
    for cached in (recurrence.hour_ranges, firings.shape, days.widest_gap, schedule.open_for_good_since, zones.load):
        cached.cache_clear()
    clockwindows.shortest_run.cache_clear()


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(name: str, size: int) -> bool:
    """Print one line; whether the answers came within the budget."""
    layouts = parsed(MIXES[name], size)
    forget()
    schedules: list[Schedule] = []
    cold = timed(lambda: schedules.extend(laid_out(layouts, TWENTY_ZONES)))
    answers: list[datetime | None] = []
    first = timed(lambda: answers.extend(each.next_boundary(NOW) for each in schedules))
    if any((answer is None) != (name == ALWAYS) for answer in answers):
        raise AssertionError(f"{name}: None means always open, and nothing else")
    covers = timed(lambda: [each.covers(NOW) for each in schedules])
    print(f"{name:28}{cold:12.3f}{first:16.3f}{covers:12.3f}")
    return first < (CALENDAR_BUDGET if name == CALENDARS else BUDGET) * size / 10_000


def memory(size: int) -> None:
    """Schedules of every kind in all zones there are."""
    layouts, names = parsed((weekly, dense, yearly, always, windows, excepted), size), sorted(zones.names())
    forget()
    tracemalloc.start()
    schedules = laid_out(layouts, names)
    for each in schedules:
        each.next_boundary(NOW)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"memory of {len(schedules)} schedules in {len(names)} zones: {held / 2**20:.1f} MiB (process {peak:.0f} MiB)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bench_schedule", description=__doc__)
    parser.add_argument("--size", type=int, default=10_000, help="number of schedules (default: %(default)s)")
    size = parser.parse_args().size
    print(f"{size} schedules in {len(TWENTY_ZONES)} zones; seconds of one core")
    print(f"budget for next_boundary {BUDGET} s, with calendars {CALENDAR_BUDGET} s")
    print(f"{'':28}{'lay out':>12}{'next_boundary':>16}{'covers':>12}")
    met = [measure(name, size) for name in MIXES]
    memory(size)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
