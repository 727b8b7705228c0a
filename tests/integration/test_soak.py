"""Continuous churn with random kills, everything checked throughout; half an hour of it in `make bench`.

A quarter of a minute in `make test`, to keep that short; three minutes, and a third replica, in `make soak`, which CI
runs after it.
"""

import os

import pytest

from bench._soak import Settings, soaking
from tests.conftest import kept

SECONDS = 60 * float(os.environ.get("SOAK_MINUTES", "0.25"))
# Lateness is what `make bench` measures; here nothing may be forgotten for good, however slow the machine is.
JUDGED_FROM = 180
SHORT = Settings(seconds=SECONDS, objects=30, replicas=2, kill_every=5.0, forgotten_after=60.0)
LONG = Settings(seconds=SECONDS, objects=60, replicas=3, kill_every=15.0, forgotten_after=60.0)


@pytest.fixture
def keeper(pytestconfig):
    with kept(pytestconfig) as keeper:
        yield keeper


@pytest.mark.timeout(SECONDS + 600)
async def test_under_churn_and_random_kills_nothing_is_lost_doubled_or_forgotten(audited, keeper):
    async with soaking(audited, keeper, LONG if SECONDS >= 60 else SHORT) as soak:
        result = await soak.run()
    print(result.described())  # noqa: T201 - `make soak` shows it
    assert result.violations == [], result.described()
    assert not result.leaks, result.described()
    restarted = result.happened["replicas ended by their own watchdog"]
    assert result.growth is not None or restarted or SECONDS < JUDGED_FROM, "memory was not judged"
    assert result.happened["replicas killed"] >= 1
    assert result.happened["Machines made"] >= 10
