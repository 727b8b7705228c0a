"""What is decided for a machine whose class cannot be used: nothing is created, and removal goes on by the schedule."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crds.classes import ClassProblem, Tenancy, UnusableClass
from crds.overrides import Override, OverrideState
from crds.providers import DEFAULT_POLICY
from crds.status import Phase
from service.decide.intent import Intent, Sources, read_intent
from service.decide.lifecycle import decide
from service.decide.plan import Create, Delete
from service.decide.reasons import Reason
from tests.corpus import machine_class
from tests.crds.classes import tenancy, user
from tests.service.decide.builders import EVENING as CLOSED
from tests.service.decide.builders import MORNING as OPEN
from tests.service.decide.builders import running_world, world

PROBLEMS = {
    ClassProblem.NOT_FOUND: Reason.CLASS_NOT_FOUND,
    ClassProblem.INVALID: Reason.CLASS_INVALID,
    ClassProblem.NOT_ALLOWED: Reason.CLASS_NOT_ALLOWED,
}


class Classes:
    """A source that knows what one namespace may use."""

    def __init__(self, found: Tenancy) -> None:
        self.found = found

    def tenancy(self, namespace: str) -> Tenancy:
        return self.found


def intent(found: Tenancy, **spec: Any) -> Intent:
    return read_intent(user({"address": "10.1.2.7"}, **spec), DEFAULT_POLICY, Sources(classes=Classes(found)))


def unusable(problem: ClassProblem) -> Tenancy:
    return Tenancy(find=lambda name: UnusableClass(problem, f"ScheduledMachineClass {name} is no good"))


@pytest.mark.parametrize(("problem", "reason"), PROBLEMS.items())
def test_a_class_that_cannot_be_used_creates_nothing(problem, reason):
    plan = decide(intent(unusable(problem)), world(), OPEN)
    assert (plan.phase, plan.reason, plan.problem) == (Phase.ERROR, reason, True)
    assert not [action for action in plan.actions if isinstance(action, Create)]
    assert "is no good" in plan.message


def test_a_class_that_is_only_not_read_yet_is_waited_for_without_a_warning():
    plan = decide(intent(unusable(ClassProblem.UNKNOWN)), world(), OPEN)
    assert (plan.phase, plan.problem, plan.actions) == (Phase.PENDING, False, ())


def test_a_machine_that_runs_stays_until_its_window_closes():
    bad = intent(unusable(ClassProblem.NOT_FOUND))
    stays = decide(bad, running_world(), OPEN)
    assert not [action for action in stays.actions if isinstance(action, Delete)]
    assert "keeps running" in stays.message
    assert decide(bad, running_world(), CLOSED).phase is Phase.SHUTTING_DOWN


def test_an_override_counts_in_spite_of_a_missing_class():
    closed = Override("tonight", OverrideState.CLOSED, OPEN - timedelta(hours=1), OPEN + timedelta(hours=1), OPEN)
    bad = replace(intent(unusable(ClassProblem.NOT_FOUND)), overrides=(closed,))
    assert decide(bad, running_world(), OPEN).phase is Phase.SHUTTING_DOWN


def test_parameters_that_do_not_fit_make_the_spec_invalid_but_the_timeouts_of_the_class_count():
    strict = machine_class(
        parameters=[{"name": "address", "schema": {"type": "integer"}}],
        gracefulShutdownTimeout="2h",
        nodeDrainTimeout="1h",
    )
    found = intent(tenancy(strict))
    assert (found.spec, found.class_problem, found.invalid) == (None, None, True)
    assert "spec.parameters.address" in found.problems[0]
    assert (found.grace, found.drain) == (timedelta(hours=2), timedelta(hours=1))
    assert intent(tenancy(strict), gracefulShutdownTimeout="3m").grace == timedelta(minutes=3)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"namespaceSelector": {"matchLabels": {"team": "others"}}}, ClassProblem.NOT_ALLOWED),
        ({"parameters": [{"name": "address", "schema": {"$ref": "#"}}]}, ClassProblem.INVALID),
    ],
)
def test_the_timeouts_of_a_class_that_can_no_longer_be_used_bound_the_removal_of_its_machines(changes, problem):
    found = intent(tenancy(machine_class(**changes, gracefulShutdownTimeout="2h", nodeDrainTimeout="1h")))
    assert found.class_problem is not None
    assert found.class_problem.problem is problem
    assert (found.grace, found.drain) == (timedelta(hours=2), timedelta(hours=1))


def test_a_mistake_in_the_machine_takes_the_timeouts_of_its_class_from_no_removal():
    found = intent(tenancy(machine_class(gracefulShutdownTimeout="2h")), priority=300)
    assert (found.invalid, found.grace) == (True, timedelta(hours=2))


def test_a_class_that_can_be_used_gives_a_complete_spec():
    found = intent(tenancy(machine_class(priority=70)))
    assert found.priority == 70
    assert found.spec is not None
    assert found.spec.infrastructure_spec.spec["address"] == "10.1.2.7"
