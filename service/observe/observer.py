"""Observes everything that concerns one ScheduledMachine and freezes it into a World.

Reads caches. Asks the API server only to make sure that an object which should exist is really gone, and a workload
cluster for the pods of a Node that is being drained.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from crds.providers import ProviderPolicy
from service.clock import Clock
from service.decide.dryrun import is_dry_run
from service.decide.hosts import DEFAULT_IDENTITIES, HostIdentities, host_of
from service.decide.intent import NO_SOURCES, Intent, Sources, read_intent
from service.decide.reclaim import needs_author
from service.decide.world import Cluster, HostConflict, World
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from service.objects import views
from service.objects.lookup import get_or_none
from service.objects.subject import Subject
from service.observe import hosts
from service.observe.children import ChildObserver
from service.observe.drifts import DriftObserver
from service.observe.field_managers import who_enabled
from service.observe.hosts import ClaimLookups, Hosts
from service.observe.usual import ClassOutlines, NoClassOutlines, UsualTimes
from service.observe.watches import Watches
from service.observe.workloads import WorkloadListener, WorkloadObserver, provider_term_of
from service.runtime.identity import well_formed
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.workload.clusters import WorkloadClusters

Raw = dict[str, Any]


def _ignore(_key: Key) -> None:
    """For a test that observes only once."""


@dataclass(frozen=True, slots=True)
class ObserverOptions:
    """What identifies a host, what wakes a ScheduledMachine when its workload cluster changes, and the dry run."""

    identities: HostIdentities = DEFAULT_IDENTITIES
    sources: Sources = NO_SOURCES
    class_outlines: ClassOutlines = NoClassOutlines()  # noqa: RUF009 - has no state
    acknowledged_reclaims: bool = False
    agent_changed: Callable[[Key], None] = _ignore
    drain_changed: Callable[[Key], None] = _ignore
    dry_run: bool = False


class Observer:
    """Observes through the watches; writes nothing."""

    def __init__(
        self,
        client: Client,
        watches: Watches,
        workloads: WorkloadClusters,
        policy: ProviderPolicy,
        clock: Clock,
        options: ObserverOptions = ObserverOptions(),  # noqa: B008 - frozen
    ) -> None:
        self._client = client
        self._watches = watches
        self._policy = policy
        self._clock = clock
        self._identities = options.identities
        self._sources = options.sources._replace(usual=UsualTimes(watches.scheduled, options.class_outlines))
        self._dry_run = options.dry_run
        self._acknowledged_reclaims = options.acknowledged_reclaims
        self.hosts = Hosts(
            options.identities,
            ClaimLookups(watches.scheduled.get, self._read_intent, self._accepts_machines, self._is_dry_run),
        )
        listener = WorkloadListener(options.agent_changed, options.drain_changed)
        self.workload = WorkloadObserver(watches, workloads, self.hosts, clock, listener)
        self._children = ChildObserver(client, watches)
        self._drifts = DriftObserver(client, watches.resolve)

    def subject(self, key: Key) -> Subject | None:
        """The ScheduledMachine of that name, if there is one."""
        raw = self._watches.scheduled.get(key)
        if raw is None:
            return None
        return Subject.read(key, raw, self._read_intent(raw), self._clock)

    async def observe(self, subject: Subject) -> World:
        """The world around a ScheduledMachine."""
        capi = self._watches.capi  # once: it may be another one after the first await
        contract = capi.contract if capi else None
        clusters = capi.clusters if capi else None
        world = World(subject.me, subject.status, contract, await self._cluster(subject, clusters))
        world = await self._children.observe(subject, world, capi)
        if world.cluster is None and world.children and clusters is not None:
            world = replace(world, cluster=await self._read_cluster(subject, clusters))
        world = await self.workload.observe(subject, world)
        if needs_author(subject.intent, subject.status, self._clock.now()):
            world = replace(world, enabled_by=await who_enabled(self._client, subject.key))
        return replace(
            world,
            acknowledged_reclaims=self._acknowledged_reclaims,
            dry_run=is_dry_run(subject.me.annotations, default=self._dry_run),
            host=host_of(self._identities, subject.intent.spec, world),
            spec_changes=await self._drifts.observe(subject, world),
            host_conflict=self._host_conflict(subject, world),
        )

    def forget(self, key: Key) -> None:
        """A ScheduledMachine is gone, or belongs to another replica now."""
        self.workload.forget(key)

    def _read_intent(self, raw: Raw) -> Intent:
        return read_intent(_with_envelope(raw), self._policy, self._sources)

    def _is_dry_run(self, raw: Raw) -> bool:
        return is_dry_run(raw["metadata"].get("annotations") or {}, default=self._dry_run)

    # The Cluster

    async def _cluster(self, subject: Subject, clusters: Informer | None) -> Cluster | None:
        """The Cluster in the cache; reads one that its watch could not read from the API server."""
        key = subject.cluster
        if clusters is None or key is None:
            return None
        if clusters.unreadable(key):
            return await self._read_cluster(subject, clusters)
        raw = clusters.get(key)
        return views.cluster(raw) if raw is not None else None

    async def _read_cluster(self, subject: Subject, clusters: Informer) -> Cluster | None:
        """Asks the API server: a cache that lacks the Cluster is not enough reason to remove a running machine."""
        key = subject.cluster
        raw = await get_or_none(self._client, clusters.resource, key) if key is not None else None
        with well_formed("a Cluster"):
            return views.cluster(raw) if raw is not None else None

    def _accepts_machines(self, cluster: Key) -> bool:
        clusters = self._watches.clusters
        raw = clusters.get(cluster) if clusters is not None else None
        return raw is not None and not views.cluster(raw).deleting

    # The host

    def _host_conflict(self, subject: Subject, world: World) -> HostConflict | None:
        has_machine = world.our_machine is not None
        term = provider_term_of(subject, world) if has_machine else self._wanted_host(subject, world)
        if term is None:
            return None
        other = self.hosts.outranked_by(subject.key, hosts.rank_of(subject.raw), (term,), self._clock.now())
        return HostConflict(namespace=other.namespace, name=other.name) if other else None

    def _wanted_host(self, subject: Subject, world: World) -> str | None:
        """The host of the Machine that could be created now."""
        wanted = hosts.wants_machines(subject.raw, subject.intent) and subject.intent.effective.wanted(
            self._clock.now()
        )
        if not wanted or world.cluster is None or world.cluster.deleting:
            return None
        return self.hosts.named(subject.raw)


def _with_envelope(raw: Raw) -> Raw:
    """With apiVersion and kind, which items of a list lack."""
    return raw if "kind" in raw else {**SCHEDULED_MACHINES.envelope(), **raw}
