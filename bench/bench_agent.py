"""The reclaim agent's cost and speed with both sources: memory, start, CPU at rest, time from process to annotation.

Run as `python -m bench.bench_agent`. Starts a throw-away control plane of its own and as many sleeping processes as it
takes to have the number asked for on this machine.
"""

import argparse
import asyncio
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.proc import ProcTable
from bench._bars import Bars
from crds.names import (
    ANNOTATION_RECLAIM_REQUESTED,
    RECLAIM_ANNOTATIONS,
    RECLAIM_CONFIG_KEY,
    RECLAIM_CONFIG_PREFIX,
    RECLAIM_NAMESPACE,
)
from local.access import ADMIN
from local.binaries import ensure
from local.cluster import LocalCluster
from local.processes import Keeper
from local.progress import Progress
from service.kube.client import Client
from service.kube.resource import CONFIG_MAPS, NAMESPACES, NODES

NODE = "bench-host"
MACHINE_ID = "b" * 32
PROGRAM = "bench-ide"
BOUNDS = {"events": (0.5, 50.0), "polling": (2.0, 400.0)}
MEMORY_MB = 40.0
START_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What one source costs and how quick it is."""

    start: float
    memory: float
    cpu: float
    starts_per_second: float
    latencies: list[float]

    def held_against(self, bars: Bars, source: str) -> None:
        """Prints them; only memory does not depend on how busy the machine is."""
        cpu, latency = BOUNDS[source]
        bars.at_most("start to ready, median", self.start, START_SECONDS, " s", firm=False)
        bars.at_most("memory, peak", self.memory, MEMORY_MB, " MB")
        bars.at_most("processor at rest", self.cpu, cpu, " % of a core", firm=False)
        print(f"  others forked {self.starts_per_second:.1f} processes a second at the same time")
        median = statistics.median(self.latencies)
        bars.at_most("process to annotation, median", median, latency, " ms", firm=False)
        print(f"  fastest {min(self.latencies):.0f} ms, slowest {max(self.latencies):.0f} ms", flush=True)


class Agent:
    """An agent process and what the kernel says of it."""

    def __init__(self, cluster: LocalCluster, folder: Path, source: str) -> None:
        self._log = folder / f"{source}.log"
        command = [
            sys.executable,
            "-m",
            "agent",
            f"--node={NODE}",
            f"--source={source}",
            "--refire-interval=0",
            f"--server={cluster.url}",
            f"--ca-file={folder}/ca.crt",
            f"--token-file={folder}/token",
            f"--machine-id-file={folder}/machine-id",
        ]
        self._began = time.monotonic()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log)

    async def said(self, event: str, times: int) -> float:
        """Seconds since its start until it has logged `event` so often."""
        while self._log.read_text().count(f'"event": "{event}"') < times:
            if self.process.poll() is not None:
                raise SystemExit(f"the agent ended:\n{self._log.read_text()}")
            await asyncio.sleep(0.002)
        return time.monotonic() - self._began

    def cpu_seconds(self) -> float:
        """What all its threads have used so far."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9

    def memory(self) -> float:
        """The most it has held, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024


async def measure(
    cluster: LocalCluster, client: Client, folder: Path, source: str, args: argparse.Namespace
) -> Figures:
    """One source: a few starts, then one life with rest and work."""
    starts = [await start_once(cluster, folder, source) for _ in range(args.starts)]
    with running(Agent(cluster, folder, source)) as agent:
        await agent.said("config", 1)
        await asyncio.sleep(args.settle)
        cpu, forks = await at_rest(agent, args.seconds)
        latencies = [await one_round(agent, client, folder, n) for n in range(1, args.rounds + 1)]
        return Figures(statistics.median(starts), agent.memory(), cpu, forks, latencies)


async def start_once(cluster: LocalCluster, folder: Path, source: str) -> float:
    """Seconds from the start of the process until it looks for its patterns."""
    with running(Agent(cluster, folder, source)) as agent:
        return await agent.said("config", 1)


@contextmanager
def running(agent: Agent) -> Iterator[Agent]:
    """Stops the agent at the end."""
    try:
        yield agent
    finally:
        agent.process.terminate()
        agent.process.wait(10)


async def at_rest(agent: Agent, seconds: float) -> tuple[float, float]:
    """Percent of a core, and how many processes others forked per second at the same time."""
    used, forks, began = agent.cpu_seconds(), forks_so_far(), time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - began
    return (agent.cpu_seconds() - used) / passed * 100, (forks_so_far() - forks) / passed


def forks_so_far() -> int:
    """The kernel's count since boot."""
    (line,) = [line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("processes ")]
    return int(line.split()[1])


