"""The soak's judgement of memory: it fails where it can decide, and says so where it cannot."""

import random

import pytest

from bench._slope import growth


def curve(minutes: float, per_hour: float, noise: float = 0.5) -> list[tuple[float, float]]:
    rng, seconds = random.Random(1), range(0, int(60 * minutes), 5)
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
