"""How fast the validating webhook answers, compared with an empty FastAPI handler under the same conditions.

Prints rate (64 keep-alive connections, server on one core), latency at 200 requests a second, and memory over 100,000
requests. `--quick` does a tenth of it.
"""

import argparse
import asyncio
import copy
import os
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench import _proc
from bench._bars import Bars
from bench._load import Result, Target, paced, saturate
from certs.bundle import Bundle, Policy, first_bundle
from crds import names

CONNECTIONS = 64
ROUNDS = 5
PACE = 200.0
PACED_ROUNDS = 9
LEAST_RATE = 0.78
MOST_P99 = 1.2
# An empty handler at this pace has its core almost to itself; a slower tail comes from elsewhere.
QUIET_P99 = 0.005
TYPICAL: dict[str, Any] = {
    "apiVersion": names.API_VERSION,
    "kind": names.KIND,
    "metadata": {"namespace": "default", "labels": {"team": "blue"}},
    "spec": {
        "schedule": {
            "daysOfWeek": ["mon-fri"],
            "hoursOfDay": ["9-17"],
            "timezone": "America/New_York",
            "enabled": True,
        },
        "bootstrapSpec": {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
            "kind": "K0sWorkerConfig",
            "spec": {"version": "v1.30.0+k0s.0", "args": ["--labels=team=blue"]},
        },
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "RemoteMachine",
            "spec": {"port": 22, "user": "admin", "useSudo": True},
        },
        "machineTemplate": {"labels": {"team": "blue"}, "annotations": {"example.org/owner": "blue"}},
        "priority": 50,
        "gracefulShutdownTimeout": "5m",
        "nodeDrainTimeout": "5m",
        "killSwitch": False,
        "nodeTaints": [{"key": "example.org/dedicated", "value": "blue", "effect": "NoSchedule"}],
    },
}


def reviews(count: int = 500) -> list[bytes]:
    """Reviews of objects that differ as they do in life: names, clusters, addresses, hours, priorities."""
    made = []
    for number in range(count):
        given = copy.deepcopy(TYPICAL)
        given["metadata"] |= {"name": f"worker-{number}", "uid": str(uuid.uuid4())}
        spec = given["spec"]
        spec["clusterName"] = f"cluster-{number % 20}"
        spec["priority"] = number % 256
        spec["schedule"]["hoursOfDay"] = [f"{number % 9}-{number % 9 + 8}"]
        spec["infrastructureSpec"]["spec"]["address"] = f"192.168.{number // 250}.{number % 250}"
        made.append(orjson.dumps(review(given)))
    return made


def review(given: dict[str, Any]) -> dict[str, Any]:
    kind = {"group": names.GROUP, "version": names.VERSION, "kind": names.KIND}
    resource = {"group": names.GROUP, "version": names.VERSION, "resource": names.PLURAL}
    request = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": given["metadata"]["name"],
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "object": given,
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "kubectl-client-side-apply",
        },
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


@dataclass(frozen=True)
class Served:
    """A server process and how to reach it."""

    process: subprocess.Popen[str]
    target: Target

    @property
    def resident(self) -> float:
        """Memory in MB."""
        return _proc.resident(self.process.pid)

    @property
    def cpu_seconds(self) -> float:
        """Processor time used so far."""
        return _proc.cpu_seconds(self.process.pid)