async def one_round(agent: Agent, client: Client, folder: Path, number: int) -> float:
    """Milliseconds from starting the program until a watcher sees the annotation stored; then all is put back."""
    version = (await client.get(NODES, NODE))["metadata"]["resourceVersion"]
    watching = asyncio.create_task(stored(client, version))
    await asyncio.sleep(random.uniform(0.05, 0.55))  # the watch connects; the start falls anywhere between two polls
    began = time.monotonic()
    process = subprocess.Popen([folder / PROGRAM, "300"])  # noqa: ASYNC220 - the blocking start is what is timed
    try:
        at = await asyncio.wait_for(watching, 30)
    finally:
        process.kill()
        process.wait()
    await client.patch(NODES, NODE, {"metadata": {"annotations": dict.fromkeys(RECLAIM_ANNOTATIONS)}})
    await agent.said("cleared", number)
    return (at - began) * 1000


async def stored(client: Client, version: str) -> float:
    """When the request is first seen."""
    async for event in client.watch(NODES, version, fields=f"metadata.name={NODE}"):
        if ANNOTATION_RECLAIM_REQUESTED in event.object["metadata"].get("annotations", {}):
            return time.monotonic()
    raise SystemExit("the watch ended early")


async def prepare(client: Client, folder: Path, cluster: LocalCluster) -> None:
    """A Node for this machine, its ConfigMap, credentials, and a program of a name of its own."""
    await client.create(NODES, {"metadata": {"name": NODE}})
    info: dict[str, Any] = {"machineID": MACHINE_ID}
    names = ("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion")
    info |= dict.fromkeys((*names, "operatingSystem", "osImage", "systemUUID"), "")
    await client.patch(NODES, NODE, {"status": {"nodeInfo": info}}, subresource="status")
    await client.create(NAMESPACES, {"metadata": {"name": RECLAIM_NAMESPACE}})
    patterns = json.dumps([PROGRAM, *(f"some-other-tool-{n}" for n in range(9))])
    config = {"metadata": {"name": f"{RECLAIM_CONFIG_PREFIX}{NODE}"}, "data": {RECLAIM_CONFIG_KEY: patterns}}
    await client.create(CONFIG_MAPS, config, namespace=RECLAIM_NAMESPACE)
    (folder / "ca.crt").write_bytes(cluster.authority.pem)
    (folder / "token").write_text(cluster.access.tokens[ADMIN])
    (folder / "machine-id").write_text(MACHINE_ID)
    shutil.copy(shutil.which("sleep") or "/bin/sleep", folder / PROGRAM)


@contextmanager
def crowd(total: int) -> Iterator[int]:
    """So many sleeping processes that there are `total` in all."""
    there = len(ProcTable().pids())
    made = [subprocess.Popen(["sleep", "100000"]) for _ in range(max(0, total - there))]
    try:
        yield len(ProcTable().pids())
    finally:
        for process in made:
            process.kill()
        for process in made:
            process.wait()


async def run(args: argparse.Namespace) -> None:
    """Measure the sources asked for."""
    bars = Bars()
    with (
        Keeper() as keeper,
        LocalCluster("bench", ensure(Progress()), keeper) as cluster,
        tempfile.TemporaryDirectory() as t,
    ):
        async with cluster.client() as client:
            await prepare(client, Path(t), cluster)
            with crowd(args.processes) as count:
                for source in args.source or BOUNDS:
                    figures = await measure(cluster, client, Path(t), source, args)
                    print(f"\n{source}, {count} processes, {args.rounds} rounds")
                    figures.held_against(bars, source)
    bars.settle()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", choices=tuple(BOUNDS), help="only this one (default: both)")
    parser.add_argument("--processes", type=int, default=500, help="on the machine in all (default: %(default)s)")
    parser.add_argument("--starts", type=int, default=5, help="to take the median of (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of rest to measure (default: %(default)s)")
    parser.add_argument("--settle", type=float, default=12.0, help="seconds before that (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=30, help="processes to start (default: %(default)s)")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
