from datetime import timedelta

import pytest

from service.decide.situation import Situation
from tests.service.decide.builders import (
    CLOSES,
    EVENING,
    GRACE,
    MINUTE,
    MORNING,
    SECOND,
    intent,
    running_status,
    running_world,
)


def at(now, started=CLOSES, **spec) -> Situation:
    return Situation.at(intent(**spec), running_world(status=running_status(shutdown_started_at=started)), now)


@pytest.mark.parametrize("back", [SECOND, MINUTE, 5 * MINUTE - SECOND])
def test_a_little_before_the_shutdown_counts_as_the_instant_it_began(back):
    seen = at(CLOSES - back)
    assert (seen.now, seen.open, seen.shutdown_started) == (CLOSES, False, CLOSES)


@pytest.mark.parametrize("back", [5 * MINUTE, timedelta(hours=2)])
def test_long_before_the_shutdown_it_is_the_shutdown_that_does_not_count(back):
    seen = at(CLOSES - back)
    assert (seen.now, seen.open, seen.shutdown_started) == (CLOSES - back, True, None)


def test_deadlines_count_from_the_start_of_the_shutdown():
    seen = at(EVENING, gracefulShutdownTimeout="2h", nodeDrainTimeout="5m")
    assert seen.grace_deadline == CLOSES + timedelta(hours=2)
    assert seen.drain_deadline == CLOSES + GRACE


def test_without_a_shutdown_deadlines_count_from_now():
    seen = at(MORNING, started=None, gracefulShutdownTimeout="1m", nodeDrainTimeout="5m")
    assert (seen.grace_deadline, seen.drain_deadline) == (MORNING + MINUTE, MORNING + MINUTE)


@pytest.mark.parametrize(("now", "is_open"), [(MORNING, True), (CLOSES, False), (EVENING, False)])
def test_open_is_what_the_schedule_says(now, is_open):
    assert at(now, started=None).open is is_open
