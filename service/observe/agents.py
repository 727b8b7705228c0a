"""Observes whether the reclaim agent works on a Node: whether it is installed, runs, and which commands it looks for.

Its objects in a workload cluster are watched as soon as one machine there wants an agent: so an observation costs no
request, and a change of one of them wakes the ScheduledMachines that it concerns.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from crds import names
from service.decide.reasons import Reason
from service.decide.reclaim_agent import config_name, is_labelled
from service.decide.world import Node, Problem, ReclaimAgent
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.kube.resource import CONFIG_MAPS, DAEMON_SETS, NAMESPACES, PODS, Resource
from service.runtime.cache import Change, EventType, Object
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.workload.connection import NODE_BYTES, PAGE, WorkloadCluster

SYNC_SECONDS: Final = 5.0
REQUEUE_AFTER: Final = timedelta(minutes=1)
"""While the agent's objects cannot be read; no watch reports when they can."""
_PLACE: Final = f"{names.RECLAIM_NAMESPACE}/{names.RECLAIM_DAEMON_SET}"
_DAEMON_SET: Final = Key(names.RECLAIM_NAMESPACE, names.RECLAIM_DAEMON_SET)
_INSTALL: Final = "Install the agent's manifests in the workload cluster."

Raw = dict[str, Any]
Listener = Callable[[Key, str | None], None]
"""Called with the cluster, and the Node whose agent changed; None if it may be any."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """The informers of the agent's objects in one workload cluster."""

    daemon_sets: Informer
    pods: Informer
    configs: Informer

    async def synced(self) -> None:
        for informer in (self.daemon_sets, self.pods, self.configs):
            if not informer.is_synced:
                if informer.error is not None:
                    raise informer.error  # a watch that is known to fail is not waited for
                await informer.synced(within=SYNC_SECONDS)


class AgentObserver:
    """Observes agents; `changed` is called whenever an observation would differ."""

    def __init__(self, changed: Listener) -> None:
        self._changed = changed

    async def observe(self, workload: WorkloadCluster, node: Node) -> ReclaimAgent:
        """The agent on a Node."""
        try:
            watched = self._watched(workload)
            await watched.synced()
            missing = None if _DAEMON_SET in watched.daemon_sets else await _missing(workload.client())
        except KubeError as error:
            return ReclaimAgent(
                problem=Problem(Reason.AGENT_NOT_SEEN, error.message), installed=False, requeue_after=REQUEUE_AFTER
            )
        if missing is not None and missing.reason == Reason.AGENT_NAMESPACE_MISSING:
            return ReclaimAgent(problem=missing, installed=False)
        commands = _commands(watched.configs.get(Key(names.RECLAIM_NAMESPACE, config_name(node.name))))
        if missing is not None:
            return ReclaimAgent(commands, problem=missing)
        runs = is_labelled(node) and _runs(watched.pods, node)
        return ReclaimAgent(commands, problem=None if runs else _not_ready(node))

    def absorb_config(self, workload: WorkloadCluster, config: Raw) -> None:
        """Takes in the answer to our own write to an agent's ConfigMap."""
        self._watched(workload).configs.absorb(config)

    def _watched(self, workload: WorkloadCluster) -> _Watched:
        def watch(resource: Resource, changed: Callable[[Key, Change], None], **options: Any) -> Informer:
            def make(client: Client) -> Informer:
                options.update(namespaces=(names.RECLAIM_NAMESPACE,), budget=NODE_BYTES, page_size=PAGE)
                informer = Informer(client, resource, **options)
                informer.listen(partial(changed, workload.key))
                return informer

            return workload.watch(f"agent {resource.plural}", make)

        pods = f"{names.LABEL_NAME}={names.RECLAIM_DAEMON_SET}"
        ours = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"
        return _Watched(
            watch(DAEMON_SETS, self._daemon_set_changed, metadata_only=True),
            watch(PODS, self._pod_changed, labels=pods, slim=_slim_pod, indexes={"ready on": _ready_on}),
            watch(CONFIG_MAPS, self._config_changed, labels=ours),
        )

    def _daemon_set_changed(self, cluster: Key, change: Change) -> None:
        if change.key == _DAEMON_SET and change.type is not EventType.CHANGED:
            self._changed(cluster, None)

    def _pod_changed(self, cluster: Key, change: Change) -> None:
        if change.object["node"]:
            self._changed(cluster, change.object["node"])

    def _config_changed(self, cluster: Key, change: Change) -> None:
        if change.key.name.startswith(names.RECLAIM_CONFIG_PREFIX):
            self._changed(cluster, change.key.name.removeprefix(names.RECLAIM_CONFIG_PREFIX))


async def _missing(client: Client) -> Problem | None:
    """What is not installed, where the cache has no DaemonSet."""
    try:
        await client.get(NAMESPACES, names.RECLAIM_NAMESPACE)
    except NotFound:
        message = f"There is no namespace {names.RECLAIM_NAMESPACE} in the workload cluster. {_INSTALL}"
        return Problem(Reason.AGENT_NAMESPACE_MISSING, message)
    message = f"There is no DaemonSet {_PLACE} in the workload cluster. {_INSTALL}"
    return Problem(Reason.AGENT_DAEMON_SET_MISSING, message)


def _slim_pod(raw: Object) -> Object:
    conditions = (raw.get("status") or {}).get("conditions") or ()
    kept = {name: raw["metadata"].get(name) for name in ("name", "namespace", "uid", "resourceVersion")}
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return {"metadata": kept, "node": (raw.get("spec") or {}).get("nodeName", ""), "ready": ready}


def _ready_on(pod: Object) -> Iterable[str]:
    if pod["ready"]:
        yield pod["node"]


def _runs(pods: Informer, node: Node) -> bool:
    return pods.count_by("ready on", node.name) > 0


def _commands(config: Raw | None) -> tuple[str, ...] | None:
    if config is None:
        return None
    try:
        listed = json.loads((config.get("data") or {}).get(names.RECLAIM_CONFIG_KEY, ""))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None  # edited by another client: the controller writes it again
    return tuple(listed) if isinstance(listed, list) else None


def _not_ready(node: Node) -> Problem:
    return Problem(Reason.AGENT_NOT_READY, f"No pod of DaemonSet {_PLACE} is ready on Node {node.name} yet.")
