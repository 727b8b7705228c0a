"""Actions on Nodes and pods, on a real API server that stands for management and workload cluster alike."""

import asyncio
import base64
import secrets
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from crds.providers import DEFAULT_POLICY
from crds.schema import custom_resource_definition
from crds.status import Phase
from local.crds import apply
from service.act import nodes, reclaim
from service.clock import ManualClock
from service.decide import plan as actions
from service.decide.intent import read_intent
from service.decide.plan import Plan
from service.decide.reasons import Reason
from service.decide.world import Pod, Role, Taint
from service.kube.errors import AlreadyExists, Forbidden, NotFound, Unavailable
from service.kube.resource import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    SCHEDULED_MACHINES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from service.kube.transport import Call
from service.objects import views
from service.objects.subject import Subject
from service.runtime.key import Key
from service.sharding.fence import NotOursError
from service.workload.clusters import WorkloadClusters
from service.workload.connection import ClusterListener
from tests.e2e.manifests import machine
from tests.e2e.pods import BUDGETS, is_going
from tests.service.act.building import Acting
from tests.service.decide.builders import child, identity, world
from tests.waiting import running, until
from tests.watching import until as until_object
from tests.watching import until_gone

READY = {"type": "Ready", "status": "True"}


@pytest.fixture
async def client(small_cluster):
    async with small_cluster.client() as admin:
        yield admin


@pytest.fixture
async def node(client):
    name = f"node-{secrets.token_hex(4)}"
    yield await client.create(NODES, {"metadata": {"name": name}, "spec": {"providerID": f"test://{name}"}})
    await client.delete(NODES, name)


class Hands:
    """A performer, and the ScheduledMachine on whose behalf it acts."""

    def __init__(self, client, namespace, uid):
        self.calls: list[Call] = []
        self.workloads = WorkloadClusters(client, ClusterListener(call=self.calls.append))
        self.clock = ManualClock(datetime.now(UTC))
        self.acting = Acting(client, self.clock, self.workloads)
        self.performer = self.acting.performer
        self.world = world(me=identity(namespace=namespace, uid=uid))
        raw = machine("desk")
        raw["metadata"] |= {"namespace": namespace, "uid": uid, "resourceVersion": "1"}
        key = Key(namespace, "desk")
        self.subject = Subject.read(key, raw, read_intent(raw, DEFAULT_POLICY), self.clock)
        self.heard = self.acting.watches.scheduled
        self.heard.absorb(raw)

    async def do(self, *planned, until=None):
        plan = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message", actions=planned, requeue_at=until)
        _, outcome = await self.performer.perform(self.subject, self.world, plan)
        return outcome


@asynccontextmanager
async def acting(client, namespace, uid="my-uid"):
    hands = Hands(client, namespace, uid)
    async with running(hands.workloads.run()):
        await asyncio.sleep(0)
        assert hands.subject.cluster is not None
        connection = hands.workloads.hold(hands.subject.cluster, hands.subject.key)
        await asyncio.wait_for(connection.settled.wait(), 60)
        yield hands


@pytest.fixture
async def hands(small_cluster, client, namespace):
    text = small_cluster.access.kubeconfig().encode()
    secret = {
        "metadata": {"name": "demo-kubeconfig", "labels": {names.LABEL_CLUSTER_NAME: "demo"}},
        "type": names.KUBECONFIG_SECRET_TYPE,
        "data": {"value": base64.b64encode(text).decode()},
    }
    await client.create(SECRETS, secret, namespace=namespace)
    async with acting(client, namespace) as ready:
        yield ready


def cordon(node, **changes):
    metadata = {**node["metadata"], **changes}
    return actions.Cordon(metadata["name"], metadata["uid"], metadata["resourceVersion"])


async def cordoned(client, hands, node):
    """Cordons it, in whatever version Kubernetes' own controllers have brought it to meanwhile."""
    for _ in range(10):
        outcome = await hands.do(cordon(await client.get(NODES, node["metadata"]["name"])))
        if not outcome.interrupted:
            break
    assert outcome.did(actions.Cordon)


# Children


def bootstrap(made_from, owner):
    notes = {names.ANNOTATION_SPEC_HASH: made_from}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "desk-bootstrap", "annotations": notes, "ownerReferences": [owner]},
        "spec": {"podSelector": {}},
    }


