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
from service.sharding.fence import ShardNotHeldError
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


class Harness:
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
        self.cache = self.acting.watches.scheduled
        self.cache.absorb(raw)

    async def do(self, *planned, until=None):
        plan = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message", actions=planned, requeue_at=until)
        _, outcome = await self.performer.perform(self.subject, self.world, plan)
        return outcome


@asynccontextmanager
async def acting(client, namespace, uid="my-uid"):
    harness = Harness(client, namespace, uid)
    async with running(harness.workloads.run()):
        await asyncio.sleep(0)
        assert harness.subject.cluster is not None
        connection = harness.workloads.hold(harness.subject.cluster, harness.subject.key)
        await asyncio.wait_for(connection.settled.wait(), 60)
        yield harness


@pytest.fixture
async def harness(small_cluster, client, namespace):
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


async def cordoned(client, harness, node):
    """Cordons it, in whatever version Kubernetes' own controllers have brought it to meanwhile."""
    for _ in range(10):
        outcome = await harness.do(cordon(await client.get(NODES, node["metadata"]["name"])))
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
    # An owner that really exists: the garbage collector deletes objects without an owner, at a moment of its own.
    uid = (await client.get(NAMESPACES, namespace))["metadata"]["uid"]
    owner = {**NAMESPACES.envelope(), "name": namespace, "uid": uid}
    async with acting(client, namespace, uid) as harness:
        await harness.do(actions.Create(Role.BOOTSTRAP, bootstrap(made_from, owner)))
        again = await harness.do(actions.Create(Role.BOOTSTRAP, bootstrap("this", owner)))
    assert (len(again.done), again.interrupted) == ((1, False) if taken else (0, True))


# Nodes


async def test_a_cordon_remembers_that_it_was_ours_and_is_undone_with_it(client, harness, node):
    name = node["metadata"]["name"]
    await cordoned(client, harness, node)
    seen = await client.get(NODES, name)
    assert seen["spec"]["unschedulable"]
    assert seen["metadata"]["annotations"][names.ANNOTATION_CORDONED] == harness.subject.me.uid

    await harness.do(actions.Uncordon(node=name, uid=node["metadata"]["uid"]))
    seen = await client.get(NODES, name)
    assert "unschedulable" not in seen["spec"]
    assert names.ANNOTATION_CORDONED not in seen["metadata"].get("annotations", {})


@pytest.mark.parametrize("change", [{"uid": "of-another"}, {"name": "gone"}], ids=["registered again", "gone"])
async def test_a_node_that_was_replaced_since_it_was_observed_is_observed_again(client, harness, node, change):
    outcome = await harness.do(cordon(node, **change), cordon(node))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert "unschedulable" not in (await client.get(NODES, node["metadata"]["name"]))["spec"]


async def test_a_cordon_that_a_user_set_meanwhile_is_not_marked_as_ours(client, harness, node):
    seen = await client.get(NODES, node["metadata"]["name"])
    await client.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": True}})
    outcome = await harness.do(cordon(seen))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    stored = await client.get(NODES, node["metadata"]["name"])
    assert names.ANNOTATION_CORDONED not in stored["metadata"].get("annotations", {})


async def test_taints_are_written_only_to_the_version_that_was_seen(client, harness, node):
    name, uid, version = (node["metadata"][part] for part in ("name", "uid", "resourceVersion"))
    theirs = {"key": "admin.example/x", "effect": "NoExecute"}
    ours = Taint("example.com/spot", "NoSchedule", "yes")
    await client.patch(NODES, name, {"spec": {"taints": [theirs]}})
    outcome = await harness.do(actions.ApplyTaints(name, uid, version, (ours,), "{}"))
    assert outcome.interrupted
    stored = (await client.get(NODES, name))["spec"]["taints"]
    assert theirs in stored
    assert ours.key not in {taint["key"] for taint in stored}

    # The node lifecycle controller taints a Node without a kubelet whenever it likes: the write that loses is retried.
    for _ in range(10):
        seen = views.node(await client.get(NODES, name))
        outcome = await harness.do(actions.ApplyTaints(name, uid, seen.resource_version, (*seen.taints, ours), "{}"))
        if outcome.did(actions.ApplyTaints):
            break
    assert outcome.did(actions.ApplyTaints)
    stored = (await client.get(NODES, name))["spec"]["taints"]
    assert theirs in stored
    assert {"key": "example.com/spot", "effect": "NoSchedule", "value": "yes"} in stored


