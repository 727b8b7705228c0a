"""Observes what is in the workload cluster of a ScheduledMachine: its Node, the Node's pods, and the reclaim agent."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from service.clock import Clock
from service.decide import reclaim_agent
from service.decide.reasons import Reason
from service.decide.world import Reachability, World
from service.kube.errors import KubeError
from service.objects import views
from service.objects.subject import Subject
from service.observe.agents import AgentObserver
from service.observe.drains import DrainObserver
from service.observe.hosts import Hosts, provider_term
from service.observe.nodes import NodeIndex
from service.observe.watches import Watches
from service.runtime.key import Key
from service.workload.clusters import WorkloadClusters
from service.workload.connection import WorkloadCluster

_NO_NODE: Final = Reachability(reachable=False, reason=Reason.NO_NODE, message="there is no Node to look at")


@dataclass(frozen=True, slots=True)
class WorkloadListener:
    """What is called with a ScheduledMachine whose workload cluster changed."""

    agent_changed: Callable[[Key], None]
    drain_changed: Callable[[Key], None]
    """Pods left the Node, or a PodDisruptionBudget allows an eviction."""


class WorkloadObserver:
    """Connects to workload clusters for as long as a ScheduledMachine has a Node there, or a host that may join."""

    def __init__(
        self, watches: Watches, workloads: WorkloadClusters, hosts: Hosts, clock: Clock, listener: WorkloadListener
    ) -> None:
        self._watches = watches
        self._workloads = workloads
        self._hosts = hosts
        self._listener = listener
        self._with_agents: set[Key] = set()
        self.nodes = NodeIndex()
        self.agents = AgentObserver(self._agent_changed)
        self.drains = DrainObserver(clock, listener.drain_changed, self.nodes.users)

    async def observe(self, subject: Subject, world: World) -> World:
        """The world with the Node, and whether its cluster can be reached."""
        machine = world.our_machine
        cluster = subject.cluster
        name = _node_name(world)
        if cluster is None or not (name or (machine and machine.provider_id)):
            self.forget(subject.key)
            return replace(world, workload=_NO_NODE) if world.status.reclaim else world
        if name:
            self.nodes.put(subject.key, cluster, name)
        workload = self._workloads.hold(cluster, subject.key)
        if not workload.settled.is_set():
            return world  # the first answer of the workload cluster wakes the object
        world = self._with_node(subject, world, workload, name)
        return await self._with_agent(subject, await self._with_pods(subject, world))

    def forget(self, key: Key) -> None:
        """A ScheduledMachine needs no workload cluster any more."""
        self.nodes.forget(key)
        self.drains.forget(key)
        self._with_agents.discard(key)
        self._workloads.release(key)

    def _with_node(self, subject: Subject, world: World, workload: WorkloadCluster, name: str | None) -> World:
        state = _reachability_of(workload, name)
        raw = workload.nodes.get(Key("", name)) if state.reachable and name else None
        if raw is None:
            return replace(world, workload=state)
        term = provider_term_of(subject, world)
        others = self._hosts.others_on_host(subject.key, term) if term else frozenset()
        return replace(world, workload=state, node=views.node(raw), others_on_node=others)

    async def _with_pods(self, subject: Subject, world: World) -> World:
        """The pods on a Node that is being drained; not read otherwise, nor when the Machine is deleted at once."""
        machine = world.our_machine
        at_once = subject.intent.kill_switch or subject.status.reclaim is not None
        draining = subject.status.shutdown_started_at is not None and machine is not None and not machine.deleting
        if not draining or world.node is None or at_once:
            self.drains.forget(subject.key)
            return world
        rules = self._watches.capi.drain_rules if self._watches.capi else None
        try:
            return await self.drains.observe(subject.key, world, self._held(subject), rules)
        except KubeError as error:
            down = Reachability(reachable=False, reason=Reason.PODS_NOT_LISTED, message=error.message)
            # The Node was read: actions that need no pods are still possible.
            return replace(world, workload=down, pods_requeue_after=self.drains.list_backoff(subject.key))

    async def _with_agent(self, subject: Subject, world: World) -> World:
        """The reclaim agent, where there should be one."""
        if world.node is None or not reclaim_agent.wanted_commands(subject.intent, world):
            self._with_agents.discard(subject.key)
            return world
        self._with_agents.add(subject.key)
        return replace(world, reclaim_agent=await self.agents.observe(self._held(subject), world.node))

    def _agent_changed(self, cluster: Key, node: str | None) -> None:
        users = self._workloads.holders(cluster) if node is None else self.nodes.users(cluster, node)
        for key in users & self._with_agents:
            self._listener.agent_changed(key)

    def _held(self, subject: Subject) -> WorkloadCluster:
        return self._workloads.held_by(subject.key, subject.cluster)


def provider_term_of(subject: Subject, world: World) -> str | None:
    """The term for the host of our Machine in its Cluster; None without a providerID."""
    machine = world.our_machine
    if machine is None or machine.provider_id is None or subject.cluster is None:
        return None
    return provider_term(subject.cluster, machine.provider_id)


def _node_name(world: World) -> str | None:
    """The Node to observe: our Machine's or, when that is gone, the one that an emergency reclaim concerns."""
    machine = world.our_machine
    if machine is not None:
        return machine.node_name
    reclaim = world.status.reclaim
    return reclaim.node or None if reclaim else None


def _reachability_of(workload: WorkloadCluster, node: str | None) -> Reachability:
    """Whether a Node can be read: not while its cluster is unreachable, nor while its object is unreadable."""
    why = workload.nodes.unreadable(Key("", node)) if node else None
    if workload.state.reachable and why:
        return Reachability(
            reachable=False, reason=Reason.NODE_UNREADABLE, message=f"Node {node} cannot be read: {why}"
        )
    return workload.state
