from datetime import timedelta

import pytest

from crds.providers import DEFAULT_POLICY, ProviderPolicy
from service.decide.intent import read_intent
from tests.service.decide.builders import (
    EVENING,
    MORNING,
    TOMORROW,
    broken_spec,
    legible,
    raw_spec,
    stored,
    unreadable_spec,
)


def test_a_valid_spec_is_read_whole():
    read = legible(raw_spec(priority=7, killSwitch=True, gracefulShutdownTimeout="1h", nodeDrainTimeout="2m"))
    assert read.spec is not None
    assert (read.problems, read.priority, read.kill_switch, read.cluster_name) == ((), 7, True, "prod")
    assert (read.grace, read.drain) == (timedelta(hours=1), timedelta(minutes=2))
    assert (read.covers(MORNING), read.covers(EVENING), read.effective.next_change(EVENING)) == (True, False, TOMORROW)


def test_unknown_fields_are_ignored():
    assert legible(raw_spec(holidays=["easter"])).spec is not None


def test_of_an_invalid_spec_the_schedule_timeouts_and_kill_switch_still_count():
    read = legible(broken_spec(killSwitch=True, gracefulShutdownTimeout="1h", schedule={"enabled": False}))
    assert read.spec is None
    assert any(problem.startswith("spec.priority: ") for problem in read.problems)
    assert (read.kill_switch, read.enabled, read.grace) == (True, False, timedelta(hours=1))
    assert read.covers(MORNING)


def test_a_schedule_that_cannot_be_read_never_opens_and_never_changes():
    read = legible(unreadable_spec())
    assert (read.schedule, read.covers(MORNING), read.effective.next_change(MORNING)) == (None, False, None)


@pytest.mark.parametrize(("enabled", "expected"), [(False, False), (True, True), ("no", True)])
def test_disabled_is_understood_even_if_the_rest_of_the_schedule_is_not(enabled, expected):
    raw = raw_spec(schedule={"hoursOfDay": ["late"], "enabled": enabled})
    assert legible(raw).enabled is expected


@pytest.mark.parametrize("raw", [{}, {"schedule": None}, {"schedule": []}, {"schedule": {"cron": 5}}])
def test_nothing_at_all_is_still_an_intent(raw):
    read = legible(raw)
    assert (read.spec, read.schedule, read.kill_switch) == (None, None, False)
    assert read.problems


def test_the_operators_policy_counts():
    strict = ProviderPolicy(bootstrap_groups=frozenset())
    assert read_intent(stored(raw_spec()), DEFAULT_POLICY).spec is not None
    assert read_intent(stored(raw_spec()), strict).spec is None