@pytest.mark.parametrize(("made_from", "taken"), [("this", True), ("another", False)])
async def test_an_object_that_is_there_already_is_taken_only_if_it_was_made_from_the_same_spec(
    client, namespace, made_from, taken
):
    # An owner that really exists: Kubernetes takes away what belongs to nobody, at a moment of its own.
    uid = (await client.get(NAMESPACES, namespace))["metadata"]["uid"]
    owner = {**NAMESPACES.envelope(), "name": namespace, "uid": uid}
    async with acting(client, namespace, uid) as hands:
        await hands.do(actions.Create(Role.BOOTSTRAP, bootstrap(made_from, owner)))
        again = await hands.do(actions.Create(Role.BOOTSTRAP, bootstrap("this", owner)))
    assert (len(again.done), again.interrupted) == ((1, False) if taken else (0, True))


# Nodes


async def test_a_cordon_remembers_that_it_was_ours_and_is_undone_with_it(client, hands, node):
    name = node["metadata"]["name"]
    await cordoned(client, hands, node)
    seen = await client.get(NODES, name)
    assert seen["spec"]["unschedulable"]
    assert seen["metadata"]["annotations"][names.ANNOTATION_CORDONED] == hands.subject.me.uid

    await hands.do(actions.Uncordon(node=name, uid=node["metadata"]["uid"]))
    seen = await client.get(NODES, name)
    assert "unschedulable" not in seen["spec"]
    assert names.ANNOTATION_CORDONED not in seen["metadata"].get("annotations", {})


@pytest.mark.parametrize("change", [{"uid": "of-another"}, {"name": "gone"}], ids=["registered again", "gone"])
async def test_a_node_that_is_no_longer_the_one_that_was_seen_is_looked_at_again(client, hands, node, change):
    outcome = await hands.do(cordon(node, **change), cordon(node))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert "unschedulable" not in (await client.get(NODES, node["metadata"]["name"]))["spec"]


async def test_a_cordon_that_somebody_else_made_meanwhile_is_not_taken_for_ours(client, hands, node):
    seen = await client.get(NODES, node["metadata"]["name"])
    await client.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": True}})
    outcome = await hands.do(cordon(seen))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    stored = await client.get(NODES, node["metadata"]["name"])
    assert names.ANNOTATION_CORDONED not in stored["metadata"].get("annotations", {})


async def test_taints_are_written_only_to_the_version_that_was_seen(client, hands, node):
    name, uid, version = (node["metadata"][part] for part in ("name", "uid", "resourceVersion"))
    theirs = {"key": "admin.example/x", "effect": "NoExecute"}
    ours = Taint("example.com/spot", "NoSchedule", "yes")
    await client.patch(NODES, name, {"spec": {"taints": [theirs]}})
    outcome = await hands.do(actions.ApplyTaints(name, uid, version, (ours,), "{}"))
    assert outcome.interrupted
    stored = (await client.get(NODES, name))["spec"]["taints"]
    assert theirs in stored
    assert ours.key not in {taint["key"] for taint in stored}

    # The node lifecycle controller taints a Node without a kubelet whenever it likes: whoever loses looks again.
    for _ in range(10):
        seen = views.node(await client.get(NODES, name))
        outcome = await hands.do(actions.ApplyTaints(name, uid, seen.resource_version, (*seen.taints, ours), "{}"))
        if outcome.did(actions.ApplyTaints):
            break
    assert outcome.did(actions.ApplyTaints)
    stored = (await client.get(NODES, name))["spec"]["taints"]
    assert theirs in stored
    assert {"key": "example.com/spot", "effect": "NoSchedule", "value": "yes"} in stored


async def test_what_a_write_to_a_node_ran_into_is_known_before_its_watch_tells(client, hands, node, monkeypatch):
    name, uid, version = (node["metadata"][part] for part in ("name", "uid", "resourceVersion"))
    known = hands.workloads.get(hands.subject.cluster).nodes
    monkeypatch.setattr(known, "upsert", lambda _raw: False)  # the watch is deaf
    theirs, ours = {"key": "admin.example/x", "effect": "NoExecute"}, Taint("example.com/spot", "NoSchedule", "yes")
    await client.patch(NODES, name, {"spec": {"taints": [theirs]}})
    assert (await hands.do(actions.ApplyTaints(name, uid, version, (ours,), "{}"))).interrupted
    assert theirs in known.get(Key("", name))["spec"]["taints"]


