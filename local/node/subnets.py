"""Picks a subnet for the node's bridge that nothing on this machine leads to."""

import ipaddress
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Final

from local.cluster import SERVICES
from local.errors import LocalError

CANDIDATES: Final = tuple(IPv4Network(f"10.{second}.0.0/24") for second in range(231, 255))


@dataclass(frozen=True, slots=True)
class Subnet:
    """The pods' addresses; the first is the bridge's own, where servers listen that pods call."""

    network: IPv4Network

    @property
    def bridge(self) -> str:
        """The bridge's address."""
        return str(self.network[1])

    @property
    def bridge_with_prefix(self) -> str:
        """As `ip address add` takes it."""
        return f"{self.bridge}/{self.network.prefixlen}"


def pick() -> Subnet:
    """A subnet that is free on this machine."""
    return free(routes())


def free(taken: Iterable[IPv4Network]) -> Subnet:
    """The first candidate that no route overlaps; the Services' own range has to be free too."""
    known = list(taken)
    if any(network.overlaps(IPv4Network(SERVICES)) for network in known):
        raise LocalError(f"this machine has a route into {SERVICES}, which the cluster's Services need: remove it.")
    for candidate in CANDIDATES:
        if not any(network.overlaps(candidate) for network in known):
            return Subnet(candidate)
    raise LocalError(f"this machine has routes into all of {CANDIDATES[0]} to {CANDIDATES[-1]}: remove one of them.")


def routes() -> list[IPv4Network]:
    """Where the machine's routes lead, but for the default route."""
    listed = subprocess.run(["ip", "-j", "-4", "route", "show", "table", "all"], check=True, capture_output=True)  # noqa: S607 -- on the PATH of root
    found = (ipaddress.ip_network(each["dst"]) for each in json.loads(listed.stdout) if each["dst"] != "default")
    return [network for network in found if isinstance(network, IPv4Network)]