async def test_a_conflict_in_a_write_to_a_node_is_known_before_its_watch_event(client, harness, node, monkeypatch):
    name, uid, version = (node["metadata"][part] for part in ("name", "uid", "resourceVersion"))
    known = harness.workloads.get(harness.subject.cluster).nodes
    monkeypatch.setattr(known, "upsert", lambda _raw: False)  # the watch is deaf
    theirs, ours = {"key": "admin.example/x", "effect": "NoExecute"}, Taint("example.com/spot", "NoSchedule", "yes")
    await client.patch(NODES, name, {"spec": {"taints": [theirs]}})
    assert (await harness.do(actions.ApplyTaints(name, uid, version, (ours,), "{}"))).interrupted
    assert theirs in known.get(Key("", name))["spec"]["taints"]


async def test_refused_taints_are_reported_and_do_not_keep_our_cordon_on_the_node(client, harness, node):
    name, wrong = node["metadata"]["name"], Taint("no key!", "NoSchedule")
    await cordoned(client, harness, node)
    uid = node["metadata"]["uid"]
    uncordon = actions.Uncordon(node=name, uid=uid)
    for _ in range(10):  # Kubernetes' own controllers write to a new Node too
        version = (await client.get(NODES, name))["metadata"]["resourceVersion"]
        outcome = await harness.do(actions.ApplyTaints(name, uid, version, (wrong,), "{}"), uncordon)
        if not outcome.interrupted:
            break
    assert (outcome.done, type(outcome.failure.action)) == ((uncordon,), actions.ApplyTaints)
    assert "unschedulable" not in (await client.get(NODES, name))["spec"]


@pytest.mark.parametrize("back", [False, True], ids=["gone", "registered again"])
async def test_taints_bring_no_node_back_that_is_gone_and_touch_no_other_of_its_name(client, harness, back):
    name, spot = f"node-{secrets.token_hex(4)}", Taint("example.com/spot", "NoSchedule", "yes")
    body = {"metadata": {"name": name}}
    seen = views.node(await client.create(NODES, body))
    await client.delete(NODES, name)
    await until_gone(client, NODES, name)
    if back:
        await client.create(NODES, body)
    outcome = await harness.do(actions.ApplyTaints(name, seen.uid, seen.resource_version, (spot,), "{}"))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    if back:
        stored = await client.get(NODES, name)
        assert spot.key not in {taint["key"] for taint in stored["spec"].get("taints", ())}
        await client.delete(NODES, name)
    else:
        with pytest.raises(NotFound):
            await client.get(NODES, name)


async def test_without_a_kubeconfig_nothing_is_tried_and_the_failure_names_the_secret(client, namespace, node):
    async with acting(client, namespace) as harness:
        outcome = await harness.do(cordon(node))
    assert outcome.failure.reason == "WorkloadClusterUnreachable"
    assert "demo-kubeconfig" in outcome.failure.message


async def test_a_failure_to_install_the_agent_is_postponed_and_fails_nothing_else(client, namespace, node):
    target = node["metadata"]["name"], node["metadata"]["uid"]
    needs = actions.InstallAgent(*target, ("idea",)), actions.ClearReclaimRequest(*target)
    async with acting(client, namespace) as harness:
        outcome = await harness.do(*needs)
    assert (outcome.postponed, outcome.failure, outcome.interrupted) == (needs, None, False)


# Children


GADGETS = Resource("infrastructure.cluster.x-k8s.io", "v1beta9", "gadgets", "Gadget")
"""A kind in a version that this API server does not serve, or not any more."""


def deletion(name, uid):
    return actions.Delete(role=Role.INFRASTRUCTURE, name=name, uid=uid, why="the window closed")