async def test_taints_that_are_refused_are_told_and_do_not_keep_our_cordon_on_the_node(client, hands, node):
    name, wrong = node["metadata"]["name"], Taint("no key!", "NoSchedule")
    await cordoned(client, hands, node)
    uid = node["metadata"]["uid"]
    uncordon = actions.Uncordon(node=name, uid=uid)
    for _ in range(10):  # Kubernetes' own controllers write to a new Node too
        version = (await client.get(NODES, name))["metadata"]["resourceVersion"]
        outcome = await hands.do(actions.ApplyTaints(name, uid, version, (wrong,), "{}"), uncordon)
        if not outcome.interrupted:
            break
    assert (outcome.done, type(outcome.failure.action)) == ((uncordon,), actions.ApplyTaints)
    assert "unschedulable" not in (await client.get(NODES, name))["spec"]


@pytest.mark.parametrize("back", [False, True], ids=["gone", "registered again"])
async def test_taints_bring_no_node_back_that_is_gone_and_touch_no_other_of_its_name(client, hands, back):
    name, spot = f"node-{secrets.token_hex(4)}", Taint("example.com/spot", "NoSchedule", "yes")
    body = {"metadata": {"name": name}}
    seen = views.node(await client.create(NODES, body))
    await client.delete(NODES, name)
    await until_gone(client, NODES, name)
    if back:
        await client.create(NODES, body)
    outcome = await hands.do(actions.ApplyTaints(name, seen.uid, seen.resource_version, (spot,), "{}"))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    if back:
        stored = await client.get(NODES, name)
        assert spot.key not in {taint["key"] for taint in stored["spec"].get("taints", ())}
        await client.delete(NODES, name)
    else:
        with pytest.raises(NotFound):
            await client.get(NODES, name)


async def test_without_a_way_to_the_cluster_nothing_is_tried_and_the_reason_is_said(client, namespace, node):
    async with acting(client, namespace) as hands:
        outcome = await hands.do(cordon(node))
    assert outcome.failure.reason == "WorkloadClusterUnreachable"
    assert "demo-kubeconfig" in outcome.failure.message


async def test_what_fails_of_the_agents_needs_is_left_for_later_and_is_no_trouble(client, namespace, node):
    target = node["metadata"]["name"], node["metadata"]["uid"]
    needs = actions.InstallAgent(*target, ("idea",)), actions.ClearReclaimRequest(*target)
    async with acting(client, namespace) as hands:
        outcome = await hands.do(*needs)
    assert (outcome.postponed, outcome.failure, outcome.interrupted) == (needs, None, False)


# Children


GADGETS = Resource("infrastructure.cluster.x-k8s.io", "v1beta9", "gadgets", "Gadget")
"""A kind in a version that this API server does not serve, or not any more."""


def deletion(name, uid):
    return actions.Delete(role=Role.INFRASTRUCTURE, name=name, uid=uid, why="the window closed")


async def delete_as(hands, resource, raw):
    """Asks for the deletion of an infrastructure object of that resource."""

    async def resource_of(*_):
        return resource

    hands.acting.writer.resource_of = resource_of
    metadata = raw["metadata"]
    there = child(Role.INFRASTRUCTURE, name=metadata["name"], uid=metadata["uid"], namespace=metadata["namespace"])
    seen = world(me=identity(namespace=metadata["namespace"]), infrastructure=there)
    planned = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message", actions=(deletion(there.name, there.uid),))
    return await hands.performer.perform(hands.subject, seen, planned)


async def test_that_a_kind_is_not_served_is_no_proof_that_an_object_of_it_was_deleted(hands, namespace):
    raw = {"metadata": {"name": "desk-infra", "namespace": namespace, "uid": "u"}}
    after, outcome = await delete_as(hands, GADGETS, raw)
    assert after.infrastructure is not None
    assert (outcome.done, outcome.failure.reason) == ((), "APIUnavailable")


async def test_an_object_that_the_api_server_does_not_have_is_gone(hands, namespace):
    raw = {"metadata": {"name": "desk-infra", "namespace": namespace, "uid": "u"}}
    after, outcome = await delete_as(hands, CONFIG_MAPS, raw)
    assert (after.infrastructure, outcome.did(actions.Delete)) == (None, True)


