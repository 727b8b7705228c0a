from hypothesis import given
from hypothesis import strategies as st

from agent.backoff import backoff


def test_it_doubles_up_to_its_cap():
    assert [backoff(n, 5.0, 1.0) for n in (1, 2, 3, 4, 5, 6, 7)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@given(st.integers(0, 10_000), st.floats(0.1, 60), st.floats(0, 1, exclude_max=True))
def test_it_is_never_nothing_and_never_above_the_cap(attempts: int, cap: float, luck: float):
    assert 0 < backoff(attempts, cap, luck) <= cap


def test_jitter_spreads_the_upper_half():
    assert backoff(3, 5.0, 0.0) == 0.4
    assert backoff(3, 5.0, 0.5) == 0.6000000000000001
