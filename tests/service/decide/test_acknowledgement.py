"""Reclaims that a user has to acknowledge before the machine returns."""

from dataclasses import replace
from typing import Any

import pytest

from crds import names
from crds.providers import ProviderPolicy
from crds.status import PastReclaim, Phase, Reclaim, ScheduledMachineStatus
from service.decide import plan as actions
from service.decide.conditions import outranking
from service.decide.events import new_events
from service.decide.intent import Intent, read_intent
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.reasons import Reason
from service.decide.report import report
from service.decide.situation import Situation
from service.decide.world import Reachability, Role, World
from tests.service.decide import builders
from tests.service.decide.builders import MORNING, running_status, running_world

SINCE = "2026-03-02T10:00:00Z"
UNDER_WAY = Reclaim(requested_at=MORNING, reason="idea", node="node-7", machine_uid=builders.child(Role.MACHINE).uid)
OVER = PastReclaim(at=MORNING, reason="idea", node="node-7")


def held(**changes: Any) -> Intent:
    """A ScheduledMachine with the annotation, as read from storage."""
    raw = builders.stored(builders.raw_spec(**changes))
    raw["metadata"]["annotations"] = {names.ANNOTATION_RECLAIM_UNACKNOWLEDGED: SINCE}
    return read_intent(raw, ProviderPolicy())


def asked(**seen: Any) -> World:
    return running_world(**{"status": running_status(reclaim=UNDER_WAY), "acknowledged_reclaims": True, **seen})


def disabling(intent: Intent, seen: World) -> list[actions.DisableSchedule]:
    return [each for each in decide(intent, seen, MORNING).actions if isinstance(each, actions.DisableSchedule)]


@pytest.mark.parametrize("enabled", [True, False])
def test_disabling_the_schedule_demands_the_acknowledgement_also_of_one_that_is_disabled_already(enabled: bool) -> None:
    intent = builders.intent(schedule={"enabled": enabled})
    assert disabling(intent, asked()) == [actions.DisableSchedule(unacknowledged_since=MORNING)]


def test_it_is_demanded_once_and_a_tool_that_enables_the_schedule_is_not_fought() -> None:
    assert disabling(held(), asked()) == []


def test_by_default_no_acknowledgement_is_demanded() -> None:
    assert disabling(builders.intent(), asked(acknowledged_reclaims=False)) == [actions.DisableSchedule()]


def test_a_reclaim_is_not_over_before_the_acknowledgement_is_demanded() -> None:
    gone = replace(
        builders.world(),
        status=running_status(reclaim=UNDER_WAY),
        workload=Reachability(True),
        acknowledged_reclaims=True,
    )
    disabled = builders.intent(schedule={"enabled": False})
    assert decide(disabled, gone, MORNING).phase is Phase.EMERGENCY_REMOVE
    assert decide(held(), gone, MORNING).reclaimed


def test_the_event_is_emitted_though_the_reclaim_is_over_before_a_status_says_that_it_disabled_the_schedule() -> None:
    gone = builders.world(status=running_status(reclaim=UNDER_WAY), workload=Reachability(True))
    s = Situation.at(held(), replace(gone, acknowledged_reclaims=True), MORNING)
    plan = decide(s.intent, s.world, s.now)
    after = report(s, plan, Outcome())
    assert (after.phase, after.reclaim) == (Phase.DISABLED, None)
    emitted = [each.reason for each in new_events(gone.status, after, plan, Outcome())]
    assert emitted.count(Reason.EMERGENCY_RECLAIM_DISABLED_SCHEDULE) == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_without_the_acknowledgement_the_machine_stays_out_even_if_its_schedule_is_enabled(enabled: bool) -> None:
    seen = builders.world(status=ScheduledMachineStatus(last_reclaim=OVER))
    plan = decide(held(schedule={"enabled": enabled}), seen, MORNING)
    assert (plan.phase, plan.reason) == (Phase.DISABLED, Reason.RECLAIM_NOT_ACKNOWLEDGED)
    assert "5spot resume desk -n team" in plan.message
    assert not any(isinstance(each, actions.Create) for each in plan.actions)


def test_a_lost_status_does_not_return_it_either() -> None:
    plan = decide(held(), builders.world(), MORNING)
    assert plan.reason is Reason.RECLAIM_NOT_ACKNOWLEDGED
    assert SINCE in plan.message


def test_a_long_annotation_does_not_hide_how_to_acknowledge() -> None:
    raw = builders.stored(builders.raw_spec())
    raw["metadata"]["annotations"] = {names.ANNOTATION_RECLAIM_UNACKNOWLEDGED: "x" * 100_000}
    intent = read_intent(raw, ProviderPolicy())
    s = Situation.at(intent, builders.world(), MORNING)
    assert "5spot resume desk -n team" in (report(s, decide(intent, s.world, MORNING), Outcome()).message or "")


def test_an_acknowledged_reclaim_was_not_reverted_by_the_tool_that_enabled_the_schedule() -> None:
    seen = builders.world(status=ScheduledMachineStatus(last_reclaim=OVER), enabled_by="argocd-controller")
    assert decide(builders.intent(), seen, MORNING).reverted_by == "argocd-controller"
    assert decide(builders.intent(), replace(seen, acknowledged_reclaims=True), MORNING).reverted_by is None


def test_a_spec_that_cannot_be_read_is_held_as_well() -> None:
    assert held(schedule={"daysOfWeek": ["someday"]}).unacknowledged == SINCE


def test_it_outranks_an_override() -> None:
    situation = Situation.at(held(), builders.world(), MORNING)
    assert outranking(situation) == "a reclaim is not acknowledged"
