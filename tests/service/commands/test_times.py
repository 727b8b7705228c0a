"""The times that options take."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from service.commands.times import end_instant

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 6, 12, 30, tzinfo=UTC)  # 13:30 in Berlin


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("22:00", "2026-03-06T21:00:00+00:00"),
        ("13:31", "2026-03-06T12:31:00+00:00"),
        ("13:30", "2026-03-07T12:30:00+00:00"),
        ("9:05", "2026-03-07T08:05:00+00:00"),
        ("2026-03-20T22:00", "2026-03-20T21:00:00+00:00"),
        ("2026-03-20 22:00", "2026-03-20T21:00:00+00:00"),
        ("2026-04-20T22:00", "2026-04-20T20:00:00+00:00"),
        ("2026-03-20T22:00:00Z", "2026-03-20T22:00:00+00:00"),
        ("2026-03-20T22:00:00+05:30", "2026-03-20T16:30:00+00:00"),
    ],
)
def test_a_time_is_on_the_users_clock_and_tomorrow_if_it_has_passed(text: str, instant: str) -> None:
    assert end_instant(text, NOW, BERLIN).isoformat() == instant


def test_tomorrow_is_on_the_other_side_of_a_change_of_the_clocks() -> None:
    evening = datetime(2026, 3, 28, 22, 0, tzinfo=UTC)  # 23:00 in Berlin, the night the clocks go forward
    assert end_instant("22:00", evening, BERLIN).isoformat() == "2026-03-29T20:00:00+00:00"


@pytest.mark.parametrize(
    ("now", "instant"),
    [
        ("2026-10-25T00:15:00+00:00", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25T00:45:00+00:00", "2026-10-25T01:30:00+00:00"),
        ("2026-10-25T01:30:00+00:00", "2026-10-26T01:30:00+00:00"),
    ],
    ids=["first", "again", "tomorrow"],
)
def test_a_time_that_the_clock_shows_twice_is_the_next_showing(now: str, instant: str) -> None:
    assert end_instant("02:30", datetime.fromisoformat(now), BERLIN).isoformat() == instant


def test_a_time_that_the_clock_skips_is_as_long_after_midnight() -> None:
    night = datetime(2026, 3, 29, 0, 15, tzinfo=UTC)  # 01:15 in Berlin, before the clocks go from 02:00 to 03:00
    assert end_instant("02:30", night, BERLIN).isoformat() == "2026-03-29T01:30:00+00:00"


@pytest.mark.parametrize("text", ["", "24:00", "22", "10pm", "tomorrow", "2026-02-30T22:00", "22:00:00", "2026-03-20"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"22:00|does not exist"):
        end_instant(text, NOW, BERLIN)