async def delete_as(harness, resource, raw):
    """Asks for the deletion of an infrastructure object of that resource."""

    async def resource_of(*_):
        return resource

    harness.acting.writer.resource_of = resource_of
    metadata = raw["metadata"]
    there = child(Role.INFRASTRUCTURE, name=metadata["name"], uid=metadata["uid"], namespace=metadata["namespace"])
    seen = world(me=identity(namespace=metadata["namespace"]), infrastructure=there)
    planned = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message", actions=(deletion(there.name, there.uid),))
    return await harness.performer.perform(harness.subject, seen, planned)


async def test_that_a_kind_is_not_served_is_no_proof_that_an_object_of_it_was_deleted(harness, namespace):
    raw = {"metadata": {"name": "desk-infra", "namespace": namespace, "uid": "u"}}
    after, outcome = await delete_as(harness, GADGETS, raw)
    assert after.infrastructure is not None
    assert (outcome.done, outcome.failure.reason) == ((), "APIUnavailable")


async def test_an_object_that_the_api_server_does_not_have_is_gone(harness, namespace):
    raw = {"metadata": {"name": "desk-infra", "namespace": namespace, "uid": "u"}}
    after, outcome = await delete_as(harness, CONFIG_MAPS, raw)
    assert (after.infrastructure, outcome.did(actions.Delete)) == (None, True)


async def test_an_obstacle_that_vanished_before_it_was_read_is_not_a_missing_provider(
    client, harness, namespace, monkeypatch
):
    async def taken(*_args, **_options):
        raise AlreadyExists("it is there")

    monkeypatch.setattr(client, "create", taken)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone-by-then"}}
    outcome = await harness.do(actions.Create(role=Role.INFRASTRUCTURE, manifest=manifest))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)


CREATE = actions.Create(
    role=Role.INFRASTRUCTURE,
    manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "desk-infra"}},
)


@pytest.fixture
async def stored(small_cluster, client, harness, namespace):
    """The ScheduledMachine, which exists, and of which the cache may be behind."""
    await apply(client, custom_resource_definition())
    raw = await client.create(SCHEDULED_MACHINES, machine("desk", infrastructure={"address": "a"}), namespace=namespace)
    harness.subject.raw = raw
    harness.cache.absorb_deletion(harness.subject.key, "my-uid")
    harness.cache.absorb(raw)
    harness.acting.stale = True
    yield harness
    with suppress(NotFound):
        await client.delete(SCHEDULED_MACHINES, "desk", namespace=namespace)


async def create_for(harness, namespace, *before):
    plan = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message", actions=(*before, CREATE))
    _, outcome = await harness.performer.perform(harness.subject, world(me=identity(namespace=namespace)), plan)
    return outcome


async def exists(client, namespace):
    return "desk-infra" in {raw["metadata"]["name"] for raw in await client.list(CONFIG_MAPS, namespace=namespace)}


async def test_an_unchanged_scheduled_machine_gets_its_children_though_the_cache_may_be_behind(
    client, stored, namespace
):
    assert (await create_for(stored, namespace)).did(actions.Create)
    assert await exists(client, namespace)


async def test_nothing_is_created_for_a_scheduled_machine_whose_deletion_no_watch_has_reported(
    client, stored, namespace
):
    await client.delete(SCHEDULED_MACHINES, "desk", namespace=namespace)
    outcome = await create_for(stored, namespace)
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert not await exists(client, namespace)


async def test_an_edit_that_no_watch_has_reported_is_observed_before_anything_is_created(client, stored, namespace):
    edited = await client.patch(SCHEDULED_MACHINES, "desk", {"spec": {"killSwitch": True}}, namespace=namespace)
    assert (await create_for(stored, namespace)).interrupted
    assert not await exists(client, namespace)
    seen = stored.acting.observer.subject(stored.subject.key)
    assert seen.resource_version == edited["metadata"]["resourceVersion"], "the next look starts from there"


async def test_nothing_is_created_once_the_watch_has_reported_an_edit(client, stored, namespace):
    stored.acting.stale = False
    off = {"spec": {"schedule": {"enabled": False}}}
    stored.cache.absorb(await client.patch(SCHEDULED_MACHINES, "desk", off, namespace=namespace), notify=True)
    outcome = await create_for(stored, namespace)
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert not await exists(client, namespace)


