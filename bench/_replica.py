"""`5spot run` as one of several processes whose simulated clocks show the same: `python _replica.py STARTED run ...`.

Every process has the same monotonic clock; `STARTED` is what it showed when the simulated one stood at `--at`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from local import access
from local.cluster import LocalCluster
from local.processes import Keeper, Server
from service import cli
from service.clock import SimulatedClock
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.informer import Informer

SHORT_LEASE = 6.0
SHORT_LEASES = (f"--lease-seconds={SHORT_LEASE}", "--lease-renew-seconds=4.5", "--lease-retry-seconds=0.5")


@dataclass(frozen=True)
class Crew:
    """Where several replicas work, and on which clock."""

    cluster: LocalCluster
    keeper: Keeper
    tenants: str
    own: str
    clock: SimulatedClock
    count: int
    flags: Sequence[str] = ()
    names: list[str] = field(default_factory=list)

    def replica(self, number: int) -> Server:
        """One of them, not started yet; each has a log of its own."""
        self.names.append(f"replica-{number}-{len(self.names)}")
        argv = [
            sys.executable,
            __file__,
            str(self.clock.started),
            "run",
            f"--kubeconfig={self.cluster.kubeconfig_of(access.OPERATOR)}",
            f"--namespace={self.own}",
            f"--namespaces={self.tenants}",
            f"--instance-count={self.count}",
            f"--instance-id={number % self.count}",
            f"--at={self.clock.at.isoformat()}",
            f"--speed={self.clock.speed}",
            "--no-webhooks",
            "--bind-address=127.0.0.1",
            "--health-port=0",
            "--metrics-port=0",
            "--drain-seconds=0",
            *self.flags,
        ]
        return Server(self.names[-1], argv, self.keeper, lambda: True)


@asynccontextmanager
async def watching(client: Client, namespace: str) -> AsyncIterator[Callable[[str], int]]:
    """Counts the ScheduledMachines in a phase, by a watch of its own."""
    seen = Informer(client, SCHEDULED_MACHINES, namespaces=(namespace,), indexes={"phase": _phase})
    task = asyncio.create_task(seen.run())
    try:
        await seen.synced()
        yield lambda phase: seen.count_by("phase", phase)
    finally:
        task.cancel()


def _phase(raw: dict[str, Any]) -> list[str]:
    return [(raw.get("status") or {}).get("phase", "")]


def main() -> int:
    """Runs the service with the clock that all of them share."""
    started = float(sys.argv[1])

    def starting(at: datetime, speed: float = 1.0) -> SimulatedClock:
        return replace(SimulatedClock(at=at, speed=speed, started=0.0), started=started)

    SimulatedClock.starting = starting  # type: ignore[method-assign]
    return int(cli.main(sys.argv[2:]) or 0)


if __name__ == "__main__":
    sys.exit(main())
