"""Nodes that ask for an emergency reclaim, and those among them that are not our business."""

from typing import Final

import structlog

from crds import names
from service.runtime.cache import Change, EventType, Object
from service.runtime.informer import Informer
from service.runtime.key import Key

MOST_REMEMBERED: Final = 10_000
"""A workload cluster is somebody else's: it may have any number of them."""

log = structlog.get_logger(__name__)


def asks_back(change: Change) -> bool:
    """Whether the agent on a Node asks for its host."""
    annotations = change.object["metadata"].get("annotations") or {}
    there = change.type is not EventType.DELETED
    return there and annotations.get(names.ANNOTATION_RECLAIM_REQUESTED) == "true"


class UnownedNodes:
    """Nodes that ask for a reclaim although they belong to no ScheduledMachine: not our business, told once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def asked(self, cluster: Key, node: Object, machines: Informer | None) -> bool:
        """Whether it was worth telling: not if a Machine of ours has that Node and has only not been looked at yet."""
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        if uid in self._told or (machines is not None and _has_machine(machines, cluster, name)):
            return False
        if len(self._told) >= MOST_REMEMBERED:
            self._told.clear()
        self._told.add(uid)
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