async def test_another_scheduled_machine_of_the_same_name_is_not_taken_for_ours(client, stored, namespace):
    body = machine("desk", infrastructure={"address": "a"})
    await client.delete(SCHEDULED_MACHINES, "desk", namespace=namespace)
    await client.create(SCHEDULED_MACHINES, body, namespace=namespace)
    assert (await create_for(stored, namespace)).interrupted
    assert not await exists(client, namespace)


async def test_an_up_to_date_cache_or_a_write_just_made_saves_the_read_before_a_creation(client, stored, namespace):
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


async def test_a_pod_is_asked_to_leave(client, harness, pod):
    outcome = await harness.do(actions.Evict(pods=(pod,)))
    assert (outcome.blockers, outcome.did(actions.Evict)) == ((), True)
    assert await going(client, pod)


async def test_a_pod_that_is_gone_holds_nothing_up(harness, namespace):
    gone = Pod(namespace, "gone", "uid", None, mirror=False, finished=False, deleting=False)
    assert (await harness.do(actions.Evict(pods=(gone,)))).blockers == ()


async def test_a_budget_that_refuses_is_quoted(client, harness, pod):
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
    (blocker,) = (await harness.do(actions.Evict(pods=(pod,)))).blockers
    assert blocker.pod == pod
    assert blocker.reason == "The disruption budget keep needs 1 healthy pods and has 1 currently"
    assert not await going(client, pod)


async def test_a_server_that_falls_silent_is_not_asked_for_every_pod(harness, namespace, monkeypatch):
    asked = []

    async def silent(_resource, name, *_args, **_options):
        asked.append(name)
        raise Unavailable("no answer in time")

    connection = harness.workloads.get(harness.subject.cluster)
    monkeypatch.setattr(connection.client(), "create_subresource", silent)
    pods = tuple(Pod(namespace, str(n), "u", None, mirror=False, finished=False, deleting=False) for n in range(100))
    outcome = await harness.do(actions.Evict(pods=pods))
    assert outcome.failure.reason == "APIUnavailable"
    assert len(asked) <= nodes.EVICTIONS_AT_ONCE


async def test_no_eviction_is_under_way_any_more_when_one_was_refused_for_want_of_a_lease():
    """The next holder of the lease may act as soon as this pass has ended."""

    async def create_subresource(_resource, name, *_args, **_options):
        if name == "first":
            raise ShardNotHeldError
        await asyncio.sleep(0.01)
        ended.append(name)
        return {}

    ended: list[str] = []
    client: Any = SimpleNamespace(create_subresource=create_subresource)
    pods = tuple(
        Pod("a", name, "u", None, mirror=False, finished=False, deleting=False) for name in ("first", "second")
    )
    with pytest.raises(ShardNotHeldError):
        await nodes._evict(client, actions.Evict(pods), lambda: False)
    assert ended == ["second"]


async def test_no_further_pod_is_evicted_once_the_scheduled_machine_was_edited(harness, namespace, monkeypatch):
    asked = []

    async def edit(_resource, name, *_args, **_options):
        asked.append(name)
        later = {**harness.subject.raw, "metadata": {**harness.subject.raw["metadata"], "resourceVersion": "2"}}
        harness.cache.absorb(later, notify=True)
        return {}

    connection = harness.workloads.get(harness.subject.cluster)
    monkeypatch.setattr(connection.client(), "create_subresource", edit)
    pods = tuple(Pod(namespace, str(n), "u", None, mirror=False, finished=False, deleting=False) for n in range(100))
    outcome = await harness.do(actions.Evict(pods=pods))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert len(asked) <= nodes.EVICTIONS_AT_ONCE


async def test_no_further_pod_is_evicted_once_the_next_pass_is_due(harness, namespace, monkeypatch):
    """As a window opened, or the Machine is to go at once: a cluster that takes long to answer must not hide that."""
    asked = []

    async def slow(_resource, name, *_args, **_options):
        asked.append(name)
        harness.clock.advance(timedelta(seconds=10))
        return {}

    connection = harness.workloads.get(harness.subject.cluster)
    monkeypatch.setattr(connection.client(), "create_subresource", slow)
    pods = tuple(Pod(namespace, str(n), "u", None, mirror=False, finished=False, deleting=False) for n in range(100))
    outcome = await harness.do(actions.Evict(pods=pods), until=harness.clock.now() + timedelta(seconds=60))
    assert (outcome.done, outcome.interrupted, outcome.failure) == ((), True, None)
    assert len(asked) == 6


