"""What the controller observes of the agent on a Node, and which objects a change of it wakes."""

from typing import Any

import pytest

from crds import names
from service.decide.reclaim_agent import config_name
from service.decide.world import ReclaimAgent
from service.kube.errors import Forbidden, NotFound, Unavailable
from service.observe.agents import REQUEUE_AFTER, AgentObserver
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
        self.observer = AgentObserver(lambda cluster, node: self.woken.append((cluster, node)))

    async def observe(self, **fields) -> ReclaimAgent:
        return await self.observer.observe(self.cluster, node(**{"labels": LABELLED, **fields}))

    async def put(self, plural, name, **fields):
        await self.observe()
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

    async def config(self, data):
        await self.put("configmaps", config_name("node-7"), data=data)


@pytest.fixture
async def scene():
    """All as it should be."""
    scene = Scene()
    await scene.put("daemonsets", names.RECLAIM_DAEMON_SET)
    await scene.pod()
    await scene.config({"killIfCommands": '["idea"]'})
    scene.woken.clear()
    return scene


async def test_an_agent_that_runs_is_observed_with_its_commands(scene):
    assert await scene.observe() == ReclaimAgent(commands=("idea",))


async def test_a_missing_daemonset_or_namespace_is_named(scene):
    await scene.remove("daemonsets", names.RECLAIM_DAEMON_SET)
    agent = await scene.observe()
    assert (agent.problem.reason, agent.installed) == ("AgentDaemonSetMissing", True)
    scene.cluster.has_namespace = False
    agent = await scene.observe()
    assert (agent.problem.reason, agent.installed) == ("AgentNamespaceMissing", False)
    assert SPACE in agent.problem.message


async def test_without_its_pod_or_the_label_it_is_not_ready(scene):
    assert (await scene.observe(labels={})).problem.reason == "AgentNotReady"
    for ready in ("False", None):
        await scene.pod(ready)
        agent = await scene.observe()
        assert (agent.problem.reason, agent.commands) == ("AgentNotReady", ("idea",))


async def test_the_pod_of_another_node_does_not_count(scene):
    await scene.pod(on="node-8")
    assert (await scene.observe()).problem.reason == "AgentNotReady"


@pytest.mark.parametrize(
    "data",
    [None, {}, "idea", *({"killIfCommands": text} for text in ("idea", '"idea"', "[" * 5000, 5))],
)
async def test_an_invalid_configmap_counts_as_none(scene, data):
    await scene.config(data)
    assert (await scene.observe()).commands is None


async def test_a_missing_configmap_counts_as_none(scene):
    await scene.remove("configmaps", config_name("node-7"))
    assert (await scene.observe()).commands is None


async def test_our_own_write_is_known_before_the_watch_reports_it(scene):
    written = {"name": config_name("node-7"), "namespace": SPACE, "uid": config_name("node-7"), "resourceVersion": "99"}
    scene.observer.absorb_config(scene.cluster, {"metadata": written, "data": {"killIfCommands": '["goland"]'}})
    assert (await scene.observe()).commands == ("goland",)
    assert scene.woken == []


@pytest.mark.parametrize("silent", [True, False], ids=["no connection", "not allowed"])
async def test_agents_that_cannot_be_read_are_a_problem_and_observed_again_later(scene, silent):
    scene.cluster.down = silent
    if not silent:
        (reflector,) = scene.cluster.watched["agent pods"]._reflectors.values()
        reflector.synced.clear()
        reflector.error = Forbidden("pods is forbidden")
    if silent:
        scene.cluster.watched.clear()
    agent = await scene.observe()
    assert (agent.problem.reason, agent.installed, agent.requeue_after) == ("AgentNotSeen", False, REQUEUE_AFTER)


async def test_a_change_wakes_the_objects_that_it_concerns(scene):
    await scene.pod("False")
    await scene.config({"killIfCommands": "[]"})
    assert scene.woken == [(CLUSTER, "node-7")] * 2
    await scene.remove("daemonsets", names.RECLAIM_DAEMON_SET)
    assert scene.woken[2:] == [(CLUSTER, None)]


async def test_other_objects_wake_no_object(scene):
    await scene.put("daemonsets", "logging")
    await scene.put("daemonsets", names.RECLAIM_DAEMON_SET, metadataOnly=True)
    await scene.put("configmaps", "kube-root-ca.crt")
    await scene.pod(on=None)
    assert scene.woken == []
