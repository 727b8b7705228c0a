"""How often a caller may try to log in."""

from service.console import limits
from service.console.limits import LoginLimit


def test_after_some_attempts_a_caller_waits_for_each() -> None:
    now = [0.0]
    limit = LoginLimit(each=(2, 10.0), monotonic=lambda: now[0])
    assert [limit.wait("here"), limit.wait("here"), limit.wait("here")] == [0, 0, 10]
    assert limit.wait("there") == 0
    now[0] = 10.0
    assert [limit.wait("here"), limit.wait("here")] == [0, 10]


def test_an_attempt_that_succeeds_does_not_count() -> None:
    limit = LoginLimit(each=(1, 10.0), monotonic=lambda: 0.0)
    for _ in range(5):
        assert limit.wait("here") == 0
        limit.succeeded("here")


def test_many_callers_together_are_limited_and_not_all_remembered() -> None:
    limit = LoginLimit(together=(limits.CALLERS_MAX + 10, 1.0), monotonic=lambda: 0.0)
    waits = [limit.wait(str(number)) for number in range(limits.CALLERS_MAX + 11)]
    assert (waits[-2], waits[-1]) == (0, 1)
    assert len(limit._callers) == limits.CALLERS_MAX
