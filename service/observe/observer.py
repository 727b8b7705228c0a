"""Looks at everything that concerns one ScheduledMachine and freezes it into a World.

Reads caches; asks the API server only to make sure that something which should be there is really gone, and for the
pods of a Node that is being drained.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from crds.providers import ProviderPolicy
from service.clock import Clock
from service.decide import reclaim_agent
from service.decide.hosts import DEFAULT_IDENTITIES, HostIdentities, host_of
from service.decide.intent import CalendarSource, Intent, NoCalendars, read_intent
from service.decide.manifests import child_name
from service.decide.reasons import Reason
from service.decide.reclaim import needs_author
from service.decide.world import Cluster, HostConflict, Reachability, Role, World
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.kube.resource import SCHEDULED_MACHINES
from service.objects import views
from service.objects.lookup import get_or_none
from service.objects.subject import Subject
from service.observe import hosts, kinds
from service.observe.agents import AgentObserver
from service.observe.drains import DrainObserver
from service.observe.drifts import Drifts
from service.observe.field_managers import who_enabled
from service.observe.hosts import Hosts, Sources
from service.observe.nodes import NodeIndex
from service.observe.watches import CapiInformers, Watches
from service.runtime.identity import well_formed
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.workload.clusters import WorkloadClusters
from service.workload.connection import WorkloadCluster

Raw = dict[str, Any]
_NOWHERE: Final = Reachability(reachable=False, reason=Reason.NO_NODE, message="there is no Node to look at")


def _ignore(_key: Key) -> None:
    """For a test that looks only once."""


@dataclass(frozen=True, slots=True)
class Options:
    """How hosts are told apart, and what wakes a ScheduledMachine whose surroundings no other watch covers."""

    identities: HostIdentities = DEFAULT_IDENTITIES
    calendars: CalendarSource = NoCalendars()  # noqa: RUF009 - without state
    agent_changed: Callable[[Key], None] = _ignore
    drain_changed: Callable[[Key], None] = _ignore
    """Pods left the Node, or a PodDisruptionBudget allows an eviction."""


class Observer:
    """Observes through the watches; writes nothing."""

    def __init__(
        self,
        client: Client,
        watches: Watches,
        workloads: WorkloadClusters,
        policy: ProviderPolicy,
        clock: Clock,
        options: Options = Options(),  # noqa: B008 - frozen
    ) -> None:
        self._client = client
        self._watches = watches
        self._workloads = workloads
        self._policy = policy
        self._clock = clock
        self._options = options
        self.nodes = NodeIndex()
        self.hosts = Hosts(options.identities, Sources(watches.scheduled.get, self._read, self._takes_machines))
        self._drifts = Drifts(client, watches.resolve)
        self.agents = AgentObserver(self._agent_changed)
        self.drains = DrainObserver(clock, options.drain_changed, self.nodes.users)
        self._with_agents: set[Key] = set()

    def subject(self, key: Key) -> Subject | None:
        """The ScheduledMachine of that name, if there is one."""
        raw = self._watches.scheduled.get(key)
        if raw is None:
            return None
        return Subject.read(key, raw, self._read(raw), self._clock)

    def _read(self, raw: Raw) -> Intent:
        return read_intent(_complete(raw), self._policy, self._options.calendars)

    async def observe(self, subject: Subject) -> World:
        """The world around a ScheduledMachine."""
        capi = self._watches.capi  # once: it may be another one after the first await
        contract, clusters = (capi.contract, capi.clusters) if capi else (None, None)
        world = World(subject.me, subject.status, contract, await self._cluster(subject, clusters))
        for role in Role:
            world = await self._with_child(subject, world, role, capi)
        if world.machine is None:
            world = replace(world, rival=_rival(subject, capi))
        if world.cluster is None and world.children and clusters is not None:
            world = replace(world, cluster=await self._really_no_cluster(subject, clusters))
        world = await self._with_node(subject, world)
        if needs_author(subject.intent, subject.status, self._clock.now()):
            world = replace(world, enabled_by=await who_enabled(self._client, subject.key))
        host = host_of(self._options.identities, subject.intent.spec, world)
        changes = await self._drifts.look(subject, world)
        return replace(world, host=host, host_conflict=self._host_conflict(subject, world), spec_changes=changes)

    # Children

    async def _with_child(self, subject: Subject, world: World, role: Role, capi: CapiInformers | None) -> World:
        """With the object of a role; what keeps us from seeing a provider's is part of the world, not the end of it."""
        if role is Role.MACHINE:
            return await self._with_object(subject, world, role, capi.machines if capi else None)
        try:
            return await self._with_object(subject, world, role, await self._informer(subject, role))
        except KubeError as error:
            return kinds.not_seen(world, role, error)

    async def _with_object(self, subject: Subject, world: World, role: Role, informer: Informer | None) -> World:
        if informer is None:
            return world
        key = Key(subject.key.namespace, child_name(subject.key.name, role))
        raw = informer.get(key)
        # What belongs to a Machine is taken away only if there is really none, also if it was never written down.
        parts = role is Role.MACHINE and world.children
        if raw is None and (parts or views.recorded_uid(role, subject.status)):
            try:
                raw = await get_or_none(self._client, informer.resource, key)
            except NotFound as error:  # the kind, that is: nobody can tell about the object
                return kinds.not_seen(world, role, error)
        return views.with_child(world, role, informer.resource, raw) if raw is not None else world

    async def _informer(self, subject: Subject, role: Role) -> Informer | None:
        """The cache in which a provider's object would be; None if there cannot be one, as its kind is not served."""
        for kind in kinds.possible(subject, role):
            informer = await self._watches.kind(*kind)
            if informer is not None:
                return informer
        recorded = kinds.recorded(subject, role)
        if recorded is None:
            return None
        informer = await self._watches.kind_of_any_version(*recorded)
        if informer is None:
            raise NotFound(f"{recorded[1]} in {recorded[0]} is not served any more, nor in another version")
        return informer

    # Cluster, host and Node

    async def _cluster(self, subject: Subject, clusters: Informer | None) -> Cluster | None:
        """As the cache has it; asks the API server about one that its watch could not read."""
        key = subject.cluster
        if clusters is None or key is None:
            return None
        if clusters.unreadable(key):
            return await self._really_no_cluster(subject, clusters)
        raw = clusters.get(key)
        return views.cluster(raw) if raw is not None else None

    async def _really_no_cluster(self, subject: Subject, clusters: Informer) -> Cluster | None:
        """Asks the API server: a running machine is not taken down on the word of a cache."""
        key = subject.cluster
        raw = await get_or_none(self._client, clusters.resource, key) if key is not None else None
        with well_formed("a Cluster"):
            return views.cluster(raw) if raw is not None else None

    def _host_conflict(self, subject: Subject, world: World) -> HostConflict | None:
        term = _provider_term(subject, world) if world.our_machine is not None else self._wanted_host(subject, world)
        if term is None:
            return None
        other = self.hosts.better(subject.key, hosts.rank_of(subject.raw), (term,), self._clock.now())
        return HostConflict(namespace=other.namespace, name=other.name) if other else None

    def _wanted_host(self, subject: Subject, world: World) -> str | None:
        """The host of the Machine that could be created now."""
        wanted = hosts.wants_machines(subject.raw, subject.intent) and subject.intent.covers(self._clock.now())
        if not wanted or world.cluster is None or world.cluster.deleting:
            return None
        return hosts.named_host(self._options.identities, subject.raw)

    def _takes_machines(self, cluster: Key) -> bool:
        clusters = self._watches.clusters
        raw = clusters.get(cluster) if clusters is not None else None
        return raw is not None and not views.cluster(raw).deleting

    async def _with_node(self, subject: Subject, world: World) -> World:
        """The Node, and whether its cluster can be reached; asked for as soon as there is a host that may join."""
        machine, cluster, name = world.our_machine, subject.cluster, _node_name(world)
        if cluster is None or not (name or (machine and machine.provider_id)):
            self.forget(subject.key)
            return replace(world, workload=_NOWHERE) if world.status.reclaim else world
        if name:
            self.nodes.put(subject.key, cluster, name)
        workload = self._workloads.hold(cluster, subject.key)
        if not workload.settled.is_set():
            return world  # its first answer wakes us
        state = _reachability_of(workload, name)
        raw = workload.nodes.get(Key("", name)) if state.reachable and name else None
        term = _provider_term(subject, world)
        neighbours = self.hosts.sharing(subject.key, term) if term and raw is not None else frozenset()
        world = replace(world, workload=state, node=views.node(raw) if raw is not None else None, neighbours=neighbours)
        return await self._with_agent(subject, await self._with_pods(subject, world))

    async def _with_agent(self, subject: Subject, world: World) -> World:
        """The reclaim agent, where there should be one."""
        if world.node is None or not reclaim_agent.wanted_commands(subject.intent, world):
            self._with_agents.discard(subject.key)
            return world
        self._with_agents.add(subject.key)
        return replace(world, reclaim_agent=await self.agents.look(self._held(subject), world.node))

    def _agent_changed(self, cluster: Key, node: str | None) -> None:
        users = self._workloads.holders(cluster) if node is None else self.nodes.users(cluster, node)
        for key in users & self._with_agents:
            self._options.agent_changed(key)

    def forget(self, key: Key) -> None:
        """A ScheduledMachine needs no workload cluster any more."""
        self.nodes.forget(key)
        self.drains.over(key)
        self._with_agents.discard(key)
        self._workloads.release(key)

    def _held(self, subject: Subject) -> WorkloadCluster:
        return self._workloads.held_by(subject.key, subject.cluster)

    async def _with_pods(self, subject: Subject, world: World) -> World:
        """The pods on a Node that is being drained; not asked for otherwise, nor where nobody waits for them."""
        machine, at_once = world.our_machine, subject.intent.kill_switch or subject.status.reclaim is not None
        draining = subject.status.shutdown_started_at is not None and machine is not None and not machine.leaving
        if not draining or world.node is None or at_once:
            self.drains.over(subject.key)
            return world
        rules = self._watches.capi.drain_rules if self._watches.capi else None
        try:
            return await self.drains.look(subject.key, world, self._held(subject), rules)
        except KubeError as error:
            down = Reachability(reachable=False, reason=Reason.PODS_NOT_LISTED, message=error.message)
            # The Node was seen: what needs no pods can be done.
            return replace(world, workload=down, pods_requeue_after=self.drains.listing_pause(subject.key))


