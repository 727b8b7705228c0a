"""`spec.simulate`: failures on request; an unknown value is an invalid configuration."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.provider.simulate import SimulatedFailure, Simulation

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def of(simulate: Any) -> Simulation:
    return Simulation.of({"spec": {"simulate": simulate}})


def test_without_simulate_nothing_fails_and_nothing_is_late() -> None:
    resources: list[dict[str, Any]] = [{}, {"spec": {}}, {"spec": {"simulate": None}}, {"spec": {"simulate": {}}}]
    for resource in resources:
        simulation = Simulation.of(resource)
        assert (simulation.failure, simulation.delay_seconds) == (None, 0.0)


@pytest.mark.parametrize("failure", list(SimulatedFailure))
def test_every_failure_can_be_asked_for_by_name(failure: SimulatedFailure) -> None:
    assert of({"failure": failure.value}).failure is failure


def test_a_delay_counts_from_the_creation_of_the_object() -> None:
    simulation = of({"delaySeconds": 10})
    assert simulation.seconds_left(NOON, NOON + timedelta(seconds=4)) == 6.0
    assert simulation.seconds_left(NOON, NOON + timedelta(seconds=11)) == 0.0


@pytest.mark.parametrize(
    ("simulate", "complaint"),
    [
        ({"failure": "Explodes"}, "'Explodes' is unknown; there are InvalidConfiguration, NeverReady, NodeNeverJoins"),
        ({"delay": 3}, "spec.simulate.delay is unknown"),
        ({"delaySeconds": "3"}, "must be a number of seconds, not '3'"),
        ({"delaySeconds": True}, "must be a number of seconds, not True"),
        ({"delaySeconds": -1}, "must be a number of seconds, not -1"),
        (["NeverReady"], "spec.simulate must be an object"),
    ],
)
def test_an_unknown_value_is_an_invalid_configuration(simulate: Any, complaint: str) -> None:
    simulation = of(simulate)
    assert simulation.failure is SimulatedFailure.INVALID_CONFIGURATION
    assert complaint in simulation.complaint
