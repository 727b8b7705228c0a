"""The API server's patterns and our parsers read the same language, as far as a pattern can say it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crds import patterns
from crds.dates import Anniversary, Dates
from crds.invalid import InvalidValue
from crds.timeofday import TimeOfDay
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


@settings(max_examples=200)
@given(words("0", "1", "2", "9", "24", "23", ":", ":00", "59", "60", " ", "\n", "٩"))
def test_times_of_day(text):
    assert matches(patterns.START_TIME, text) == parses(TimeOfDay.parse_start, text)
    assert matches(patterns.END_TIME, text) == parses(TimeOfDay.parse_end, text)


two_digits = st.integers(0, 40).map("{:02}".format)
date_texts = st.builds(
    "{}-{}-{}".format,
    st.sampled_from(["0999", "1900", "2000", "2024", "2026", "2100", "3000"]),
    st.sampled_from(["00", "01", "02", "04", "11", "12", "13"]),
    two_digits,
)


@settings(max_examples=300)
@given(st.one_of(date_texts, words("2024", "-", "02", "29", "1", "/", " ", "\n", "٢")))
def test_dates(text):
    assert matches(patterns.DATES, text) == parses(Dates.parse_item, text)


@settings(max_examples=200)
@given(st.builds("{}-{}".format, two_digits, two_digits))
def test_days_of_a_year(text):
    assert matches(patterns.YEARLY, text) == parses(Anniversary.parse, text)


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
