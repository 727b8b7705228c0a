"""Workload clusters whose Node events never stop: how long the event loop is held up, and what a quiet cluster feels.

None, one and ten clusters send changes of Nodes as fast as they are read, from a process of their own; beside them one
quiet cluster changes a Node fifty times a second. Lag is how late a timer of a few milliseconds fires in the operator's
loop, once by the clock and once in processor time, which says the same on a busy machine; latency is the time from a
quiet change to the moment at which the operator knows of it.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from bench._bars import Bars, quantile
from bench._noise import QUIET, STAMP
from service import log
from service.kube.client import Client
from service.runtime import memory
from service.runtime.cache import Change
from service.runtime.key import Key
from service.workload.clusters import WorkloadClusters
from service.workload.connection import ClusterListener

MOST_LAG = 0.1
TICK = 0.005
WARM_UP = 1.0
"""Connections and first lists are not what is measured; the burst that each cluster may have at first is."""


@dataclass
class Felt:
    """What was measured, in seconds, and how many events of noise were taken in."""

    lags: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    """Processor time that the loop spent while the timer waited."""
    latencies: list[float] = field(default_factory=list)
    events: int = 0


async def measure(client: Client, noisy: int, seconds: float) -> Felt:
    felt = Felt()

    def heard(cluster: Key, change: Change) -> None:
        if cluster.name != QUIET:
            felt.events += 1
        elif stamp := change.object["metadata"]["annotations"][STAMP]:
            felt.latencies.append(time.monotonic() - float(stamp))

    workloads = WorkloadClusters(client, ClusterListener(node=heard))
    task = asyncio.create_task(workloads.run())
    await asyncio.sleep(0)
    for name in (QUIET, *(f"noisy-{n}" for n in range(noisy))):
        await workloads.hold(Key("bench", name), Key("bench", f"user of {name}")).settled.wait()
        if name == QUIET:
            await asyncio.sleep(WARM_UP)
            felt.latencies.clear()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        before, worked = time.perf_counter(), time.thread_time()
        await asyncio.sleep(TICK)
        felt.worked.append(time.thread_time() - worked)
        felt.lags.append(time.perf_counter() - before - TICK)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return felt


async def run(url: str, ca: bytes, seconds: float) -> None:
    bars = Bars()
    async with Client.from_inline(url, ca=ca, token="t") as client:
        for noisy in (0, 1, 10):
            felt = await measure(client, noisy, seconds)
            rate = felt.events / seconds
            print(f"{noisy} noisy clusters: {rate:.0f} of their events a second", flush=True)
            bars.at_most("lag of the loop in processor time, p99", quantile(felt.worked, 0.99), MOST_LAG, " s")
            bars.at_most("lag of the loop, p99", quantile(felt.lags, 0.99), MOST_LAG, " s", firm=False)
            bars.at_most("lag of the loop, longest", max(felt.lags), 3 * MOST_LAG, " s", firm=False)
            bars.at_most("latency of a quiet cluster, p99", quantile(felt.latencies, 0.99), MOST_LAG, " s", firm=False)
    bars.settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="of noise in each round (default 15)")
    args = parser.parse_args()
    with open(os.devnull, "w", encoding="utf-8") as nowhere, tempfile.TemporaryDirectory() as folder:  # noqa: PTH123
        log.configure("info", "json", nowhere)
        memory.configure()
        command = [sys.executable, "-m", "bench._noise", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as noise:
            assert noise.stdout is not None
            url = noise.stdout.readline().strip()
            ca = (Path(folder) / "ca.pem").read_bytes()
            try:
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    runner.run(run(url, ca, args.seconds))
            finally:
                noise.terminate()


if __name__ == "__main__":
    main()