def _provider_term(subject: Subject, world: World) -> str | None:
    """What the host of our Machine is known by in its Cluster."""
    machine = world.our_machine
    if machine is None or machine.provider_id is None or subject.cluster is None:
        return None
    return hosts.provider_term(subject.cluster, machine.provider_id)


def _node_name(world: World) -> str | None:
    """The Node to look at: our Machine's or, when that is gone, the one that was asked back."""
    machine, reclaim = world.our_machine, world.status.reclaim
    if machine is not None:
        return machine.node_name
    return reclaim.node or None if reclaim else None


def _reachability_of(workload: WorkloadCluster, node: str | None) -> Reachability:
    """Whether a Node can be looked at: not while its cluster is out of reach, nor while its object is unreadable."""
    why = workload.nodes.unreadable(Key("", node)) if node else None
    if workload.state.reachable and why:
        return Reachability(
            reachable=False, reason=Reason.NODE_UNREADABLE, message=f"Node {node} cannot be read: {why}"
        )
    return workload.state


def _rival(subject: Subject, capi: CapiInformers | None) -> str | None:
    """The Machine that the operator written in Rust made for the same object; it names it like the object."""
    raw = capi.machines.get(subject.key) if capi else None
    owners = raw["metadata"].get("ownerReferences") or () if raw else ()
    return subject.key.name if any(owner.get("uid") == subject.me.uid for owner in owners) else None


def _complete(raw: Raw) -> Raw:
    """With the two fields that items of a list lack."""
    return raw if "kind" in raw else {**SCHEDULED_MACHINES.envelope(), **raw}
