"""What the provider knows of the management cluster, as far as no server is needed to see it."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from local.provider.simulate import Simulation
from local.provider.view import Management
from service.kube.client import Client

CREATED = "2026-01-01T12:00:00Z"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seconds_left(delay: float, after: float) -> float:
    """How long an object has to wait that the API server says was created at noon."""
    management = Management(
        cast("Client", None), lambda *_: None, lambda *_: None, lambda: NOON + timedelta(seconds=after)
    )
    config: dict[str, Any] = {"metadata": {"creationTimestamp": CREATED}}
    return management.seconds_left(config, Simulation(delay_seconds=delay))


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.999])
def test_a_delay_is_not_cut_short_by_a_creation_late_in_its_second(fraction: float) -> None:
    assert 2.0 <= seconds_left(2.0, after=fraction) <= 3.0


def test_a_delay_ends() -> None:
    assert seconds_left(2.0, after=3.0) == 0.0


def test_nothing_waits_that_was_not_asked_to() -> None:
    assert seconds_left(0.0, after=0.0) == 0.0
