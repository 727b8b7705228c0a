"""Every change of something that exists is tied to what was seen: its uid, or its version where a list is replaced.

So a replica that acts late, on an old view or after its successor, changes no object but the one it observed.
"""

from typing import Any, get_args

import orjson
import pytest

from crds.providers import DEFAULT_POLICY
from crds.status import Phase, Reclaim
from service.clock import SystemClock
from service.decide import plan as actions
from service.decide.intent import read_intent
from service.decide.plan import Plan
from service.decide.reasons import Reason
from service.decide.world import Role, Taint
from service.kube.client import Client
from service.kube.resource import CONFIG_MAPS, SCHEDULED_MACHINES, Resource
from service.kube.transport import Request
from service.objects.subject import Subject
from service.runtime.key import Key
from service.workload.clusters import WorkloadClusters
from tests.e2e.manifests import machine
from tests.service.act.building import Acting
from tests.service.decide.builders import MORNING, child, identity, node, pod, world

KEY = Key("team", "desk")
NODE = node(name="host", uid="uid-node", provider_id="test://host")
POD = pod("web", uid="uid-pod")
TAINTS = (Taint("example.com/spot", "NoSchedule"),)
SEEN, ITSELF = {"resourceVersion": "7"}, {"uid": "uid-desk"}
ITS_NODE, ITS_POD, ITS_CHILD = {"uid": "uid-node"}, {"uid": "uid-pod"}, {"uid": "uid-infra"}
INFRA = (Role.INFRASTRUCTURE, "desk-infra", "uid-infra")

CONDITIONS = [
    (actions.AddFinalizer(), [SEEN]),
    (actions.ReleaseFinalizer(), [SEEN]),
    (actions.RecordShutdown(MORNING), [SEEN]),
    (actions.RecordRemediation(1, MORNING, "uid-machine"), [SEEN]),
    (actions.RecordReclaim(Reclaim(requested_at=MORNING, reason="", node="host", machine_uid="uid-machine")), [SEEN]),
    (actions.DisableSchedule(), [ITSELF]),
    (actions.Patch(*INFRA, body={"spec": {}}, why=""), [ITS_CHILD]),
    (actions.Patch(*INFRA, body={"spec": {}}, why="", resource_version="5"), [{**ITS_CHILD, "resourceVersion": "5"}]),
    (actions.Delete(*INFRA, why=""), [ITS_CHILD]),
    (actions.Delete(*INFRA, why="", unchanged=True), [{**ITS_CHILD, "resourceVersion": "4"}]),
    (actions.Cordon("host", "uid-node", "3"), [{**ITS_NODE, "resourceVersion": "3"}]),
    (actions.Uncordon("host", "uid-node"), [ITS_NODE]),
    (actions.ApplyTaints("host", "uid-node", "3", TAINTS, "{}"), [{**ITS_NODE, "resourceVersion": "3"}]),
    (actions.AnnotateClose("host", "uid-node", "2026-03-06T18:00:00Z"), [ITS_NODE]),
    (actions.Evict((POD,)), [ITS_POD]),
    (actions.ForceDrain("host", "test://host"), [ITS_NODE, ITS_POD]),
    (actions.ClearReclaimRequest("host", "uid-node"), [ITS_NODE]),
    (actions.InstallAgent("host", "uid-node", ("idea",)), [ITS_NODE]),
    (actions.RemoveAgent("host", "uid-node"), [ITS_NODE]),
]
WRITTEN_WHOLE = CONFIG_MAPS.plural
"""The agent's ConfigMap has the name of its Node and is restored in the next pass; see ADR 7."""
LODGER = {"metadata": {"namespace": POD.namespace, "name": POD.name, "uid": POD.uid}}


