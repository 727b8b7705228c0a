"""Writes the request to this host's own Node, and to no other."""

from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any, Literal

from agent.api import Api, object_path
from agent.examine import Match
from agent.trigger import NodeSeen
from crds.names import (
    ANNOTATION_RECLAIM_REASON,
    ANNOTATION_RECLAIM_REQUESTED,
    ANNOTATION_RECLAIM_REQUESTED_AT,
)

HostCheck = Literal["strict", "lenient", "off"]
NODES = "/api/v1/nodes"


class WrongHost(Exception):
    """The Node of our name does not seem to be the host that we run on."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """Claims one host back."""

    api: Api
    node: str
    machine_id_file: Path
    host_check: HostCheck

    def request(self, match: Match) -> NodeSeen:
        """Store the three annotations unless a request stands already; answers the Node as it then is."""
        path = object_path(NODES, self.node)
        with self.api.session() as session:
            node = session.get(path)
            self._check_host(node)
            seen = node_seen(node["metadata"])
            if seen.requested:
                return seen
            return node_seen(session.apply(path, annotated(self.node, seen.uid, match))["metadata"])

    def _check_host(self, node: dict[str, Any]) -> None:
        problem = self.doubt(node)
        if problem is not None:
            raise WrongHost(problem)

    def doubt(self, node: dict[str, Any]) -> str | None:
        """Why this Node must not be written to, or None."""
        theirs = str(node.get("status", {}).get("nodeInfo", {}).get("machineID", ""))
        problem = host_problem(self._machine_id(), theirs, self.host_check)
        return None if problem is None else f"Node {self.node}: {problem}"

    def _machine_id(self) -> str:
        try:
            return self.machine_id_file.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            return ""


def host_problem(ours: str, theirs: str, check: HostCheck) -> str | None:
    """Why two machine-ids do not belong to one host, or None."""
    if check == "off":
        return None
    if not ours or not theirs:
        unknown = "this host's machine-id cannot be read" if not ours else "its status.nodeInfo.machineID is empty"
        return unknown if check == "strict" else None
    if ours.lower() != theirs.lower():
        return f"its machineID is {theirs!r}, this host's is {ours!r}; is NODE_NAME right, or the host a clone?"
    return None


def annotated(node: str, uid: str, match: Match) -> dict[str, Any]:
    """The apply body. The uid keeps the request from landing on, or creating, another Node of that name."""
    annotations = {
        ANNOTATION_RECLAIM_REQUESTED: "true",
        ANNOTATION_RECLAIM_REASON: match.reason,
        ANNOTATION_RECLAIM_REQUESTED_AT: match.seen_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "uid": uid, "annotations": annotations}}


def node_seen(metadata: dict[str, Any]) -> NodeSeen:
    """What the state machine wants to know of a Node."""
    annotations = metadata.get("annotations") or {}
    return NodeSeen(
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        requested=annotations.get(ANNOTATION_RECLAIM_REQUESTED) == "true",
    )
