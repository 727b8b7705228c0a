"""Observes what a drain depends on: the pods of a Node, the rules for them, and the objects that they belong to.

All of it is watched while a Node is drained, so that a pod that leaves wakes its machine and an observation costs no
request. The first few Nodes of a workload cluster have a watch each, as a kubelet has; for many Nodes, one watch of all
pods takes fewer connections. Pods that cannot be watched are listed, less and less often.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from service.clock import Clock
from service.decide.drainrules import DrainRules
from service.decide.removal import RETRY_PAUSE
from service.decide.world import Node, Pod, World
from service.kube.client import Client
from service.kube.errors import KubeError, Unavailable
from service.kube.resource import DAEMON_SETS, NAMESPACES, POD_DISRUPTION_BUDGETS, PODS, Resource
from service.objects import views
from service.observe.drain_rules import rules_for
from service.observe.refusals import Refusals, slim_budget
from service.observe.shared_watches import SharedWatches
from service.runtime.backoff import Backoff, Failures
from service.runtime.cache import Change, Object
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.workload.connection import PAGE, WorkloadCluster
from service.workload.pods import pods_on

SYNC_SECONDS: Final = 5.0
OWN_WATCHES: Final = 16
"""How many Nodes of one workload cluster have a watch of their own while they are drained."""
WATCHED_BYTES: Final = 8 * 1024 * 1024
"""Some twenty thousand pods; where a cluster has more, the pods of further Nodes are listed."""
LIST_BACKOFF: Final = Backoff(base=5.0, cap=60.0, jitter=0.2)
WATCH_BACKOFF: Final = Backoff(base=5.0, cap=300.0, jitter=0.5)
_ALL: Final = "drain pods"

Listener = Callable[[Key, Change], None]
"""Called with the cluster and the change."""


class _Pods(NamedTuple):
    pods: tuple[Pod, ...]
    requeue_after: timedelta | None = None


class DrainObserver:
    """Observes drains; `changed` is called with a ScheduledMachine whose drain may continue."""

    def __init__(
        self, clock: Clock, changed: Callable[[Key], None], users: Callable[[Key, str], Iterable[Key]]
    ) -> None:
        self.refusals = Refusals()
        self._clock = clock
        self._changed = changed
        self._users = users
        """The ScheduledMachines on a Node of a cluster."""
        self._shared = SharedWatches()
        self._listings = Failures(LIST_BACKOFF)
        self._draining: set[Key] = set()

    async def observe(self, key: Key, world: World, workload: WorkloadCluster, rules: Informer | None) -> World:
        """The world with the pods of the Node, and the rules for them."""
        node = world.node
        if node is None:
            return world
        self._draining.add(key)
        drain_rules = rules_for(key, world, rules)
        found = await self._pods(key, workload, node)
        pods = await self._described(key, workload, found.pods, drain_rules)
        pods = self.refusals.with_refusals(key, pods)
        pause = RETRY_PAUSE if rules is not None and not rules.is_synced else found.requeue_after
        return replace(world, pods=pods, drain_rules=drain_rules, pods_requeue_after=pause)

    def list_backoff(self, key: Key) -> timedelta:
        """In how much real time to list pods again that are not watched: longer each time."""
        return timedelta(seconds=self._listings.failed(key))

    def forget(self, key: Key) -> None:
        """The Node of this machine is not drained any more, or not by this replica."""
        if key in self._draining:
            self._draining.discard(key)
            self._shared.release(key)
            self._listings.succeeded(key)
            self.refusals.forget(key)

    def draining(self, namespace: str) -> list[Key]:
        """The machines of a namespace whose Nodes are being drained."""
        return [key for key in self._draining if key.namespace == namespace]

    def eviction_refused(
        self, key: Key, workload: WorkloadCluster, pod: Pod, reason: str, retry_after: float | None
    ) -> timedelta:
        """Records a refused eviction; in how much real time to try again, unless a budget changes first."""
        with suppress(KubeError):
            self._watch_budgets(key, workload)
        return self.refusals.record(key, pod, reason, retry_after)

    def _watch_budgets(self, key: Key, workload: WorkloadCluster) -> None:
        self._watch(key, workload, POD_DISRUPTION_BUDGETS, self._budget_changed, slim=slim_budget)

    # Pods

    async def _pods(self, key: Key, workload: WorkloadCluster, node: Node) -> _Pods:
        watched = await self._watched(key, workload, node.name)
        if watched is not None:
            self._listings.succeeded(key)
            return _Pods(watched)
        listed = await pods_on(workload.client, node.name)
        return _Pods(listed, self.list_backoff(key))

    async def _watched(self, key: Key, workload: WorkloadCluster, node: str) -> tuple[Pod, ...] | None:
        """The pods in the cache of the watch; None while that is not complete."""
        own = self._own_watch(workload.key, node)
        fields = f"spec.nodeName={node}" if own else "spec.nodeName!="
        informer = self._shared.use(key, workload, own or _ALL, partial(self._pod_watch, workload.key, fields))
        if own and not informer.is_synced and informer.error is None:
            await _first_list(informer)
        if not informer.is_synced or informer.error is not None:
            return None
        keys = sorted(informer.keys_by("node", node))
        return views.pods(raw for raw in (informer.get(one) for one in keys) if raw is not None)

    def _own_watch(self, cluster: Key, node: str) -> str | None:
        """The watch of this Node alone, if it has one or may have one."""
        name = f"{_ALL} on {node}"
        existing = self._shared.names(cluster)
        if name in existing:
            return name
        own = sum(1 for one in existing if one.startswith(f"{_ALL} on "))
        return name if own < OWN_WATCHES and _ALL not in existing else None

    def _pod_watch(self, cluster: Key, fields: str, client: Client) -> Informer:
        options = {"indexes": {"node": _node_of}, "budget": WATCHED_BYTES, "page_size": PAGE, "backoff": WATCH_BACKOFF}
        informer = Informer(client, PODS, fields=fields, slim=views.slim_pod, **options)  # type: ignore[arg-type]
        informer.listen(partial(self._pod_changed, cluster))
        return informer

    def _pod_changed(self, cluster: Key, change: Change) -> None:
        for key in self._users(cluster, change.object["spec"]["nodeName"]):
            if key in self._draining:
                self._changed(key)

    # The objects that pods belong to

    async def _described(
        self, key: Key, workload: WorkloadCluster, pods: tuple[Pod, ...], rules: DrainRules
    ) -> tuple[Pod, ...]:
        if any(pod.controller_kind == "DaemonSet" and not pod.finished for pod in pods):
            daemon_sets = await self._cache_of(key, workload, DAEMON_SETS)
            pods = tuple(replace(pod, orphaned=_is_orphan(pod, daemon_sets)) for pod in pods)
        if rules.ask_for_namespaces:
            namespaces = await self._cache_of(key, workload, NAMESPACES)
            pods = tuple(replace(pod, namespace_labels=_labels_of(pod, namespaces)) for pod in pods)
        return tuple(self._timed(pod) for pod in pods)

    def _timed(self, pod: Pod) -> Pod:
        """With the time of its deletion on the schedule's clock."""
        return replace(pod, deleted_at=self._clock.shown_at(pod.deleted_at)) if pod.deleted_at else pod

    async def _cache_of(self, key: Key, workload: WorkloadCluster, resource: Resource) -> Informer | None:
        """A cache of such objects; None if they cannot be listed."""
        try:
            informer = self._watch(key, workload, resource, self._any_changed, metadata_only=True)
        except KubeError:
            return None
        if not informer.is_synced and informer.error is None:
            await _first_list(informer)
        return informer if informer.is_synced and informer.error is None else None

    def _watch(
        self, key: Key, workload: WorkloadCluster, resource: Resource, changed: Listener, **options: object
    ) -> Informer:
        def make(client: Client) -> Informer:
            limits = {"budget": WATCHED_BYTES, "page_size": PAGE, "backoff": WATCH_BACKOFF}
            informer = Informer(client, resource, **limits, **options)  # type: ignore[arg-type]
            informer.listen(partial(changed, workload.key))
            return informer

        return self._shared.use(key, workload, f"drain {resource.plural}", make)

    def _budget_changed(self, cluster: Key, change: Change) -> None:
        for key in self.refusals.budget_changed(self._shared.users(cluster), change):
            self._changed(key)

    def _any_changed(self, cluster: Key, change: Change) -> None:
        """A Namespace or DaemonSet changed: rare, so every drain in the cluster is woken."""
        del change
        for key in self._shared.users(cluster):
            self._changed(key)


async def _first_list(informer: Informer) -> None:
    """Waits a little for the first list; the caller checks whether it has arrived."""
    with suppress(Unavailable):
        await informer.synced(within=SYNC_SECONDS)


def _node_of(pod: Object) -> Iterable[str]:
    yield pod["spec"]["nodeName"]


def _is_orphan(pod: Pod, daemon_sets: Informer | None) -> bool:
    if daemon_sets is None or pod.controller_kind != "DaemonSet" or pod.controller_name is None:
        return False
    return Key(pod.namespace, pod.controller_name) not in daemon_sets


def _labels_of(pod: Pod, namespaces: Informer | None) -> dict[str, str] | None:
    raw = namespaces.get(Key("", pod.namespace)) if namespaces else None
    if not raw:
        return None
    labels = raw["metadata"].get("labels") or {}
    return {key: value for key, value in labels.items() if isinstance(value, str)}
