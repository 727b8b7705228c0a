"""Builds a chronicle by hand: what was seen on the Friday and Saturday of the demo."""

from datetime import datetime, timedelta

from local.demo.expectations import FRIDAY
from local.demo.observations import Chronicle, Kind, Observation


def at(hours: float) -> datetime:
    """Hours since Friday, 00:00."""
    return FRIDAY + timedelta(hours=hours)


class ChronicleBuilder:
    """A chronicle and short words to fill it with."""

    def __init__(self) -> None:
        self.chronicle = Chronicle()

    def machine(self, hours: float, name: str, phase: str, machine: str = "", **facts: str) -> None:
        said = {"phase": phase, "machine": machine, "ready": "", "node": "", "message": "", **facts}
        self._see(hours, Kind.MACHINE, name, **said)

    def node(self, hours: float, name: str, **facts: str) -> None:
        self._see(hours, Kind.NODE, name, **{"state": "Ready", "cordoned": "", "taints": "", **facts})

    def pod(self, hours: float, name: str, node: str, state: str = "running") -> None:
        self._see(hours, Kind.POD, name, state=state, node=node)

    def event(self, hours: float, about: str, reason: str, note: str = "") -> None:
        self._see(hours, Kind.EVENT, f"{about}.{reason}", about=about, reason=reason, note=note, type="Normal")

    def gone(self, hours: float, kind: Kind, name: str) -> None:
        self._see(hours, kind, name)

    def _see(self, hours: float, kind: Kind, name: str, **facts: str) -> None:
        self.chronicle.record(Observation(at(hours), kind, name, facts))


def day_of(name: str, pods: tuple[str, ...], *, comes: float, leaves: float, taints: str = "") -> ChronicleBuilder:
    """A machine that comes, runs pods, is drained and leaves within the hour."""
    builder, node = ChronicleBuilder(), f"host-{name}"
    builder.machine(comes, name, "Active", "Provisioning")
    builder.node(comes + 0.1, node, taints=taints)
    builder.machine(comes + 0.1, name, "Active", "Running", ready="True", node=node)
    for pod in pods:
        builder.pod(comes + 0.2, pod, node)
    builder.node(leaves, node, cordoned="yes", taints=taints)
    builder.machine(leaves, name, "ShuttingDown", "Running", node=node)
    for pod in pods:
        builder.gone(leaves + 0.3, Kind.POD, pod)
    builder.gone(leaves + 0.5, Kind.NODE, node)
    builder.machine(leaves + 0.6, name, "Inactive")
    return builder
