"""When the controller looks again: a table of what a pass found, and what follows."""

from datetime import timedelta
from typing import Any

import pytest

from crds.status import Phase
from service.decide.outcome import Blocker, Outcome, Throttled
from service.decide.plan import Delete, InstallAgent, Plan
from service.decide.reasons import Reason
from service.decide.requeue import (
    EMERGENCY_PAUSE,
    TURN_PAUSE,
    BackoffKind,
    Requeue,
    failed,
    report_failed,
    requeue,
)
from service.decide.world import Problem, ReadFailure, Role
from service.runtime.slots import SLOW_SECONDS
from tests.service.decide import builders
from tests.service.decide.builders import CLOSES, MORNING

SOON = timedelta(seconds=7)
LATER = timedelta(seconds=20)
LEFT = (InstallAgent(node="node-7", uid="uid-of-the-node", commands=("idea",)),)


def plan(phase: Phase = Phase.ACTIVE, **more: Any) -> Plan:
    return Plan(phase, Reason.MACHINE_RUNNING, "message", **more)


def after(made: Plan, world: Any = None, **outcome: Any) -> Requeue:
    return requeue(world or builders.running_world(), made, Outcome(**outcome), MORNING)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (after(plan()), Requeue()),
        (after(plan(requeue_at=CLOSES)), Requeue(at=CLOSES)),
        (after(plan(requeue_after=SOON)), Requeue(after=SOON)),
        (after(plan(agent_requeue_after=LATER)), Requeue(after=LATER)),
        (after(plan(requeue_after=LATER, agent_requeue_after=SOON)), Requeue(after=SOON)),
        (after(plan(requeue_after=timedelta(0))), Requeue(at=MORNING)),
        (after(plan(Phase.EMERGENCY_REMOVE, requeue_after=timedelta(0))), Requeue(at=MORNING, urgent=True)),
        (after(plan(), interrupted=True), Requeue(backoff=BackoffKind.CONFLICT)),
        (after(plan(), postponed=LEFT), Requeue(backoff=BackoffKind.FAILURE)),
        (after(plan(requeue_after=SOON), postponed=LEFT), Requeue(after=SOON, backoff=BackoffKind.FAILURE)),
        (after(plan(), throttled=Throttled("gadgets", slow=False)), Requeue(after=TURN_PAUSE)),
        (after(plan(), throttled=Throttled("gadgets", slow=True)), Requeue()),
        (after(plan(), blockers=(Blocker(builders.pod(), "a budget", LATER),)), Requeue(after=LATER)),
    ],
)
def test_the_earliest_that_a_pass_asks_for_counts(found: Requeue, expected: Requeue) -> None:
    assert found == expected


def test_a_failure_without_a_known_pause_is_retried_by_back_off() -> None:
    assert failed("no answer", None) == Requeue(backoff=BackoffKind.FAILURE, failure="no answer")
    assert failed("busy", SOON) == Requeue(after=SOON, failure="busy")


def test_an_emergency_does_not_wait_for_a_back_off_when_its_report_fails() -> None:
    assert report_failed(plan(Phase.EMERGENCY_REMOVE), "no answer", None).after == EMERGENCY_PAUSE
    assert report_failed(plan(requeue_at=CLOSES), "no answer", None) == Requeue(
        at=CLOSES, backoff=BackoffKind.FAILURE, failure="no answer"
    )


def test_a_deletion_without_a_watch_event_is_requeued_at_once() -> None:
    gone = Delete(role=Role.INFRASTRUCTURE, name="desk-infra", uid="u", why="the window closed")
    world = builders.running_world(infrastructure=None)
    assert after(plan(), world, done=(gone,)).at == MORNING
    assert after(plan(), done=(gone,)).at is None, "it still exists, and its watch reports the deletion"


def test_what_cannot_be_observed_is_requeued_with_backoff() -> None:
    hidden = {Role.INFRASTRUCTURE: ReadFailure(Problem(Reason.FORBIDDEN, "the operator may not list gadgets"))}
    found = after(plan(), builders.world(unreadable=hidden))
    assert found.backoff is BackoffKind.FAILURE
    assert "may not list gadgets" in (found.failure or "")


def test_a_wait_for_a_turn_is_reported_once_the_calls_before_it_count_as_slow() -> None:
    assert TURN_PAUSE.total_seconds() > SLOW_SECONDS
