"""A machine that is not Ready in time is reported once, in Cluster API's words, and nothing is done about it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crds.status import Phase
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.plan import Plan
from service.decide.report import report
from service.decide.situation import Situation
from service.decide.world import Role, World
from tests.service.decide.builders import (
    CLOSES,
    CONNECTED,
    DISCONNECTED,
    FAILURE,
    MINUTE,
    MORNING,
    OPENS,
    SECOND,
    intent,
    machine,
    new_machine,
    node,
    reference,
    running_status,
    running_world,
    status,
    world,
)
from tests.service.decide.invariants import condition
from tests.service.decide.simulation import Simulation

TIMEOUT = 15 * MINUTE
WORDS = "InfrastructureReady: host 192.0.2.7 does not answer"
MADE = {"machine_ref": reference(Role.MACHINE), "last_scheduled_time": OPENS}


def coming(**seen: Any) -> World:
    """A Machine that was made at the opening and is not Ready yet."""
    parts = {"machine": new_machine(waiting_for=WORDS), "node": None, "workload": None, "status": status(**MADE)}
    return running_world(**{**parts, **seen})


def late(seen: World, **spec: Any) -> Plan:
    return decide(intent(**spec), seen, OPENS + TIMEOUT)


def is_reported(plan: Plan) -> bool:
    return plan.reason == "NotReadyInTime"


def test_it_is_requeued_for_its_deadline_and_not_before():
    plan = decide(intent(), coming(), OPENS + MINUTE)
    assert (plan.reason, plan.requeue_at) == ("MachineProvisioning", OPENS + TIMEOUT)
    assert not plan.problem


def test_at_that_instant_it_is_reported_in_cluster_apis_words_and_nothing_is_touched():
    plan = late(coming())
    assert (plan.phase, plan.reason, plan.actions, plan.problem) == (Phase.ACTIVE, "NotReadyInTime", (), True)
    assert "not Ready 15m after its creation" in plan.message
    assert plan.message.count(WORDS) == 1
    assert plan.requeue_at == CLOSES


def test_it_emits_one_warning_and_ready_is_false():
    sim = Simulation(now=OPENS)
    sim.settle()
    for minutes in (14, 15, 16, 60):
        sim.now = OPENS + minutes * MINUTE
        sim.settle()
    emitted = [event for event in sim.events if event.reason == "NotReadyInTime"]
    assert [event.warning for event in emitted] == [True]
    ready = condition(sim.status, "Ready")
    assert (ready.status, ready.reason) == ("False", "NotReadyInTime")
    assert set(sim.objects) == set(Role)


def test_the_first_pass_asks_for_the_timer_as_nothing_else_may_ever_wake_it():
    plan = decide(intent(), world(), OPENS)
    assert plan.requeue_at == OPENS + TIMEOUT


def test_a_machine_that_was_never_reported_counts_from_now():
    seen = coming(status=status())
    assert decide(intent(), seen, MORNING).requeue_at == MORNING + TIMEOUT


@pytest.mark.parametrize(("timeout", "reported"), [("14m", True), ("16m", False), ("24h", False)])
def test_the_time_is_the_specs(timeout, reported):
    assert is_reported(late(coming(), provisioningTimeout=timeout)) == reported


@pytest.mark.parametrize(
    "seen",
    [
        {"machine": machine(waiting_for=WORDS), "node": node(ready=False), "workload": CONNECTED},
        {"machine": machine(), "node": None, "workload": CONNECTED},
        {"machine": machine(), "node": node(provider_id=None), "workload": CONNECTED},
        {"machine": new_machine(provider_id="x://1"), "workload": DISCONNECTED},
    ],
    ids=["Node not Ready", "Node not seen", "Node without providerID", "no Node, cluster out of reach"],
)
def test_whatever_is_missing_it_is_late(seen):
    assert is_reported(late(coming(**seen)))


def test_what_cluster_api_says_of_a_node_that_is_not_ready_is_quoted():
    unhealthy = machine(waiting_for="NodeHealthy: kubelet stopped")
    seen = coming(machine=unhealthy, node=node(ready=False), workload=CONNECTED)
    assert late(seen).message.endswith("Node node-7 is not ready. Cluster API says: NodeHealthy: kubelet stopped")


@pytest.mark.parametrize("workload", [None, DISCONNECTED], ids=["not connected yet", "out of reach"])
def test_a_node_that_cannot_be_seen_may_be_ready(workload):
    assert not is_reported(late(coming(machine=machine(), workload=workload)))


def test_a_failed_machine_is_reported_as_that():
    assert late(coming(machine=new_machine(failure=FAILURE))).reason == FAILURE.reason


def test_outside_its_window_it_is_removed_and_not_reported():
    assert decide(intent(), coming(), CLOSES + MINUTE).reason == "DeletingMachine"


# Ready once


def reported(seen: World, at=MORNING):
    asked = intent()
    return report(Situation.at(asked, seen, at), decide(asked, seen, at), Outcome())


def test_the_first_time_it_is_ready_is_written_down_and_stays():
    first = reported(running_world(status=running_status(last_scheduled_time=OPENS)))
    assert first.first_ready_time == MORNING
    lost = running_world(status=first, node=node(ready=False))
    assert reported(lost, MORNING + MINUTE).first_ready_time == MORNING


def test_a_machine_that_was_ready_once_is_not_late_when_its_node_is_lost():
    known = running_status(last_scheduled_time=OPENS, first_ready_time=OPENS + MINUTE)
    plan = late(running_world(status=known, node=node(ready=False)))
    assert (plan.reason, plan.problem) == ("NodeNotReady", False)


def test_the_next_machine_has_all_of_the_time_again():
    known = running_status(last_scheduled_time=OPENS, first_ready_time=OPENS + MINUTE)
    other = new_machine(of={"uid": "another"})
    seen = coming(machine=other, status=known)
    assert decide(intent(), seen, MORNING).requeue_at == MORNING + TIMEOUT
    after = reported(seen)
    assert (after.last_scheduled_time, after.first_ready_time) == (MORNING, None)


def test_without_a_machine_nothing_was_ready():
    assert reported(world(status=status(first_ready_time=OPENS))).first_ready_time is None


def test_a_status_from_before_there_was_such_a_field_says_since_when_it_has_been_ready():
    seen = running_world(status=running_status(last_scheduled_time=OPENS))
    old = reported(seen, OPENS + MINUTE).model_copy(update={"first_ready_time": None})
    assert reported(replace(seen, status=old)).first_ready_time == OPENS + MINUTE


# Clocks


def test_a_clock_that_was_far_ahead_when_it_was_made_does_not_put_it_off_for_ever():
    sim = Simulation(now=OPENS + timedelta(days=28))
    sim.settle()
    sim.now = MORNING
    sim.settle()
    assert sim.status.last_scheduled_time == MORNING
    sim.now = MORNING + TIMEOUT
    sim.settle()
    assert "NotReadyInTime" in sim.event_reasons()


def test_a_small_step_back_leaves_the_date_of_its_creation():
    seen = coming(status=status(**{**MADE, "last_scheduled_time": MORNING}))
    assert reported(seen, MORNING - 10 * SECOND).last_scheduled_time == MORNING