async def test_what_stood_in_the_way_of_a_creation_and_is_gone_when_looked_at_is_no_missing_provider(
    client, hands, namespace, monkeypatch
):
    async def taken(*_args, **_options):
        raise AlreadyExists("it is there")

    monkeypatch.setattr(client, "create", taken)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone-by-then"}}
    outcome = await hands.do(actions.Create(role=Role.INFRASTRUCTURE, manifest=manifest))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)


CREATE = actions.Create(
    role=Role.INFRASTRUCTURE,
    manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "desk-infra"}},
)


@pytest.fixture
async def stored(small_cluster, client, hands, namespace):
    """The ScheduledMachine, which exists, and of which we may have old news."""
    await apply(client, custom_resource_definition())
    raw = await client.create(SCHEDULED_MACHINES, machine("desk", infrastructure={"address": "a"}), namespace=namespace)
    hands.subject.raw = raw
    hands.heard.absorb_deletion(hands.subject.key, "my-uid")
    hands.heard.absorb(raw)
    hands.acting.stale = True
    yield hands
    with suppress(NotFound):
        await client.delete(SCHEDULED_MACHINES, "desk", namespace=namespace)


async def create_for(hands, namespace, *before):
    plan = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message", actions=(*before, CREATE))
    _, outcome = await hands.performer.perform(hands.subject, world(me=identity(namespace=namespace)), plan)
    return outcome


async def exists(client, namespace):
    return "desk-infra" in {raw["metadata"]["name"] for raw in await client.list(CONFIG_MAPS, namespace=namespace)}


async def test_what_is_as_it_was_gets_its_children_however_old_the_news(client, stored, namespace):
    assert (await create_for(stored, namespace)).did(actions.Create)
    assert await exists(client, namespace)


async def test_nothing_is_made_for_a_scheduled_machine_that_is_gone_unheard(client, stored, namespace):
    await client.delete(SCHEDULED_MACHINES, "desk", namespace=namespace)
    outcome = await create_for(stored, namespace)
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert not await exists(client, namespace)


async def test_what_was_edited_unheard_is_thought_over_first(client, stored, namespace):
    edited = await client.patch(SCHEDULED_MACHINES, "desk", {"spec": {"killSwitch": True}}, namespace=namespace)
    assert (await create_for(stored, namespace)).interrupted
    assert not await exists(client, namespace)
    seen = stored.acting.observer.subject(stored.subject.key)
    assert seen.resource_version == edited["metadata"]["resourceVersion"], "the next look starts from there"


async def test_nothing_more_is_made_for_what_was_heard_to_be_edited_meanwhile(client, stored, namespace):
    stored.acting.stale = False
    off = {"spec": {"schedule": {"enabled": False}}}
    stored.heard.absorb(await client.patch(SCHEDULED_MACHINES, "desk", off, namespace=namespace), notify=True)
    outcome = await create_for(stored, namespace)
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert not await exists(client, namespace)


async def test_another_scheduled_machine_of_the_same_name_is_not_taken_for_ours(client, stored, namespace):
    body = machine("desk", infrastructure={"address": "a"})
    await client.delete(SCHEDULED_MACHINES, "desk", namespace=namespace)
    await client.create(SCHEDULED_MACHINES, body, namespace=namespace)
    assert (await create_for(stored, namespace)).interrupted
    assert not await exists(client, namespace)


async def test_who_knows_asks_nothing_and_neither_does_who_has_just_written_to_it(client, stored, namespace):
    calls = []
    client.observe_calls(lambda call: calls.append((call.verb, call.resource)))
    await create_for(stored, namespace, actions.RecordShutdown(started_at=None))
    assert ("get", "scheduledmachines") not in calls
    stored.acting.stale = False
    await client.delete(CONFIG_MAPS, "desk-infra", namespace=namespace)
    assert (await create_for(stored, namespace)).did(actions.Create)
    assert ("get", "scheduledmachines") not in calls


# Pods


