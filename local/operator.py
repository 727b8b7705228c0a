"""The operator on a local control plane: registers its webhooks and starts its process, on a fast clock if asked."""

import asyncio
import http.client
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

from crds import names
from local import access, examples
from local.cluster import LocalCluster, start_on_free_port
from local.crds import FIELD_MANAGER, LOOK_EVERY
from local.errors import LocalError
from local.ports import LOOPBACK, PortRange
from local.processes import Keeper, Server
from service.clock import SimulatedClock
from service.kube.client import Client, PatchKind
from service.kube.errors import AlreadyExists, KubeError
from service.kube.resource import MUTATING_WEBHOOKS, NAMESPACES, SCHEDULED_MACHINES, VALIDATING_WEBHOOKS
from webhooks.configuration import Registration, manifests

NAME = "operator"
NAMESPACE = "5spot-system"
GATE_PATIENCE = 60.0
CLOCK_SAMPLES = 9
CLOCK = re.compile(rb"^fivespot_clock_time_seconds (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ClockPace:
    """The operator's clock: where it starts (by default now) and how many times as fast as real it runs."""

    at: datetime | None = None
    speed: float = 1.0

    @property
    def flags(self) -> list[str]:
        """For `5spot run`."""
        start = [f"--at={self.at.isoformat()}"] if self.at else []
        return [*start, f"--speed={self.speed}"]

    @property
    def simulated(self) -> bool:
        """Whether it differs from the wall clock."""
        return self.at is not None or self.speed != 1.0

    def described(self) -> str:
        """For people."""
        start = f"started at {self.at.isoformat(' ', 'minutes')}" if self.at else "started at the real time"
        return f"{start}, runs {self.speed:g} times as fast" if self.speed != 1.0 else start


REAL_TIME = ClockPace()


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the operator listens."""

    webhooks: str
    health: str
    metrics: str

    @classmethod
    def pick(cls, webhook_port: int, ports: PortRange) -> "Endpoints":
        """The webhooks on that port, the others on further free ones."""
        health = ports.pick(webhook_port)
        metrics = ports.pick(webhook_port, health)
        return cls(f"https://{LOOPBACK}:{webhook_port}", f"http://{LOOPBACK}:{health}", f"http://{LOOPBACK}:{metrics}")

    @property
    def flags(self) -> list[str]:
        """For `5spot run`."""
        urls = {"webhook": self.webhooks, "health": self.health, "metrics": self.metrics}
        return [f"--{name}-port={urlsplit(url).port}" for name, url in urls.items()]


@dataclass(frozen=True, slots=True)
class Operator:
    """A running operator."""

    server: Server
    endpoints: Endpoints
    pace: ClockPace

    @classmethod
    def start(
        cls, cluster: LocalCluster, keeper: Keeper, pace: ClockPace, ports: PortRange, flags: Sequence[str] = ()
    ) -> "Operator":
        """Brings it up; ready means that its webhooks answer the API server and its caches are complete."""
        made: list[Operator] = []

        def make(port: int) -> Server:
            endpoints = Endpoints.pick(port, ports)
            asyncio.run(_with(cluster, lambda client: _register(client, endpoints.webhooks)))
            probe = f"{endpoints.health}/ready"
            command = [*_command(cluster, endpoints, pace), *flags]
            server = Server(NAME, command, keeper, lambda: access.answers(probe))
            made.append(cls(server, endpoints, pace))
            return server

        start_on_free_port(make, ports)
        asyncio.run(_with(cluster, _gate_in_place))
        return made[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.kill()  # the control plane that it works on stops too

    def described(self) -> dict[str, str]:
        """Where it listens and how its clock runs, for people."""
        where = asdict(self.endpoints)
        return where | {"clock": self.pace.described()} if self.pace.simulated else where

    def clock(self) -> SimulatedClock:
        """A copy of its clock, never behind it: of a few answers the quickest is the most exact."""
        return min((self._asked() for _ in range(CLOCK_SAMPLES)), key=lambda answer: answer[0])[1]

    def _asked(self) -> tuple[float, SimulatedClock]:
        asked = time.monotonic()
        shown = schedule_time(self.endpoints.metrics)
        if shown is None:
            raise LocalError(f"the operator does not report its time at {self.endpoints.metrics}/metrics")
        return time.monotonic() - asked, SimulatedClock(shown, self.pace.speed, asked)


def schedule_time(metrics_url: str) -> datetime | None:
    """The operator's time, from its metrics; None if it does not answer."""
    parts = urlsplit(metrics_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5.0)
    try:
        connection.request("GET", "/metrics")
        found = CLOCK.search(connection.getresponse().read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return datetime.fromtimestamp(float(found[1]), UTC) if found else None


def _command(cluster: LocalCluster, endpoints: Endpoints, pace: ClockPace) -> list[str]:
    return [
        sys.executable,
        "-m",
        "service",
        "run",
        f"--kubeconfig={cluster.kubeconfig_of(access.OPERATOR)}",
        f"--namespace={NAMESPACE}",
        f"--bind-address={LOOPBACK}",
        f"--webhook-hosts={LOOPBACK}",
        "--log-format=console",
        *endpoints.flags,
        *pace.flags,
    ]


async def _with(cluster: LocalCluster, work: Callable[[Client], Awaitable[None]]) -> None:
    async with cluster.client() as client:
        await work(client)


async def _register(client: Client, url: str) -> None:
    """Registers the webhooks with the API server; the operator writes their caBundle itself."""
    with suppress(AlreadyExists):  # from an attempt on a port that another process took
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": NAMESPACE}})
    registration = Registration(at=url, service_account=access.OPERATOR, calendars=True, overrides=True, classes=True)
    for resource, body in zip((MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), manifests(registration), strict=True):
        name = body["metadata"]["name"]
        await client.patch(resource, name, body, kind=PatchKind.APPLY, field_manager=FIELD_MANAGER, force=True)


async def _gate_in_place(client: Client) -> None:
    """Returns when the API server calls the webhooks and trusts them; until then it refuses, or skips them."""
    said = "it does not ask the webhooks"
    try:
        async with asyncio.timeout(GATE_PATIENCE):
            while True:
                try:
                    if await _passes_gate(client):
                        return
                except KubeError as error:
                    said = error.message
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError as error:
        raise LocalError(f"no ScheduledMachine can be stored {GATE_PATIENCE:.0f} s after the start: {said}") from error


async def _passes_gate(client: Client) -> bool:
    """Whether a dry run of a harmless object returns what the defaulting webhook adds."""
    body = examples.load(examples.OFFICE) | {"metadata": {"generateName": "probe-"}}
    stored = await client.create(SCHEDULED_MACHINES, body, namespace="default", dry_run=True)
    return names.FINALIZER in stored["metadata"].get("finalizers", ())
