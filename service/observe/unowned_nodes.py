"""Nodes that request an emergency reclaim, and those among them that belong to no ScheduledMachine."""

from typing import Final

import structlog

from crds import names
from service.runtime.cache import Change, EventType, Object
from service.runtime.informer import Informer
from service.runtime.key import Key

MOST_REMEMBERED: Final = 10_000
"""Tenants control workload clusters: one may have any number of such Nodes."""

log = structlog.get_logger(__name__)


def requests_reclaim(change: Change) -> bool:
    """Whether the agent on a Node requests an emergency reclaim."""
    annotations = change.object["metadata"].get("annotations") or {}
    exists = change.type is not EventType.DELETED
    return exists and annotations.get(names.ANNOTATION_RECLAIM_REQUESTED) == "true"


class UnownedNodes:
    """Nodes that request a reclaim although they belong to no ScheduledMachine; each is logged once."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def report(self, cluster: Key, node: Object, machines: Informer | None) -> bool:
        """Logs a request; returns False if it was logged before, or one of our Machines has the Node."""
        name = node["metadata"]["name"]
        uid = node["metadata"]["uid"]
        if uid in self._reported or (machines is not None and _has_machine(machines, cluster, name)):
            return False
        if len(self._reported) >= MOST_REMEMBERED:
            self._reported.clear()
        self._reported.add(uid)
        log.warning("ignored: a reclaim request on a Node of no ScheduledMachine", cluster=str(cluster), node=name)
        return True


def _has_machine(machines: Informer, cluster: Key, node: str) -> bool:
    near = (machines.get(key) for key in machines if key.namespace == cluster.namespace)
    return any(
        raw["spec"].get("clusterName") == cluster.name
        and ((raw.get("status") or {}).get("nodeRef") or {}).get("name") == node
        for raw in near
        if raw is not None
    )