@pytest.fixture
async def pod(client, namespace):
    await until_object(client, SERVICE_ACCOUNTS, "default", bool, namespace=namespace)
    metadata = {"name": "web", "labels": {"app": "web"}, "finalizers": ["tests.example/hold"]}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    yield views.pod(await client.create(PODS, body, namespace=namespace))
    await client.patch(PODS, "web", {"metadata": {"finalizers": None}}, namespace=namespace)


async def going(client, pod):
    return is_going(await client.get(PODS, pod.name, namespace=pod.namespace))


async def test_a_pod_is_asked_to_leave(client, hands, pod):
    outcome = await hands.do(actions.Evict(pods=(pod,)))
    assert (outcome.blockers, outcome.did(actions.Evict)) == ((), True)
    assert await going(client, pod)


async def test_a_pod_that_is_gone_holds_nothing_up(hands, namespace):
    gone = Pod(namespace, "gone", "uid", None, mirror=False, finished=False, deleting=False)
    assert (await hands.do(actions.Evict(pods=(gone,)))).blockers == ()


async def test_a_budget_that_refuses_is_quoted(client, hands, pod):
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await client.create(BUDGETS, {"metadata": {"name": "keep"}, "spec": spec}, namespace=pod.namespace)
    await client.patch(
        PODS,
        pod.name,
        {"status": {"phase": "Running", "conditions": [READY]}},
        namespace=pod.namespace,
        subresource="status",
    )
    await until_object(
        client, BUDGETS, "keep", lambda raw: raw.get("status", {}).get("currentHealthy") == 1, namespace=pod.namespace
    )
    (blocker,) = (await hands.do(actions.Evict(pods=(pod,)))).blockers
    assert blocker.pod == pod
    assert blocker.reason == "The disruption budget keep needs 1 healthy pods and has 1 currently"
    assert not await going(client, pod)


async def test_a_server_that_falls_silent_is_not_asked_for_every_pod(hands, namespace, monkeypatch):
    asked = []

    async def silent(_resource, name, *_args, **_options):
        asked.append(name)
        raise Unavailable("no answer in time")

    connection = hands.workloads.get(hands.subject.cluster)
    monkeypatch.setattr(connection.client(), "create_subresource", silent)
    pods = tuple(Pod(namespace, str(n), "u", None, mirror=False, finished=False, deleting=False) for n in range(100))
    outcome = await hands.do(actions.Evict(pods=pods))
    assert outcome.failure.reason == "APIUnavailable"
    assert len(asked) <= nodes.EVICTIONS_AT_ONCE


async def test_no_eviction_is_under_way_any_more_when_one_was_refused_for_want_of_a_lease():
    """Whoever gets the lease next may act as soon as this pass has ended."""

    async def create_subresource(_resource, name, *_args, **_options):
        if name == "first":
            raise NotOursError
        await asyncio.sleep(0.01)
        ended.append(name)
        return {}

    ended: list[str] = []
    client: Any = SimpleNamespace(create_subresource=create_subresource)
    pods = tuple(
        Pod("a", name, "u", None, mirror=False, finished=False, deleting=False) for name in ("first", "second")
    )
    with pytest.raises(NotOursError):
        await nodes._evict(client, actions.Evict(pods), lambda: False)
    assert ended == ["second"]


async def test_nobody_is_moved_any_more_once_the_scheduled_machine_was_edited(hands, namespace, monkeypatch):
    asked = []

    async def edit(_resource, name, *_args, **_options):
        asked.append(name)
        later = {**hands.subject.raw, "metadata": {**hands.subject.raw["metadata"], "resourceVersion": "2"}}
        hands.heard.absorb(later, notify=True)
        return {}

    connection = hands.workloads.get(hands.subject.cluster)
    monkeypatch.setattr(connection.client(), "create_subresource", edit)
    pods = tuple(Pod(namespace, str(n), "u", None, mirror=False, finished=False, deleting=False) for n in range(100))
    outcome = await hands.do(actions.Evict(pods=pods))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert len(asked) <= nodes.EVICTIONS_AT_ONCE


