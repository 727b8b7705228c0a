"""A herd that is due when `5spot run` starts: what the process needs, imports, lease and caches included."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import orjson

from bench import _herd as herd
from bench import _proc
from bench._plane import Operated, Plane
from local import access
from local.operator import ClockPace, Endpoints, Operator
from local.ports import ANY_PORTS, LOOPBACK
from local.processes import Server
from service.kube.client import Client
from service.kube.resource import NAMESPACES

LOOK_EVERY = 0.05
PATIENCE = 600.0
AFTER_OPENING = ClockPace(at=herd.OPENS)


@dataclass(frozen=True)
class ProcessRun:
    """What one process did, from its start until all of a herd are Active and until it is at rest."""

    objects: int
    first_machine: float
    """Seconds until the first Machine was reported."""
    seconds: float
    """Seconds until the last status said Active."""
    cpu: float
    """Processor time until then."""
    cpu_at_rest: float
    """Processor time until the last Event was sent, too."""
    passes: float
    requests: Counter[str]
    """By verb and resource, without watches."""
    resident: float

    def described(self) -> str:
        each = 1000 / self.objects
        sent = ", ".join(f"{count / self.objects:.2f} {what}" for what, count in self.requests.most_common(8))
        return (
            f"5spot run: first Machine after {self.first_machine:.2f} s, all Active after {self.seconds:.2f} s; "
            f"processor time for each {self.cpu * each:.2f} ms, with Events {self.cpu_at_rest * each:.2f} ms, "
            f"{1000 * self.cpu / self.passes:.2f} ms a pass\n"
            f"  for each: {self.passes / self.objects:.2f} passes, "
            f"{self.requests.total() / self.objects:.2f} requests ({sent}); {self.resident:.0f} MB"
        )


async def process_herd(plane: Plane, client: Client, space: str, objects: int) -> ProcessRun:
    """Stores a herd whose window is open, starts the operator, and follows it by its log."""
    await herd.prepare(client, space, objects)
    own = f"own-{space}"
    await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": own}})
    with _operator(plane, space, own) as operated:
        began = time.time()
        operated.operator.server.start()
        log = _Log(operated.operator.server)
        while log.active < objects:
            await asyncio.sleep(LOOK_EVERY)
            log.read()
            if time.time() - began > PATIENCE:
                raise SystemExit(f"only {log.active} of {objects} are Active:\n{operated.operator.server.last_lines()}")
        cpu = operated.cpu_seconds
        passes = operated.metric("reconciles_total")
        await operated.at_rest()
        run = ProcessRun(
            objects=objects,
            first_machine=log.first_machine - began,
            seconds=log.last_active - began,
            cpu=cpu,
            cpu_at_rest=operated.cpu_seconds,
            passes=passes,
            requests=Counter(operated.requests()),
            resident=_proc.resident(operated.pid),
        )
    await herd.check(client, space, objects)
    await herd.check_events(client, space, objects)
    return run


@contextmanager
def _operator(plane: Plane, tenants: str, own: str) -> Iterator[Operated]:
    """`5spot run` without webhooks, with Leases, for one namespace; not started yet."""
    endpoints = Endpoints.pick(ANY_PORTS.pick(), ANY_PORTS)
    argv = [
        sys.executable,
        "-m",
        "service",
        "run",
        f"--kubeconfig={plane.cluster.kubeconfig_of(access.OPERATOR)}",
        f"--namespace={own}",
        f"--namespaces={tenants}",
        f"--bind-address={LOOPBACK}",
        "--no-webhooks",
        "--drain-seconds=0",
        *endpoints.flags,
        *AFTER_OPENING.flags,
    ]
    operator = Operator(Server(tenants, argv, plane.keeper, lambda: True), endpoints, AFTER_OPENING)
    try:
        yield Operated(operator)
    finally:
        operator.server.kill()


class _Log:
    """Follows the log of an operator, which says when a Machine was created and when a phase changed."""

    def __init__(self, server: Server) -> None:
        self._path = server.log
        self._read = 0
        self.active = 0
        self.first_machine = 0.0
        self.last_active = 0.0

    def read(self) -> None:
        """Takes in the lines since the last time."""
        with self._path.open("rb") as lines:
            lines.seek(self._read)
            for line in lines:
                if line.endswith(b"\n"):  # else the operator is in the middle of it
                    self._read += len(line)
                    self._take(line)

    def _take(self, line: bytes) -> None:
        if b'"after":"Active"' in line:
            self.active += 1
            self.last_active = _written_at(line)
        elif b'"MachineCreated"' in line and not self.first_machine:
            self.first_machine = _written_at(line)


def _written_at(line: bytes) -> float:
    return datetime.fromisoformat(orjson.loads(line)["timestamp"]).timestamp()
