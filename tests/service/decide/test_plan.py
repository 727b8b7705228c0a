from dataclasses import FrozenInstanceError

import pytest

from crds.status import Phase
from service.decide import plan
from service.decide.outcome import Outcome
from service.decide.plan import Plan, earliest
from service.decide.reasons import Reason
from tests.service.decide.builders import CLOSES, MORNING


def test_the_earliest_instant_counts_and_none_does_not():
    assert earliest(CLOSES, None, MORNING) == MORNING
    assert earliest(None, None) is None


def test_a_plan_is_immutable_data():
    with pytest.raises(FrozenInstanceError):
        Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "It runs.").phase = Phase.ERROR  # type: ignore[misc]


def test_an_outcome_knows_what_was_done():
    outcome = Outcome(done=(plan.AddFinalizer(),))
    assert outcome.did(plan.AddFinalizer)
    assert not outcome.did(plan.Create)