@contextmanager
def served(kind: str, folder: Path, bundle: Bundle) -> Iterator[Served]:
    argv = [sys.executable, "-m", "bench._webhooks", kind, str(folder)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield Served(process, Target(port, names.VALIDATE_PATH, bundle.trusted.decode(), reviews()))
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class Round:
    """One turn of a server: its rate by the clock, and the processor time that a request took it."""

    rate: float
    cpu: float


async def throughput(gate: Served, bare: Served, requests: int) -> list[tuple[Round, Round]]:
    """Both in turns, so that whatever else the machine does hits both alike."""
    return [(await turn(gate, requests), await turn(bare, requests)) for _ in range(ROUNDS)]


async def turn(server: Served, requests: int) -> Round:
    before = server.cpu_seconds
    result = checked(await saturate(server.target, CONNECTIONS, requests))
    return Round(result.rate, (server.cpu_seconds - before) / result.requests)


def report_throughput(rounds: list[tuple[Round, Round]], bars: Bars) -> None:
    for name, index in (("validating", 0), ("empty handler", 1)):
        rate = statistics.median(both[index].rate for both in rounds)
        cpu = statistics.median(both[index].cpu for both in rounds)
        print(f"{name:16} {rate:8.0f} requests/s on one core, {cpu * 1e6:.0f} us of CPU each")
    by_rate = sorted(ours.rate / theirs.rate for ours, theirs in rounds)
    by_cpu = sorted(theirs.cpu / ours.cpu for ours, theirs in rounds)
    print(f"ratio            {spread(by_rate)} by rate")
    print(f"                 {spread(by_cpu)} by CPU time, which a busy machine disturbs less")
    busy = 1 - statistics.median(both[0].rate * both[0].cpu for both in rounds)
    if busy > 0.1:
        print(f"                 the server missed its core {busy:.0%} of the time: rates and latencies mean little")
    bars.at_least("rate against an empty handler, median", statistics.median(by_rate), LEAST_RATE, " times")


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):8.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


async def latency(gate: Served, bare: Served, seconds: float) -> list[tuple[Result, Result]]:
    """Both in turns again: a tail is made by whatever else the machine does as much as by the server."""
    pairs = []
    for _ in range(PACED_ROUNDS):
        ours = checked(await paced(gate.target, CONNECTIONS, PACE, seconds))
        pairs.append((ours, checked(await paced(bare.target, CONNECTIONS, PACE, seconds))))
    return pairs


def report_latency(pairs: list[tuple[Result, Result]], bars: Bars) -> None:
    for name, index in (("validating", 0), ("empty handler", 1)):
        p50, p99 = (statistics.median(pair[index].quantile(share) for pair in pairs) * 1000 for share in (0.5, 0.99))
        print(f"{name:16} {p50:8.2f} ms p50 {p99:6.2f} ms p99 at {PACE:.0f} requests/s")
    ratios = sorted(ours.quantile(0.99) / theirs.quantile(0.99) for ours, theirs in pairs)
    print(f"ratio of p99     {spread(ratios)}")
    if statistics.median(theirs.quantile(0.99) for _, theirs in pairs) > QUIET_P99:
        print("                 even the empty handler is slow: the machine is busy, and this says nothing")
    bars.at_most("p99 against an empty handler, median", statistics.median(ratios), MOST_P99, " times", firm=False)


def checked(result: Result) -> Result:
    if result.failures:
        raise SystemExit(f"{result.failures} of {result.requests} requests failed")
    return result


async def measure(gate: Served, bare: Served, scale: float) -> None:
    await saturate(gate.target, CONNECTIONS, int(5000 * scale))
    await saturate(bare.target, CONNECTIONS, int(5000 * scale))
    bars = Bars()
    report_throughput(await throughput(gate, bare, int(10_000 * scale)), bars)
    report_latency(await latency(gate, bare, 5 * scale), bars)
    before = gate.resident
    await saturate(gate.target, CONNECTIONS, int(100_000 * scale))
    print(f"memory           {before:8.1f} MB before, {gate.resident:.1f} MB after {int(100_000 * scale):,} requests")
    bars.settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests")
    scale = 0.1 if parser.parse_args().quick else 1.0
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(cores[1:]) or set(cores))
    bundle = first_bundle(("localhost", "127.0.0.1"), datetime.now(UTC), Policy())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tls.crt").write_bytes(bundle.leaf.certificate)
        (folder / "tls.key").touch(mode=0o600)
        (folder / "tls.key").write_bytes(bundle.leaf.key)
        loop = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        with served("gate", folder, bundle) as gate, served("bare", folder, bundle) as bare, loop as runner:
            runner.run(measure(gate, bare, scale))


if __name__ == "__main__":
    main()
