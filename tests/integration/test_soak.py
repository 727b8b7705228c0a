"""Continuous churn with random kills, everything checked throughout; half an hour of it in `make bench`.

A quarter of a minute here, to keep the suite short. `SOAK_MINUTES=3 make test TESTS=tests/integration/test_soak.py` has
three minutes.
"""

import os

import pytest

from bench._soak import Settings, soaking
from tests.conftest import kept

SECONDS = 60 * float(os.environ.get("SOAK_MINUTES", "0.25"))


@pytest.fixture
def keeper(pytestconfig):
    with kept(pytestconfig) as keeper:
        yield keeper


@pytest.mark.timeout(SECONDS + 600)
async def test_under_churn_and_random_kills_nothing_is_lost_doubled_or_forgotten(audited, keeper):
    # Lateness is what `make bench` measures; here nothing may be forgotten for good, however slow the machine is.
    settings = Settings(seconds=SECONDS, objects=30, replicas=2, kill_every=5.0, forgotten_after=60.0)
    async with soaking(audited, keeper, settings) as soak:
        result = await soak.run()
    assert result.violations == [], result.described()
    assert result.happened["replicas killed"] >= 1
    assert result.happened["Machines made"] >= 10