async def test_nobody_is_moved_any_more_once_it_is_time_to_look_again(hands, namespace, monkeypatch):
    """As a window opened, or the Machine is to go at once: a cluster that takes long to answer must not hide that."""
    asked = []

    async def slow(_resource, name, *_args, **_options):
        asked.append(name)
        hands.clock.advance(timedelta(seconds=10))
        return {}

    connection = hands.workloads.get(hands.subject.cluster)
    monkeypatch.setattr(connection.client(), "create_subresource", slow)
    pods = tuple(Pod(namespace, str(n), "u", None, mirror=False, finished=False, deleting=False) for n in range(100))
    outcome = await hands.do(actions.Evict(pods=pods), until=hands.clock.now() + timedelta(seconds=60))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert len(asked) == 6


# Emergencies


@pytest.fixture
async def lodger(client, hands, node, pod):
    """A pod on the Node, which the connection has seen."""
    name = node["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": name}
    binding = {"metadata": {"name": pod.name}, "target": target}
    await client.create_subresource(PODS, pod.name, "binding", binding, namespace=pod.namespace)
    connection = hands.workloads.get(hands.subject.cluster)
    await until(lambda: connection.nodes.get(Key("", name)))
    return pod


def force_drain(node):
    return actions.ForceDrain(node=node["metadata"]["name"], provider_id=node["spec"]["providerID"])


async def test_a_node_is_closed_before_its_pods_are_deleted_or_their_successors_would_come_to_it(
    client, hands, node, lodger
):
    assert (await hands.do(force_drain(node))).did(actions.ForceDrain)
    assert await going(client, lodger)
    seen = await client.get(NODES, node["metadata"]["name"])
    assert seen["spec"]["unschedulable"]
    assert seen["metadata"]["annotations"][names.ANNOTATION_CORDONED] == hands.subject.me.uid


async def test_a_cordon_of_somebody_else_stays_his_in_an_emergency_too(client, hands, node, lodger):
    name = node["metadata"]["name"]
    await client.patch(NODES, name, {"spec": {"unschedulable": True}})
    connection = hands.workloads.get(hands.subject.cluster)
    await until(lambda: connection.nodes.get(Key("", name))["spec"].get("unschedulable"))
    await hands.do(force_drain(node))
    assert await going(client, lodger)
    assert names.ANNOTATION_CORDONED not in (await client.get(NODES, name))["metadata"].get("annotations", {})


async def test_a_node_that_cannot_be_closed_is_emptied_all_the_same(client, hands, node, lodger, monkeypatch):
    async def refused(*_args, **_options):
        raise Forbidden("not allowed")

    monkeypatch.setattr(hands.workloads.get(hands.subject.cluster).client(), "patch", refused)
    assert (await hands.do(force_drain(node))).did(actions.ForceDrain)
    assert await going(client, lodger)


async def test_another_host_under_the_name_of_the_node_keeps_its_pods(client, hands, node, lodger):
    await hands.do(actions.ForceDrain(node=node["metadata"]["name"], provider_id="test://another"))
    assert not await going(client, lodger)
    assert "unschedulable" not in (await client.get(NODES, node["metadata"]["name"]))["spec"]


@pytest.mark.parametrize("call", ["list_page", "delete"])
async def test_what_does_not_answer_is_given_up_when_the_time_is_up(hands, node, lodger, monkeypatch, call):
    async def never(*_args, **_options):
        await asyncio.Event().wait()

    assert reclaim.DRAIN_SECONDS == 60
    monkeypatch.setattr(reclaim, "DRAIN_SECONDS", 0.2)
    monkeypatch.setattr(hands.workloads.get(hands.subject.cluster).client(), call, never)
    async with asyncio.timeout(30):
        outcome = await hands.do(force_drain(node))
    assert (outcome.did(actions.ForceDrain), outcome.failure) == (True, None)


@pytest.mark.parametrize(("labels", "written"), [({}, 1), ({names.LABEL_RECLAIM_AGENT: "enabled"}, 0)])
async def test_a_node_that_has_the_label_of_the_agent_is_not_written_to(client, hands, node, labels, written):
    name = node["metadata"]["name"]
    await client.patch(NODES, name, {"metadata": {"labels": {"seen": "true", **labels}}})
    connection = hands.workloads.get(hands.subject.cluster)
    await until(lambda: "seen" in (connection.nodes.get(Key("", name)) or node)["metadata"].get("labels", {}))
    hands.calls.clear()
    await hands.do(actions.InstallAgent(name, node["metadata"]["uid"], ("idea",)))
    assert [call.verb for call in hands.calls if call.resource == "nodes"] == ["patch"] * written
