"""The search for the next matching day, against looking at every day."""

from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from crds.days import Calendar, narrowest_gap, widest_gap

SEARCH = settings(max_examples=200, deadline=None, derandomize=True, database=None)


@SEARCH
@given(
    st.integers(1, 4095),
    st.integers(1, 2**31 - 1),
    st.integers(1, 127),
    st.booleans(),
    st.integers(-800_000, 2_900_000),
)
def test_the_next_day_of_a_calendar_is_the_first_that_matches(months, dates, weekdays, either, day):
    calendar = Calendar(months << 1, dates << 1, weekdays, either)
    found = calendar.next_day(day)
    for offset in range(60):
        moment = datetime.fromordinal(min(max(day, -719162), 2932896) + offset + 719163)
        by_date, by_weekday = dates >> moment.day - 1 & 1, weekdays >> moment.weekday() & 1
        if months >> moment.month - 1 & 1 and (by_date or by_weekday if either else by_date and by_weekday):
            assert found == moment.toordinal() - 719163
            return
        if moment.toordinal() >= 3652059:
            break
    assert found is None or found >= day + offset


def test_the_gaps_of_a_calendar_are_known():
    assert widest_gap(Calendar()) == 1
    assert widest_gap(Calendar(weekdays=0b11111)) == 3
    assert widest_gap(Calendar(days=1 << 1)) == 31
    assert widest_gap(Calendar(days=1 << 29, months=1 << 2)) == 4 * 365 + 1
    assert narrowest_gap(Calendar(weekdays=0b1000100)) == 3
    assert narrowest_gap(Calendar(days=1 << 1)) == 28
