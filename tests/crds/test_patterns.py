"""The API server's patterns and our parsers read the same language, as far as a pattern can say it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crds import patterns
from crds.invalid import InvalidValue
from crds.values import Cron, DaySet, HourSet, Zone, parse_duration
from crds.zones import names


def matches(pattern: str, text: str) -> bool:
    # In RE2 `$` is the end of the text, in Python also before a last newline.
    return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None


def parses(parse, text: str) -> bool:
    try:
        parse(text)
    except InvalidValue:
        return False
    return True


def words(*parts: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(parts), max_size=7).map("".join)


@settings(max_examples=120)
@given(words("mon", "fri", "sun", "-", ",", " ", "\t", "\n", "Mon", "xyz", "\u00a0"))
def test_days(text):
    assert matches(patterns.DAYS, text) == parses(DaySet.parse_item, text)


@settings(max_examples=120)
@given(words("0", "9", "17", "23", "24", "-", ",", " ", "\n", "09", "٩", "1"))
def test_hours(text):
    assert matches(patterns.HOURS, text) == parses(HourSet.parse_item, text)


@settings(max_examples=120)
@given(words("1", "30", "h", "m", "s", "d", " ", "-", ".", "\n", "٣"))
def test_durations(text):
    amount = 0 if not matches(patterns.DURATION, text) else _seconds(text)
    assert (0 < amount <= 86400) == parses(parse_duration, text)


def _seconds(text: str) -> int:
    return sum(int(n) * {"h": 3600, "m": 60, "s": 1}[unit] for n, unit in re.findall("([0-9]+)([hms])", text))


FIELD = words("*", "*/2", "1", "5", "0", "59", "31", "7", "1-5", ",", "/", "-", "mon", "JAN", "x", "@", "2/3")


@settings(max_examples=120)
@given(st.lists(FIELD, min_size=4, max_size=6).map(" ".join))
def test_what_cron_reads_the_pattern_admits(text):
    if parses(Cron.parse, text):
        assert matches(patterns.CRON, text)


@pytest.mark.parametrize("bad", ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8"])
def test_the_pattern_knows_the_ranges_of_cron(bad):
    assert not matches(patterns.CRON, bad)
    assert not parses(Cron.parse, bad)


def test_every_zone_fits_the_pattern():
    assert all(matches(patterns.TIMEZONE, name) and parses(Zone.parse, name) for name in names())
