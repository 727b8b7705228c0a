"""Label and ConfigMap of the reclaim agent: put there, kept right, taken away."""

from datetime import timedelta

import pytest

from crds import names
from service.decide import plan as actions
from service.decide.events import new_events
from service.decide.lifecycle import decide
from service.decide.outcome import Outcome
from service.decide.reasons import Reason
from service.decide.reclaim_agent import agent_actions, wanted_commands
from service.decide.report import report
from service.decide.world import Problem, ReclaimAgent
from tests.service.decide.builders import (
    MORNING,
    broken_spec,
    cluster,
    intent,
    legible,
    machine,
    node,
    running_status,
    running_world,
    situation,
)
from tests.service.decide.invariants import condition
from tests.service.decide.simulation import Simulation
from tests.service.decide.test_conditions import reported

LABELLED = node(labels={names.LABEL_RECLAIM_AGENT: "enabled"})
WANTED = intent(killIfCommands=["idea"])
EQUIP = actions.InstallAgent(node="node-7", uid="uid-of-the-node", commands=("idea",))
STRIP = actions.RemoveAgent(node="node-7", uid="uid-of-the-node")
READY = ReclaimAgent(commands=("idea",))
MISSING = ReclaimAgent(problem=Problem(Reason.AGENT_NAMESPACE_MISSING, "no namespace"), installed=False)


@pytest.mark.parametrize(
    ("seen", "of", "expected"),
    [
        ({"reclaim_agent": ReclaimAgent()}, WANTED, (EQUIP,)),
        ({"node": LABELLED, "reclaim_agent": READY}, WANTED, ()),
        ({"node": LABELLED, "reclaim_agent": ReclaimAgent()}, WANTED, (EQUIP,)),
        ({"node": LABELLED, "reclaim_agent": ReclaimAgent(commands=("code",))}, WANTED, (EQUIP,)),
        ({"reclaim_agent": READY}, WANTED, (EQUIP,)),
        ({"node": node(labels={names.LABEL_RECLAIM_AGENT: "no"}), "reclaim_agent": READY}, WANTED, (EQUIP,)),
        ({"reclaim_agent": MISSING}, WANTED, ()),
        ({}, WANTED, ()),
        ({"node": LABELLED}, intent(), (STRIP,)),
        ({}, intent(), ()),
        ({"node": LABELLED, "machine": machine(of={"deleting": True})}, WANTED, (STRIP,)),
        ({"node": LABELLED}, legible(broken_spec()), ()),
        ({"node": node(provider_id="remote://192.0.2.99"), "reclaim_agent": ReclaimAgent()}, WANTED, ()),
    ],
    ids=[
        "new",
        "as it should be",
        "no ConfigMap",
        "another list",
        "no label",
        "another label",
        "no namespace",
        "not looked at",
        "list cleared",
        "never wanted",
        "Machine deleting",
        "the spec cannot be read",
        "another host",
    ],
)
def test_what_is_done_about_the_agent(seen, of, expected):
    assert agent_actions(of, running_world(**seen)) == expected


def test_the_agent_is_observed_only_where_it_should_run():
    assert wanted_commands(WANTED, running_world()) == ("idea",)
    for seen in ({"node": None}, {"machine": machine(of={"deleting": True})}, {"machine": None}):
        assert wanted_commands(WANTED, running_world(**seen)) == ()
    assert wanted_commands(intent(), running_world()) == ()


def test_it_is_kept_up_while_the_schedule_is_disabled_but_not_while_paused():
    off = intent(killIfCommands=["idea"], schedule={"enabled": False})
    assert decide(off, running_world(reclaim_agent=ReclaimAgent()), MORNING).actions == (EQUIP,)
    paused = running_world(reclaim_agent=ReclaimAgent(), cluster=cluster(paused=True))
    assert decide(WANTED, paused, MORNING).actions == ()


def test_it_comes_last_as_it_gives_the_node_a_new_version():
    tainted = intent(killIfCommands=["idea"], nodeTaints=[{"key": "a", "effect": "NoSchedule"}])
    plan = decide(tainted, running_world(reclaim_agent=ReclaimAgent()), MORNING)
    assert [type(one) for one in plan.actions] == [actions.ApplyTaints, actions.InstallAgent]


def test_while_the_agent_is_not_ready_it_is_requeued_with_backoff():
    missing = ReclaimAgent(problem=MISSING.problem, installed=False, requeue_after=timedelta(seconds=40))
    assert decide(WANTED, running_world(reclaim_agent=missing), MORNING).agent_requeue_after == timedelta(seconds=40)
    assert decide(WANTED, running_world(node=LABELLED, reclaim_agent=READY), MORNING).agent_requeue_after is None


@pytest.mark.parametrize(
    ("seen", "outcome", "status", "reason"),
    [
        ({"node": LABELLED, "reclaim_agent": READY}, None, "True", "AgentReady"),
        ({"reclaim_agent": MISSING}, None, "False", "AgentNamespaceMissing"),
        ({"reclaim_agent": READY}, Outcome(postponed=(EQUIP,)), "False", "NotEquipped"),
        ({"node": None}, None, "Unknown", "NoNodeYet"),
    ],
)
def test_the_condition_says_whether_the_agent_can_do_its_work(seen, outcome, status, reason):
    one = reported(running_world(**seen), of=WANTED, outcome=outcome)["ReclaimAgentReady"]
    assert (one.status, one.reason) == (status, reason)


def test_without_commands_or_machine_there_is_no_such_condition():
    assert "ReclaimAgentReady" not in reported()
    leaving = running_world(machine=machine(of={"deleting": True}))
    assert "ReclaimAgentReady" not in reported(leaving, of=WANTED)


@pytest.mark.parametrize(("reason", "warned"), [("AgentNamespaceMissing", True), ("AgentNotReady", False)])
def test_a_missing_installation_is_a_warning_and_a_slow_start_is_not(reason, warned):
    seen = running_world(node=LABELLED, reclaim_agent=ReclaimAgent(("idea",), Problem(reason, "not there")))
    plan = decide(WANTED, seen, MORNING)
    after = report(situation(of=WANTED, seen=seen), plan, Outcome())
    assert (reason in [notice.reason for notice in new_events(seen.status, after, plan, Outcome())]) is warned


def test_failing_to_equip_stops_nothing_else():
    sim = Simulation()
    sim.edit(killIfCommands=["idea"])
    sim.settle()
    sim.provision()
    sim.fails = actions.InstallAgent
    last = sim.step()
    assert sim.node is not None
    assert last.outcome.postponed == (actions.InstallAgent("node-7", sim.node.uid, ("idea",)),)
    assert condition(sim.status, "Ready").status == "True"
    sim.fails = None
    sim.settle()
    assert condition(sim.status, "ReclaimAgentReady").status == "True"


@pytest.mark.parametrize(
    ("of", "seen", "otherwise"),
    [(WANTED, {"reclaim_agent": ReclaimAgent()}, (EQUIP,)), (intent(), {"node": LABELLED}, (STRIP,))],
    ids=["equip", "strip"],
)
def test_a_reclaim_under_way_sees_to_the_agent_itself(of, seen, otherwise):
    under_way = running_status(reclaim={"requested_at": MORNING})
    assert agent_actions(of, running_world(**seen)) == otherwise
    assert agent_actions(of, running_world(**seen, status=under_way)) == ()