# Emergencies


@pytest.fixture
async def evictable_pod(client, harness, node, pod):
    """A pod on the Node, which the connection has seen."""
    name = node["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": name}
    binding = {"metadata": {"name": pod.name}, "target": target}
    await client.create_subresource(PODS, pod.name, "binding", binding, namespace=pod.namespace)
    connection = harness.workloads.get(harness.subject.cluster)
    await until(lambda: connection.nodes.get(Key("", name)))
    return pod


def force_drain(node):
    return actions.ForceDrain(node=node["metadata"]["name"], provider_id=node["spec"]["providerID"])


async def test_a_node_is_cordoned_before_its_pods_are_deleted_or_their_successors_would_come_to_it(
    client, harness, node, evictable_pod
):
    assert (await harness.do(force_drain(node))).did(actions.ForceDrain)
    assert await going(client, evictable_pod)
    seen = await client.get(NODES, node["metadata"]["name"])
    assert seen["spec"]["unschedulable"]
    assert seen["metadata"]["annotations"][names.ANNOTATION_CORDONED] == harness.subject.me.uid


async def test_a_users_cordon_is_not_marked_as_ours_in_an_emergency_either(client, harness, node, evictable_pod):
    name = node["metadata"]["name"]
    await client.patch(NODES, name, {"spec": {"unschedulable": True}})
    connection = harness.workloads.get(harness.subject.cluster)
    await until(lambda: connection.nodes.get(Key("", name))["spec"].get("unschedulable"))
    await harness.do(force_drain(node))
    assert await going(client, evictable_pod)
    assert names.ANNOTATION_CORDONED not in (await client.get(NODES, name))["metadata"].get("annotations", {})


async def test_a_node_that_cannot_be_cordoned_is_drained_all_the_same(
    client, harness, node, evictable_pod, monkeypatch
):
    async def refused(*_args, **_options):
        raise Forbidden("not allowed")

    monkeypatch.setattr(harness.workloads.get(harness.subject.cluster).client(), "patch", refused)
    assert (await harness.do(force_drain(node))).did(actions.ForceDrain)
    assert await going(client, evictable_pod)


async def test_another_host_under_the_name_of_the_node_keeps_its_pods(client, harness, node, evictable_pod):
    await harness.do(actions.ForceDrain(node=node["metadata"]["name"], provider_id="test://another"))
    assert not await going(client, evictable_pod)
    assert "unschedulable" not in (await client.get(NODES, node["metadata"]["name"]))["spec"]


@pytest.mark.parametrize("call", ["list_page", "delete"])
async def test_what_does_not_answer_is_given_up_when_the_time_is_up(harness, node, evictable_pod, monkeypatch, call):
    async def never(*_args, **_options):
        await asyncio.Event().wait()

    assert reclaim.DRAIN_SECONDS == 60
    monkeypatch.setattr(reclaim, "DRAIN_SECONDS", 0.2)
    monkeypatch.setattr(harness.workloads.get(harness.subject.cluster).client(), call, never)
    async with asyncio.timeout(30):
        outcome = await harness.do(force_drain(node))
    assert (outcome.did(actions.ForceDrain), outcome.failure) == (True, None)


@pytest.mark.parametrize(("labels", "written"), [({}, 1), ({names.LABEL_RECLAIM_AGENT: "enabled"}, 0)])
async def test_a_node_that_has_the_label_of_the_agent_is_not_written_to(client, harness, node, labels, written):
    name = node["metadata"]["name"]
    await client.patch(NODES, name, {"metadata": {"labels": {"seen": "true", **labels}}})
    connection = harness.workloads.get(harness.subject.cluster)
    await until(lambda: "seen" in (connection.nodes.get(Key("", name)) or node)["metadata"].get("labels", {}))
    harness.calls.clear()
    await harness.do(actions.InstallAgent(name, node["metadata"]["uid"], ("idea",)))
    assert [call.verb for call in harness.calls if call.resource == "nodes"] == ["patch"] * written
