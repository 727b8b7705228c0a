"""What is made of the agent on a Node, and who is woken when something of it changes."""

from typing import Any

import pytest

from crds import names
from service.decide.reclaim_agent import config_name
from service.decide.world import ReclaimAgent
from service.kube.errors import Forbidden, NotFound, Unavailable
from service.observe.agents import LOOK_AGAIN, AgentObserver
from service.runtime.key import Key
from tests.service.decide.builders import node

CLUSTER = Key("team", "demo")
LABELLED = {names.LABEL_RECLAIM_AGENT: "enabled"}
SPACE = names.RECLAIM_NAMESPACE


class Cluster:
    """A workload cluster whose watches are filled by hand."""

    key = CLUSTER

    def __init__(self):
        self.watched = {}
        self.down = False
        self.has_namespace = True

    def client(self):
        if self.down:
            raise Unavailable("connection refused")
        return self

    def watch(self, name, make):
        if name not in self.watched:
            informer = self.watched[name] = make(self.client())
            for reflector in informer._reflectors.values():
                reflector.synced.set()
        return self.watched[name]

    async def get(self, resource, name):
        assert (resource.plural, name) == ("namespaces", SPACE)
        if not self.has_namespace:
            raise NotFound("not found")
        return {}


class Scene:
    def __init__(self):
        self.cluster: Any = Cluster()
        self.woken: list[tuple[Key, str | None]] = []
        self._version = 0
        self.sight = AgentObserver(lambda cluster, node: self.woken.append((cluster, node)))

    async def look(self, **fields) -> ReclaimAgent:
        return await self.sight.look(self.cluster, node(**{"labels": LABELLED, **fields}))

    async def put(self, plural, name, **fields):
        await self.look()
        self._version += 1
        metadata = {"name": name, "namespace": SPACE, "uid": name, "resourceVersion": str(self._version)}
        cache = self.cluster.watched[f"agent {plural}"]._caches[SPACE]
        cache.upsert({"metadata": metadata, **fields})

    async def remove(self, plural, name):
        self._version += 1
        cache = self.cluster.watched[f"agent {plural}"]._caches[SPACE]
        cache.remove(
            {"metadata": {"name": name, "namespace": SPACE, "uid": name, "resourceVersion": str(self._version)}}
        )

    async def pod(self, ready="True", on="node-7"):
        status = {"conditions": [{"type": "Ready", "status": ready}]} if ready else {}
        await self.put("pods", "agent-x", spec={"nodeName": on} if on else {}, status=status)

    async def told(self, data):
        await self.put("configmaps", config_name("node-7"), data=data)


@pytest.fixture
async def scene():
    """All as it should be."""
    scene = Scene()
    await scene.put("daemonsets", names.RECLAIM_DAEMON_SET)
    await scene.pod()
    await scene.told({"killIfCommands": '["idea"]'})
    scene.woken.clear()
    return scene


async def test_an_agent_that_runs_is_told_with_what_it_looks_for(scene):
    assert await scene.look() == ReclaimAgent(commands=("idea",))


async def test_a_missing_daemonset_or_namespace_is_named(scene):
    await scene.remove("daemonsets", names.RECLAIM_DAEMON_SET)
    agent = await scene.look()
    assert (agent.problem.reason, agent.installed) == ("AgentDaemonSetMissing", True)
    scene.cluster.has_namespace = False
    agent = await scene.look()
    assert (agent.problem.reason, agent.installed) == ("AgentNamespaceMissing", False)
    assert SPACE in agent.problem.message


async def test_without_its_pod_or_the_label_it_is_not_ready(scene):
    assert (await scene.look(labels={})).problem.reason == "AgentNotReady"
    for ready in ("False", None):
        await scene.pod(ready)
        agent = await scene.look()
        assert (agent.problem.reason, agent.commands) == ("AgentNotReady", ("idea",))


async def test_the_pod_of_another_node_does_not_count(scene):
    await scene.pod(on="node-8")
    assert (await scene.look()).problem.reason == "AgentNotReady"


@pytest.mark.parametrize(
    "data",
    [None, {}, "idea", *({"killIfCommands": text} for text in ("idea", '"idea"', "[" * 5000, 5))],
)
async def test_a_mangled_configmap_counts_as_none(scene, data):
    await scene.told(data)
    assert (await scene.look()).commands is None


async def test_a_missing_configmap_counts_as_none(scene):
    await scene.remove("configmaps", config_name("node-7"))
    assert (await scene.look()).commands is None


async def test_what_was_just_written_is_known_before_the_watch_tells(scene):
    written = {"name": config_name("node-7"), "namespace": SPACE, "uid": config_name("node-7"), "resourceVersion": "99"}
    scene.sight.wrote(scene.cluster, {"metadata": written, "data": {"killIfCommands": '["goland"]'}})
    assert (await scene.look()).commands == ("goland",)
    assert scene.woken == []


@pytest.mark.parametrize("silent", [True, False], ids=["no connection", "not allowed"])
async def test_a_cluster_that_shows_nothing_says_so_and_is_looked_at_again(scene, silent):
    scene.cluster.down = silent
    if not silent:
        (reflector,) = scene.cluster.watched["agent pods"]._reflectors.values()
        reflector.synced.clear()
        reflector.error = Forbidden("pods is forbidden")
    if silent:
        scene.cluster.watched.clear()
    agent = await scene.look()
    assert (agent.problem.reason, agent.installed, agent.requeue_after) == ("AgentNotSeen", False, LOOK_AGAIN)


async def test_whoever_is_concerned_is_woken(scene):
    await scene.pod("False")
    await scene.told({"killIfCommands": "[]"})
    assert scene.woken == [(CLUSTER, "node-7")] * 2
    await scene.remove("daemonsets", names.RECLAIM_DAEMON_SET)
    assert scene.woken[2:] == [(CLUSTER, None)]


async def test_what_is_not_of_the_agent_wakes_nobody(scene):
    await scene.put("daemonsets", "logging")
    await scene.put("daemonsets", names.RECLAIM_DAEMON_SET, metadataOnly=True)
    await scene.put("configmaps", "kube-root-ca.crt")
    await scene.pod(on=None)
    assert scene.woken == []
