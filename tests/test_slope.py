"""The soak's judgement of memory: it fails where it can decide, and says so where it cannot."""

import random

import pytest

from bench._slope import growth
from bench._soak_fleet import SAMPLE_EVERY
from bench._soak_result import Result


def curve(minutes: float, per_hour: float, noise: float = 0.5, every: int = 5) -> list[tuple[float, float]]:
    rng, seconds = random.Random(1), range(0, int(60 * minutes), every)
    return [(at, 80 + per_hour * at / 3600 + rng.gauss(0, noise)) for at in seconds]


@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        (curve(60, 20), "grows"),
        (curve(60, 0), "flat"),
        (curve(5, 0, noise=3.0), "cannot judge"),
        ([(at, 80 + min(at, 1200) / 100) for at, _ in curve(120, 0)], "flat"),
    ],
    ids=["a leak", "flat", "too short", "warm-up that ends"],
)
def test_growth_is_judged_only_where_the_bounds_allow_it(points: list[tuple[float, float]], verdict: str):
    found = growth(points, since=1300 if len(points) > 1000 else 30)
    assert found is not None
    assert found.low <= found.slope <= found.high
    assert found.verdict(5.0) == verdict


def test_a_few_samples_say_nothing():
    assert growth(curve(1, 0), since=30) is None


@pytest.mark.parametrize(
    ("minutes", "per_hour", "verdict"),
    [(3, 200, "grows"), (3, 0, "flat"), (30, 20, "grows"), (30, 0, "flat"), (19, 20, "flat")],
    ids=["a fast leak in short", "short and flat", "a leak", "flat", "too short for a slow leak"],
)
def test_a_soak_fails_on_the_slope_that_it_can_judge_in_its_time(minutes: float, per_hour: float, verdict: str):
    result = Result(memory=curve(minutes, per_hour, every=int(SAMPLE_EVERY)))
    assert result.growth is not None
    assert result.growth.verdict(result.most_slope) == verdict
    assert result.leaks is (verdict == "grows")
    assert verdict in result.described()


def test_a_soak_of_seconds_judges_no_memory_and_says_so():
    result = Result(memory=curve(0.5, 200, every=int(SAMPLE_EVERY)))
    assert not result.leaks
    assert "which says nothing after 0.5 minutes" in result.described()
