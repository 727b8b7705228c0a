"""Which host a RemoteMachine stands for, and the Node that the host shows up as."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

ANNOTATION_HOST_OF = "simulation.5spot.finos.org/remote-machine"
NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
LONGEST = 58


@dataclass(frozen=True, slots=True)
class Host:
    """A machine out there; two RemoteMachines with one address are one host, with one Node."""

    name: str
    provider_id: str
    address: str
    owner: str

    @classmethod
    def of(cls, remote: dict[str, Any]) -> "Host":
        """By its address; a RemoteMachine without one is a host of its own."""
        meta = remote["metadata"]
        owner = f"{meta['namespace']}/{meta['name']}"
        address = str(remote.get("spec", {}).get("address") or "")
        identity = address or f"{meta['namespace']}.{meta['name']}"
        return cls(node_name(identity), f"remote-machine://{identity}", address, owner)

    @property
    def addresses(self) -> list[dict[str, str]]:
        """As machine and Node report them."""
        known = [{"type": "Hostname", "address": self.name}]
        return [*known, {"type": "InternalIP", "address": self.address}] if self.address else known

    def node(self, machine_id: str = "") -> dict[str, Any]:
        """The Node as the host's kubelet would register it; kwok makes it Ready."""
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "labels": {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"},
                "annotations": {ANNOTATION_HOST_OF: self.owner},
            },
            "spec": {"providerID": self.provider_id},
            "status": {"nodeInfo": _node_info(machine_id)},
        }


def node_name(identity: str) -> str:
    """A name that a Node can have; where it cannot hold the whole identity, a digest keeps hosts apart."""
    plain = NOT_IN_A_NAME.sub("-", identity.lower()).strip("-")
    if len(plain) <= LONGEST and plain.replace("-", ".") == identity:
        return f"host-{plain}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    return f"host-{plain[: LONGEST - 9].strip('-')}-{digest}".replace("--", "-")


def _node_info(machine_id: str) -> dict[str, str]:
    unknown = ("bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion", "osImage")
    return {
        **dict.fromkeys(unknown, ""),
        "machineID": machine_id,
        "systemUUID": machine_id,
        "architecture": "amd64",
        "operatingSystem": "linux",
    }
