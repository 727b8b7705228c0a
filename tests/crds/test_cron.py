"""Which cron expressions are read, and which errors users get for the others."""

import re
from datetime import UTC, datetime

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from crds.cron import Cron
from crds.invalid import InvalidValue

SEARCH = settings(max_examples=200, deadline=None, derandomize=True, database=None)


def refusal(read, *given: object) -> str:
    with pytest.raises(InvalidValue) as caught:
        read(*given)
    return caught.value.message


def accepted(read, text: str) -> bool:
    try:
        read(text)
    except InvalidValue:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *",
        "0 9 * * mon-fri",
        "*/15 8-18/2 1,15 jan-mar,dec 0",
        "5/20 * * * *",
        "0 0 * * 7",
        "0 0 * * SUN",
        "  0\t0 * *  1 ",
        "00 09 01 * *",
        "0 0 29 2 *",
        "0 0 31 * *",
        "0 0 30 2 mon",
        "0 0 1-31 * fri",
        "59 23 31 12 6",
        "*/90 * * * *",
        "0 0 * * 5-7",
    ],
)
def test_cron_expressions_are_read_as_cronsim_reads_them(text):
    ours = Cron.parse(text)
    theirs = CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    assert {minute for minute in range(60) if ours.minutes >> minute & 1} == theirs.minutes
    assert {hour for hour in range(24) if ours.hours >> hour & 1} == theirs.hours
    assert {day for day in range(32) if ours.calendar.days >> day & 1} == theirs.days
    assert {month for month in range(13) if ours.calendar.months >> month & 1} == theirs.months
    weekdays = {day for day in theirs.weekdays if isinstance(day, int)}
    assert weekdays == theirs.weekdays
    assert {day for day in range(7) if ours.calendar.weekdays >> day & 1} == {(day - 1) % 7 for day in weekdays}
    assert ours.calendar.either != theirs.day_and


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("0 * * * * *", "no seconds field"),
        ("@daily", "@daily are not supported"),
        ("60 * * * *", 'minute: "60"'),
        ("* 24 * * *", 'hour: "24"'),
        ("* * 0 * *", 'day of month: "0"'),
        ("* * * 13 *", 'month: "13"'),
        ("* * * * 8", 'day of week: "8"'),
        ("* * * * fri-sun", "runs backwards"),
        ("* 22-6 * * *", "for example 22-23,0-6"),
        ("*/0 * * * *", "step"),
        ("* * L * *", "not understood|not allowed"),
        ("* * LW * *", "not allowed"),
        ("* * * * 5L", "not allowed"),
        ("* * * * mon#2", "not understood"),
        ("* * 15w * *", "not allowed"),
        ("? * * * *", "not understood"),
        ("1,,2 * * * *", "not understood"),
        ("1- * * * *", "not understood"),
        ("-1 * * * *", "not understood"),
        ("1-2-3 * * * *", "not understood"),
        ("*/2/3 * * * *", "not understood"),
        ("*-5 * * * *", "not understood"),
        ("h * * * *", "not allowed"),
        ("mon * * * *", 'minute: "mon"'),
        ("* * * * jan", 'day of week: "jan"'),
        ("* * * monday *", "not understood"),
        ("\u0665 * * * *", "does not know"),
        ("* * * * \u017fun", "does not know"),
        ("* * * * *\n", "does not know"),
        ("*\x00 * * * *", "does not know"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        ("0 0 30,31 2 */2", "never fires"),
        ("0 " * 1000, "longer than 512"),
        (5, "must be a string"),
        (None, "must be a string"),
    ],
)
def test_bad_cron_is_refused_with_the_reason(text, reason):
    message = refusal(Cron.parse, text)
    assert re.search(reason, message), message
    assert len(message) < 500


def test_every_bad_cron_field_is_named():
    message = refusal(Cron.parse, "61 25 0 13 9")
    assert all(field in message for field in ("minute:", "hour:", "day of month:", "month:", "day of week:"))


@SEARCH
@given(st.lists(st.text(alphabet="0123456789*,-/", min_size=1, max_size=5), min_size=5, max_size=5).map(" ".join))
def test_whatever_is_accepted_cronsim_accepts_too(text):
    if not accepted(Cron.parse, text):
        return
    try:
        CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError:
        pytest.fail(f"cronsim refuses {text}")
