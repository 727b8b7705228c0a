"""What the controller observes of a drain, with watches whose events a test sends itself."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crds import names
from service.clock import ManualClock
from service.decide.lifecycle import decide
from service.kube.client import Page
from service.kube.errors import Unavailable
from service.kube.resource import PODS, Resource
from service.observe import drains
from service.observe.drain_rules import DRAIN_RULE_INDEXES, slim_drain_rule
from service.observe.drains import OWN_WATCHES, DrainObserver
from service.runtime.informer import Informer
from service.runtime.key import Key
from tests.service.decide.builders import CLOSES, MORNING, cordoned_node, draining_world, intent

KEY, CLUSTER = Key("team", "desk"), Key("team", "prod")
DRAINING = draining_world()
RULES = Resource(names.CAPI_GROUP, "v1beta2", "machinedrainrules", "MachineDrainRule")


class Connection:
    """A workload cluster; watches are complete at once, unless `late` names them."""

    key = CLUSTER

    def __init__(self):
        self.watched, self.listed, self.pods = {}, [], []
        self.late = ()

    def client(self):
        return self

    def watch(self, name, make):
        if name not in self.watched:
            informer = self.watched[name] = make(self)
            for reflector in informer._reflectors.values():
                if name in self.late:
                    reflector.error = Unavailable("not today")
                else:
                    reflector.synced.set()
        return self.watched[name]

    def unwatch(self, name):
        del self.watched[name]

    async def list_page(self, resource, *, fields, **_options):
        assert resource is PODS
        self.listed.append(fields)
        return Page(self.pods, "1", None)


class Scene:
    def __init__(self):
        self.connection: Any = Connection()
        self.woken: list[Key] = []
        self.version = 10
        self.places = {(CLUSTER, "node-7"): {KEY}}
        self.observer = DrainObserver(
            ManualClock(MORNING), self.woken.append, lambda *place: self.places.get(place, ())
        )
        self.rules = None

    def users(self, *place):
        return self.places.get(place, ())

    async def observe(self, key=KEY, node="node-7"):
        self.places[CLUSTER, node] = {key}
        world = replace(DRAINING, node=cordoned_node(name=node))
        return await self.observer.observe(key, world, self.connection, self.rules)

    def put(self, name, watch="drain pods on node-7", *, node="node-7", phase="Running", **metadata):
        self.version += 1
        raw = pod(name, node, phase=phase, resourceVersion=str(self.version), **metadata)
        (cache,) = self.connection.watched[watch]._caches.values()
        cache.upsert(raw)

    def gone(self, name, watch="drain pods on node-7", *, node="node-7"):
        self.version += 1
        (cache,) = self.connection.watched[watch]._caches.values()
        cache.remove(pod(name, node, resourceVersion=str(self.version)))

    def there(self, plural, name, namespace="apps", **metadata):
        (cache,) = self.connection.watched[f"drain {plural}"]._caches.values()
        named = {"name": name, "uid": name, "resourceVersion": "1", **metadata}
        cache.upsert({"metadata": named | ({"namespace": namespace} if namespace else {})})


def pod(name, node, *, phase="Running", **metadata):
    named = {"name": name, "namespace": "apps", "uid": name, "resourceVersion": "1", **metadata}
    return {"metadata": named, "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase, "podIP": "x"}}


def owned_by(kind, name):
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


def named(world):
    return [pod.name for pod in world.pods]


@pytest.fixture
def scene():
    return Scene()


# Pods


async def test_the_pods_of_a_node_are_watched_while_it_is_drained_and_no_longer(scene):
    assert named(await scene.observe()) == []
    scene.put("b")
    scene.put("a")
    world = await scene.observe()
    assert (named(world), world.pods_requeue_after) == (["a", "b"], None)
    assert scene.connection.listed == []
    scene.observer.forget(KEY)
    assert scene.connection.watched == {}


async def test_only_a_pod_that_leaves_or_finishes_wakes_its_machine(scene):
    await scene.observe()
    scene.put("web")
    scene.woken.clear()
    scene.put("web", annotations={"example.com/beat": "2"})
    assert scene.woken == []
    scene.put("web", deletionTimestamp="2026-03-02T10:00:00Z")
    scene.put("web", deletionTimestamp="2026-03-02T10:00:00Z", phase="Succeeded")
    scene.gone("web")
    assert scene.woken == [KEY] * 3
    scene.observer._draining.clear()
    scene.put("web2")
    assert len(scene.woken) == 3


async def test_many_nodes_share_one_watch(scene):
    many = [(Key("team", f"desk-{number}"), f"node-{number}") for number in range(OWN_WATCHES + 30)]
    for key, node in many:
        await scene.observe(key, node)
    assert len(scene.connection.watched) == OWN_WATCHES + 1
    key, node = many[-1]
    scene.woken.clear()
    scene.put("web", "drain pods", node=node)
    scene.put("other", "drain pods", node="a Node that is not drained")
    assert (named(await scene.observe(key, node)), scene.woken) == (["web"], [key])
    for key, _ in many:
        scene.observer.forget(key)
    assert (scene.connection.watched, scene.observer._shared._workloads) == ({}, {})


async def test_a_thousand_machines_whose_pods_terminate_slowly_are_not_polled(scene):
    nodes = {Key("team", f"desk-{number}"): f"node-{number}" for number in range(1000)}
    for key, node in nodes.items():
        await scene.observe(key, node)
        own = f"drain pods on {node}"
        watch = own if own in scene.connection.watched else "drain pods"
        scene.put(f"slow-{node}", watch, node=node, deletionTimestamp="2026-03-02T10:00:00Z")
    scene.woken.clear()
    worlds = {node: await scene.observe(key, node) for key, node in nodes.items()}
    assert all(named(world) == [f"slow-{node}"] for node, world in worlds.items())
    assert {world.pods_requeue_after for world in worlds.values()} == {None}
    plan = decide(intent(), worlds["node-999"], CLOSES + timedelta(minutes=1))
    assert (plan.actions, plan.requeue_after) == ((), None)
    assert (scene.connection.listed, len(scene.connection.watched)) == ([], OWN_WATCHES + 1)
    scene.gone("slow-node-999", "drain pods", node="node-999")
    assert scene.woken == [Key("team", "desk-999")]


async def test_pods_that_cannot_be_watched_are_listed_less_and_less_often(scene):
    scene.connection.late = ("drain pods on node-7",)
    scene.connection.pods = [pod("web", "node-7")]
    worlds = [await scene.observe() for _ in range(6)]
    assert scene.connection.listed == ["spec.nodeName=node-7"] * 6
    assert {tuple(named(world)) for world in worlds} == {("web",)}
    pauses = [world.pods_requeue_after.total_seconds() for world in worlds]
    for pause, full in zip(pauses, (5, 10, 20, 40, 60, 60), strict=True):
        assert 0.8 * full <= pause <= full


async def test_the_cache_of_a_broken_watch_is_not_used(scene):
    await scene.observe()
    scene.put("web")
    (reflector,) = scene.connection.watched["drain pods on node-7"]._reflectors.values()
    reflector.error = Unavailable("broken")
    world = await scene.observe()
    assert (named(world), scene.connection.listed) == ([], ["spec.nodeName=node-7"])
    reflector.error = None
    assert named(await scene.observe()) == ["web"]


async def test_a_worker_does_not_wait_for_the_list_of_all_pods(scene, monkeypatch):
    monkeypatch.setattr(drains, "OWN_WATCHES", 0)
    watch = scene.connection.watch

    def unsynced(name, make):
        informer = watch(name, make)
        for reflector in informer._reflectors.values():
            reflector.synced.clear()
        return informer

    scene.connection.watch = unsynced
    scene.connection.pods = [pod("web", "node-7")]
    world = await scene.observe()
    assert (named(world), world.pods_requeue_after is None) == (["web"], False)


async def test_the_time_of_a_deletion_is_the_clocks(scene):
    await scene.observe()
    scene.put("web", deletionTimestamp="2026-11-02T10:00:00Z")
    (web,) = (await scene.observe()).pods
    assert (web.deleting, web.deleted_at) == (True, MORNING)


@pytest.mark.parametrize("nonsense", ["tomorrow", "0001-01-01T00:00:00Z", 5])
async def test_a_pod_with_an_implausible_deletion_time_is_not_read(scene, nonsense):
    scene.connection.late = ("drain pods on node-7",)
    scene.connection.pods = [pod("web", "node-7", deletionTimestamp=nonsense)]
    with pytest.raises(Unavailable, match="not a pod"):
        await scene.observe()


# The objects that pods belong to


async def test_a_pod_whose_daemonset_does_not_exist_is_an_orphan(scene):
    await scene.observe()
    scene.put("log", **owned_by("DaemonSet", "log"))
    assert [pod.orphaned for pod in (await scene.observe()).pods] == [True]
    scene.there("daemonsets", "log")
    assert [pod.orphaned for pod in (await scene.observe()).pods] == [False]
    assert KEY in scene.woken


async def test_where_daemonsets_cannot_be_listed_none_counts_as_gone(scene):
    scene.connection.late = ("drain daemonsets",)
    await scene.observe()
    scene.put("log", **owned_by("DaemonSet", "log"))
    assert [pod.orphaned for pod in (await scene.observe()).pods] == [False]


async def test_without_pods_of_a_daemonset_or_rules_nothing_else_is_watched(scene):
    await scene.observe()
    scene.put("web", **owned_by("ReplicaSet", "web"))
    await scene.observe()
    assert list(scene.connection.watched) == ["drain pods on node-7"]


# Rules


def rules(*raws):
    no_client: Any = None
    informer = Informer(no_client, RULES, slim=slim_drain_rule, indexes=DRAIN_RULE_INDEXES)
    (cache,) = informer._caches.values()
    (reflector,) = informer._reflectors.values()
    for raw in raws:
        cache.upsert(raw)
    reflector.synced.set()
    return informer


def rule(name="rule", namespace="team", **spec):
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"drain": {"behavior": "Skip"}, **spec}}


async def test_only_rules_of_the_machines_namespace_count(scene):
    scene.rules = rules(rule("ours"), rule("theirs", "other"))
    world = await scene.observe()
    assert [rule.name for rule in world.drain_rules.rules] == ["ours"]
    assert scene.observer.draining("team") == [KEY]
    assert scene.observer.draining("other") == []


async def test_labels_of_namespaces_are_read_only_where_a_rule_asks_for_them(scene):
    await scene.observe()
    scene.put("web")
    scene.rules = rules(rule(pods=[{"namespaceSelector": {"matchLabels": {"team": "data"}}}]))
    (web,) = (await scene.observe()).pods
    assert web.namespace_labels is None
    scene.there("namespaces", "apps", None, labels={"team": "data", "odd": 5})
    (web,) = (await scene.observe()).pods
    assert web.namespace_labels == {"team": "data"}
    assert KEY in scene.woken


async def test_rules_that_cannot_be_listed_are_a_problem_and_listed_again(scene):
    scene.rules = rules()
    (reflector,) = scene.rules._reflectors.values()
    reflector.synced.clear()
    reflector.error = Unavailable("forbidden")
    world = await scene.observe()
    assert "MachineDrainRules cannot be listed: forbidden" in world.drain_rules.problem
    assert world.pods_requeue_after == timedelta(seconds=5)


async def test_a_giant_rule_is_a_problem_of_its_own_namespace_only(scene):
    giant = rule("giant", pods=[{"selector": {"matchLabels": {f"k{n}": "v" * 60 for n in range(2000)}}}])
    scene.rules = rules(giant)
    assert "MachineDrainRule giant cannot be read" in (await scene.observe()).drain_rules.problem
    scene.rules = rules(rule("giant", "other", pods=giant["spec"]["pods"]), rule("ours"))
    assert (await scene.observe()).drain_rules.problem is None


# Budgets


async def test_budgets_are_watched_once_an_eviction_was_refused_and_wake_the_machines_that_they_allow(scene):
    await scene.observe()
    scene.put("web", labels={"app": "web"})
    (web,) = (await scene.observe()).pods
    assert "drain poddisruptionbudgets" not in scene.connection.watched
    scene.observer.eviction_refused(KEY, scene.connection, web, "a budget", None)
    scene.woken.clear()
    (cache,) = scene.connection.watched["drain poddisruptionbudgets"]._caches.values()
    for version, allowed in ((1, 0), (2, 0), (3, 1)):
        metadata = {"name": "b", "namespace": "apps", "uid": "b", "resourceVersion": str(version)}
        spec = {"selector": {"matchLabels": {"app": "web"}}}
        cache.upsert({"metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": allowed}})
    assert scene.woken == [KEY]
    (web,) = (await scene.observe()).pods
    assert web.refusal.retry_after == timedelta(0)
