"""Sets of dates: what users write, and the runs of days that the algebra asks for."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds.dates import Anniversary, Dates, Days, Either, Yearly, date_of, day_of
from crds.days import LAST_DAY
from crds.invalid import InvalidValue

some_dates = st.dates(date(1990, 1, 1), date(2060, 1, 1))
anniversaries = st.dates(date(2000, 1, 1), date(2000, 12, 31)).map(lambda day: Anniversary(day.month, day.day))


def dates(*texts: str) -> Dates:
    return Dates.union([Dates.parse_item(text) for text in texts])


def runs(source: Dates | Yearly | Either, first: date, last: date) -> set[date]:
    """All dates of a period, as the algebra finds them."""
    found, day = set(), day_of(first)
    while (run := source.run(day)) is not None and run.first <= day_of(last):
        found |= {date_of(each) for each in range(run.first, min(run.last, day_of(last)) + 1)}
        day = run.last + 1
    return found


def test_single_dates_and_ranges_with_both_ends():
    found = runs(dates("2026-12-24", "2026-12-28/2027-01-01"), date(2026, 1, 1), date(2028, 1, 1))
    assert found == {date(2026, 12, 24), *(date(2026, 12, day) for day in range(28, 32)), date(2027, 1, 1)}


def test_dates_that_touch_are_one_run():
    assert dates("2026-12-24", "2026-12-25/2026-12-26") == dates("2026-12-24/2026-12-26")
    assert len(list(dates("2026-12-24", "2026-12-25"))) == 1


def test_a_run_that_began_earlier_counts_from_the_day_asked_for():
    middle, end = day_of(date(2026, 6, 1)), day_of(date(2026, 12, 31))
    assert dates("2026-01-01/2026-12-31").run(middle) == Days(middle, end)
    assert dates("2026-01-01").run(middle) is None


@given(st.lists(st.tuples(some_dates, st.integers(0, 365)), max_size=6))
def test_dates_are_the_days_that_were_written(spans):
    made = dates(*(f"{first}/{first + timedelta(days=length)}" for first, length in spans))
    expected = {first + timedelta(days=each) for first, length in spans for each in range(length + 1)}
    assert runs(made, date(1980, 1, 1), date(2070, 1, 1)) == expected
    assert dates(*made.texts()) == made


@pytest.mark.parametrize("wrong", ["2026-02-30", "2026-12-24/2026-12-23", "2026-01-01/2027-01-02", "tomorrow", "", "/"])
def test_what_is_no_date_is_refused_in_words_that_help(wrong):
    with pytest.raises(InvalidValue, match=r"write a date such as|at most 366 days"):
        Dates.parse_item(wrong)


@pytest.mark.parametrize("wrong", ["12-32", "02-30", "00-01", "13-01", "1-1", "12-25 ", "12/25", 1225, None])
def test_what_is_no_day_of_a_year_is_refused(wrong):
    with pytest.raises(InvalidValue, match="write a month and a day such as 12-25"):
        Anniversary.parse(wrong)


@given(st.sets(anniversaries, min_size=1, max_size=5))
def test_days_of_every_year_are_in_every_year_that_has_them(wanted):
    found = runs(Yearly(wanted), date(2023, 1, 1), date(2028, 12, 31))
    every = (date(2023, 1, 1) + timedelta(days=each) for each in range(6 * 366))
    assert found == {day for day in every if (day.month, day.day) in wanted and day.year <= 2028}


def test_the_29th_of_february_skips_a_century_without_a_leap_day():
    leap = Yearly([Anniversary.parse("02-29")])
    found = leap.run(day_of(date(2097, 1, 1)))
    assert found is not None
    assert date_of(found.first) == date(2104, 2, 29)


def test_days_that_follow_each_other_are_one_run_also_over_new_year():
    turn = Yearly([Anniversary(12, 31), Anniversary(1, 1), Anniversary(2, 28), Anniversary(3, 1)])
    start = day_of(date(2026, 12, 31))
    assert turn.run(start) == Days(start, start + 1)
    assert turn.run(start + 1) == Days(start + 1, start + 1)
    february = day_of(date(2027, 2, 28))
    assert turn.run(start + 2) == Days(february, february + 1)
    leap = day_of(date(2028, 2, 28))
    assert turn.run(leap) == Days(leap, leap)


def test_the_calendar_ends_with_the_year_9999():
    assert Yearly([Anniversary(1, 1)]).run(LAST_DAY) is None
    assert Yearly([Anniversary(12, 31)]).run(LAST_DAY) == Days(LAST_DAY, LAST_DAY)
    assert Yearly([Anniversary(12, 31)]).run(LAST_DAY + 1) is None


def test_days_of_every_year_have_no_end_and_single_dates_have_one():
    single, yearly = dates("2026-12-24"), Yearly([Anniversary(12, 25)])
    assert single.last == day_of(date(2026, 12, 24))
    assert yearly.run(day_of(date(9999, 1, 1))) is not None
    assert runs(Either(single, yearly), date(2026, 1, 1), date(2026, 12, 31)) == {
        date(2026, 12, 24),
        date(2026, 12, 25),
    }