class Wire:
    """Takes down what is written; answers as an API server that agrees with everything."""

    def __init__(self) -> None:
        self.client = Client.from_inline("https://127.0.0.1:1", token="t")
        self.client.transport.call = self._call  # type: ignore[method-assign]
        self.conditions: list[dict[str, Any]] = []
        self.version = "8"
        self.asked = 0

    async def _call(self, request: Request) -> bytes:
        if request.body is not None and request.resource != WRITTEN_WHOLE:
            self.conditions.append(_condition(request.verb, orjson.loads(request.body)))
        self.asked += (request.verb, request.resource) == ("get", SCHEDULED_MACHINES.plural)
        metadata = {"name": "desk", "namespace": "team", "uid": "uid-desk", "resourceVersion": self.version}
        return orjson.dumps(
            {"metadata": metadata, "items": [LODGER]} if request.verb == "list" else {"metadata": metadata}
        )


def _condition(verb: str, body: dict[str, Any]) -> dict[str, Any]:
    if verb == "create_eviction":
        body = body["deleteOptions"]
    found = body.get("preconditions") or {} if verb in ("create_eviction", "delete") else body["metadata"]
    wanted = ("resourceVersion",) if verb == "replace" else ("uid", "resourceVersion")
    return {name: found[name] for name in wanted if name in found}


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def acting(wire, monkeypatch):
    acting = Acting(wire.client, SystemClock(), WorkloadClusters(wire.client))
    writer = acting.writer

    async def known(*_):
        return NODE

    async def resource(*_):
        return Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "gadgets", "Gadget")

    monkeypatch.setattr(writer, "workload_client", lambda _subject: wire.client)
    monkeypatch.setattr(writer, "node_now", known)
    monkeypatch.setattr(writer, "resource_of", resource)
    for absorbed in ("absorb_node", "absorb_agent_config"):
        monkeypatch.setattr(writer, absorbed, lambda *_: None)
    return acting


@pytest.fixture
def subject(acting):
    raw = machine(KEY.name)
    raw["metadata"] |= {"namespace": KEY.namespace, "uid": "uid-desk", "resourceVersion": "7"}
    acting.watches.scheduled.absorb(raw)
    return Subject.read(KEY, raw, read_intent(raw, DEFAULT_POLICY), SystemClock())


async def perform(acting, subject, *planned):
    there = child(
        Role.INFRASTRUCTURE, name="desk-infra", uid="uid-infra", namespace=KEY.namespace, resource_version="4"
    )
    seen = world(me=identity(namespace=KEY.namespace, uid="uid-desk"), infrastructure=there)
    plan = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "", actions=planned)
    _, outcome = await acting.performer.perform(subject, seen, plan)
    return outcome


@pytest.mark.parametrize(("action", "conditions"), CONDITIONS, ids=lambda part: type(part).__name__)
async def test_a_change_is_tied_to_what_was_seen(wire, acting, subject, action, conditions):
    assert (await perform(acting, subject, action)).did(type(action))
    assert wire.conditions == conditions


def test_every_action_but_creation_is_in_the_list():
    assert {type(action) for action, _ in CONDITIONS} == set(get_args(actions.Action)) - {actions.Create}


TAKES_AWAY = (
    actions.Cordon("host", "uid-node", "3"),
    actions.Evict((POD,)),
    actions.ForceDrain("host", "test://host"),
    actions.Delete(*INFRA, why=""),
)


@pytest.mark.parametrize("action", TAKES_AWAY, ids=lambda action: type(action).__name__)
async def test_nothing_is_removed_if_the_scheduled_machine_has_changed_since_it_was_read(wire, acting, subject, action):
    acting.stale = True
    outcome = await perform(acting, subject, action)
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert wire.conditions == []


async def test_a_cache_that_may_be_behind_is_checked_once_before_several_removals(wire, acting, subject):
    acting.stale = True
    wire.version = "7"
    outcome = await perform(acting, subject, *TAKES_AWAY)
    assert (outcome.done, wire.asked) == (TAKES_AWAY, 1)


async def test_an_up_to_date_cache_or_a_status_just_stored_saves_the_check_before_removals(wire, acting, subject):
    await perform(acting, subject, *TAKES_AWAY)
    acting.stale = True
    outcome = await perform(acting, subject, actions.RecordShutdown(MORNING), *TAKES_AWAY)
    assert (outcome.done[1:], wire.asked) == (TAKES_AWAY, 0)
