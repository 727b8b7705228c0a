"""What the benchmarks run on: a control plane of their own, the operator as a real process, and what that one uses."""

import argparse
import asyncio
import http.client
import re
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import uvloop

from bench import _proc
from crds.definitions import all_definitions
from local import access, capi
from local.binaries import ensure
from local.cluster import Audit, LocalCluster, Options
from local.operator import REAL_TIME, ClockPace, Operator
from local.ports import ANY_PORTS
from local.processes import Keeper
from local.progress import Progress
from local.provider import kinds

CAPI_KINDS = ("Cluster", "Machine")
LOOK_EVERY = 0.5
QUIET_SECONDS = 5.0


@dataclass(frozen=True)
class Plane:
    """A control plane without Cluster API's controllers and without a provider: only the operator writes."""

    cluster: LocalCluster
    keeper: Keeper

    @contextmanager
    def operator(self, pace: ClockPace = REAL_TIME) -> Iterator["Operated"]:
        """The operator with its webhooks, as `5spot run` in a process of its own."""
        with Operator.start(self.cluster, self.keeper, pace, ANY_PORTS) as started:
            yield Operated(started)


@contextmanager
def control_plane(audit: Audit = Audit.OFF, controller_flags: tuple[str, ...] = ()) -> Iterator[Plane]:
    """An API server with all CRDs and no controller but Kubernetes' own: Cluster API and provider are stopped."""
    assets = ensure(Progress())
    served = [crd for crd in capi.load_definitions(assets.capi_crds) if crd["spec"]["names"]["kind"] in CAPI_KINDS]
    definitions = (*kinds.definitions(), *served, *all_definitions())
    options = Options(definitions=definitions, audit=audit, controller_flags=controller_flags)
    with Keeper() as keeper, LocalCluster("bench", assets, keeper, options) as cluster:
        yield Plane(cluster, keeper)


Benchmark = Callable[[Plane, "Operated", argparse.Namespace], Coroutine[Any, Any, None]]


def with_operator(
    benchmark: Benchmark,
    args: argparse.Namespace,
    audit: Audit = Audit.OFF,
    controller_flags: tuple[str, ...] = (),
) -> None:
    """Runs a benchmark on a control plane with the operator, on the event loop that the operator uses too."""
    with (
        control_plane(audit, controller_flags) as plane,
        plane.operator() as operated,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(benchmark(plane, operated, args))


@dataclass(frozen=True)
class Usage:
    """What a process and its API server did over a while."""

    seconds: float
    cpu: float
    requests: list[str]

    @property
    def core_share(self) -> float:
        """Percent of one core."""
        return 100 * self.cpu / self.seconds

    @property
    def per_minute(self) -> float:
        return len(self.requests) * 60 / self.seconds


@dataclass(frozen=True)
class Operated:
    """A running operator, looked at from outside."""

    operator: Operator

    @property
    def pid(self) -> int:
        pid = self.operator.server.pid
        if pid is None:
            raise SystemExit("the operator died:\n" + "\n".join(self.operator.server.last_lines()))
        return pid

    @property
    def resident(self) -> float:
        """Memory in MB."""
        return _proc.resident(self.pid)

    @property
    def cpu_seconds(self) -> float:
        """Processor time used so far."""
        return _proc.cpu_seconds(self.pid)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all series with these labels; 0 while it does not answer."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        try:
            scraped = self._metrics()
        except (OSError, http.client.HTTPException):
            scraped = ""
        lines = re.findall(rf"^fivespot_{name}(?:{{(.*)}})? (\S+)$", scraped, re.MULTILINE)
        return sum(float(value) for series, value in lines if all(one in series.split(",") for one in wanted))

    def requests(self) -> dict[str, int]:
        """Its finished calls by verb and resource, without watches and Leases; fails if it does not answer."""
        found = Counter[str]()
        for series, value in re.findall(r"^fivespot_api_requests_total{(.*)} (\S+)$", self._metrics(), re.MULTILINE):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
            if labels["verb"] != "watch" and labels["resource"] != "leases":
                found[f"{labels['verb']} {labels['resource']}"] += int(float(value))
        return found

    def in_phase(self, phase: str) -> int:
        return int(self.metric("scheduledmachines", phase=phase))

    def is_ready(self) -> bool:
        return access.answers(f"{self.operator.endpoints.health}/ready")

    async def until(self, what: str, holds: Callable[[], bool], seconds: float = 900.0) -> None:
        """Waits until something holds; the operator is asked from outside, a few times a second."""
        deadline = time.monotonic() + seconds
        while not await asyncio.to_thread(holds):
            if time.monotonic() > deadline:
                raise SystemExit(f"not within {seconds:.0f} s: {what}")
            await asyncio.sleep(LOOK_EVERY)

    async def at_rest(self) -> None:
        """Waits until nothing is due and it has asked nothing for some seconds: Events are sent as well then."""
        asked, since = -1.0, time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            await asyncio.sleep(LOOK_EVERY)
            now = await asyncio.to_thread(self.metric, "api_requests_total")
            if now != asked or await asyncio.to_thread(self.metric, "queue_depth") > 0:
                asked, since = now, time.monotonic()

    async def usage(self, cluster: LocalCluster, seconds: float) -> Usage:
        """What it uses from now on; requests by the audit log, without watches and leases."""
        start, cpu, logged = time.monotonic(), self.cpu_seconds, cluster.audit_log.stat().st_size
        await asyncio.sleep(seconds)
        used = self.cpu_seconds - cpu
        return Usage(time.monotonic() - start, used, requests_since(cluster.audit_log, logged))

    def _metrics(self) -> str:
        parts = urlsplit(self.operator.endpoints.metrics)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30.0)
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        finally:
            connection.close()


def requests_since(log: Path, offset: int) -> list[str]:
    """The operator's requests in an audit log after `offset`, as `verb resource`."""
    with log.open("rb") as lines:
        lines.seek(offset)
        # The API server may be in the middle of a line.
        entries = [orjson.loads(line) for line in lines if line.endswith(b"\n")]
    ours = (entry for entry in entries if entry["user"].get("username") == access.OPERATOR)
    asked = [(entry["verb"], entry.get("objectRef", {}).get("resource", entry["requestURI"])) for entry in ours]
    return [f"{verb} {resource}" for verb, resource in asked if verb != "watch" and resource != "leases"]
