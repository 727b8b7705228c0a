"""The annotation on the Node that says when its window closes."""

from crds import names
from crds.base import rfc3339
from crds.overrides import Override, OverrideState
from service.decide.closing import with_closes_at
from service.decide.lifecycle import decide
from service.decide.plan import AnnotateClose, ApplyTaints, Cordon
from service.decide.situation import Situation
from tests.service.decide.builders import (
    CLOSES,
    EVENING,
    MINUTE,
    MORNING,
    intent,
    leaving_world,
    machine,
    node,
    pod,
    running_world,
)
from tests.service.decide.simulation import Simulation, running

HOUR = 60 * MINUTE


def noted(closes=CLOSES):
    return node(annotations={names.ANNOTATION_CLOSES_AT: rfc3339(closes)})


def planned(of=None, seen=None, now=MORNING):
    of, seen = of or intent(), seen or running_world()
    return with_closes_at(decide(of, seen, now), Situation.at(of, seen, now)).actions


def on_node(sim: Simulation) -> str | None:
    assert sim.node is not None
    return sim.node.annotations.get(names.ANNOTATION_CLOSES_AT)


def test_a_ready_node_gets_the_close_of_its_window_once():
    assert planned() == (AnnotateClose("node-7", "uid-of-the-node", "2026-03-02T18:00:00Z"),)
    assert planned(seen=running_world(node=noted())) == ()
    assert planned(seen=running_world(node=node(ready=False))) == ()


def test_it_is_corrected():
    (correction,) = planned(seen=running_world(node=noted(EVENING)))
    assert isinstance(correction, AnnotateClose)
    assert correction.closes_at == rfc3339(CLOSES)


def test_with_taints_it_costs_no_write_of_its_own():
    (action,) = planned(of=intent(nodeTaints=[{"key": "night", "effect": "NoSchedule"}]))
    assert isinstance(action, ApplyTaints)
    assert action.closes_at == rfc3339(CLOSES)


def test_with_a_cordon_it_leaves_without_a_write_of_its_own():
    sim = running(pods=[pod()])
    sim.now = CLOSES
    last = sim.step()
    assert [action.closed for action in last.done if isinstance(action, Cordon)] == [True]
    assert (AnnotateClose in map(type, last.done), on_node(sim)) == (False, None)


def test_it_stays_during_the_lead_of_the_shutdown_and_leaves_at_the_close():
    sim = running(pods=[pod()])
    sim.edit(schedule={"stopEarly": "3m"})
    sim.guarded = {"web"}
    sim.now = CLOSES - 3 * MINUTE
    sim.settle()
    assert (sim.status.phase, on_node(sim)) == ("ShuttingDown", rfc3339(CLOSES))
    sim.now = CLOSES
    sim.settle()
    assert (sim.status.phase, on_node(sim)) == ("ShuttingDown", None)


def test_an_override_moves_it():
    sim = running()
    sim.overrides = (Override("late", OverrideState.OPEN, MORNING, CLOSES + HOUR, created=MORNING),)
    sim.settle()
    assert on_node(sim) == rfc3339(CLOSES + HOUR)


def test_without_a_known_end_there_is_none():
    sim = running()
    sim.edit(schedule={"daysOfWeek": ["mon-sun"], "hoursOfDay": []})
    sim.settle()
    assert on_node(sim) is None


def test_it_is_gone_while_the_schedule_is_disabled_or_cannot_be_read():
    sim = running()
    sim.edit(schedule={"enabled": False})
    sim.settle()
    assert on_node(sim) is None
    sim.edit(schedule={"enabled": True})
    sim.settle()
    assert on_node(sim) == rfc3339(CLOSES)
    sim.edit(schedule={"hoursOfDay": ["late"]})
    sim.settle()
    assert on_node(sim) is None


def test_a_node_that_leaves_or_is_paused_or_of_another_host_is_left_alone():
    assert AnnotateClose not in map(type, planned(seen=leaving_world()))
    assert planned(seen=running_world(machine=machine(provider_id="remote://other"), node=noted(EVENING))) == ()
    sim = running()
    sim.paused = True
    sim.change_node(annotations={})
    sim.settle()
    assert on_node(sim) is None


def test_a_dry_run_writes_nothing_to_the_node():
    assert planned(seen=running_world(dry_run=True)) == ()


def test_two_machines_on_one_node_do_not_write_over_each_other():
    seen = running_world(node=noted(EVENING), others_on_node=frozenset({"another"}))
    assert planned(seen=seen) == ()
