"""Instants and spans in the words of a person."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from crds.values import Zone
from service.fleet import times

NOW = datetime(2026, 3, 6, 12, 0, tzinfo=UTC)
LONDON = Zone.parse("Europe/London")


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=4, seconds=5), "4 min 5 s"),
        (timedelta(hours=4), "4 h"),
        (timedelta(hours=4, seconds=9), "4 h"),
        (timedelta(days=3, hours=4, minutes=9), "3 d 4 h"),
        (timedelta(days=-3), "3 d"),
    ],
)
def test_a_span_has_its_two_largest_units(length: timedelta, words: str) -> None:
    assert times.span(length) == words


def test_an_instant_is_ahead_or_past() -> None:
    assert times.relative(NOW + timedelta(hours=1), NOW) == "in 1 h"
    assert times.relative(NOW - timedelta(hours=1), NOW) == "1 h ago"
    assert times.relative(NOW, NOW) == "now"


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (timedelta(hours=6), "18:00"),
        (timedelta(days=1), "Sat 12:00"),
        (timedelta(days=9), "15 Mar 12:00"),
        (timedelta(days=400), "10 Apr 2027 12:00"),
    ],
)
def test_a_clock_shows_as_little_as_is_clear(ahead: timedelta, words: str) -> None:
    assert times.clock(NOW + ahead, NOW, UTC) == words


def test_the_clock_of_a_schedule_is_its_own() -> None:
    summer = datetime(2026, 7, 1, 17, 0, tzinfo=UTC)
    assert times.clock_of(LONDON, summer, summer) == "18:00"
    assert times.same_clock(LONDON, summer, timezone(timedelta(hours=1)))
    assert not times.same_clock(LONDON, summer, UTC)


def test_an_instant_is_shown_on_the_schedules_clock_and_on_the_users_if_that_differs() -> None:
    evening, new_york = datetime(2026, 3, 6, 22, tzinfo=UTC), timezone(timedelta(hours=-5))
    assert times.both(LONDON, evening, NOW, new_york) == "22:00 Europe/London, 17:00 here"
    assert times.both(LONDON, evening + timedelta(hours=3), NOW, new_york) == "Sat 01:00 Europe/London, 20:00 here"
    assert times.both(LONDON, evening, NOW, UTC) == "22:00 Europe/London"
