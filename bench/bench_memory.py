"""How the memory of one operator goes over hours of steady churn, and what grows in it.

One operator that is never killed, on a clock that is 60 times as fast as real: objects come, change and go, windows
open and close, Nodes join and are drained, workload clusters are connected to and left, the webhooks are asked for
every write, and the API server is restarted now and then. Prints the curve and its slope after the warm-up with bounds.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

from bench import _herd as herd
from bench._bars import Bars
from bench._curve import picture, report, samples
from bench._memory_churn import NodeChurn
from bench._plane import Plane, control_plane
from bench._replica import Crew
from bench._soak import START
from bench._soak_result import MOST_SLOPE, Settings
from local import access
from local.crds import FIELD_MANAGER
from local.ports import ANY_PORTS, LOOPBACK
from local.processes import Server
from local.provider.kinds import MACHINES
from service.clock import SimulatedClock
from service.kube.client import Client, PatchKind
from service.kube.resource import MUTATING_WEBHOOKS, NAMESPACES, SCHEDULED_MACHINES, VALIDATING_WEBHOOKS
from service.runtime.cache import Change, EventType
from service.runtime.informer import Informer
from webhooks.configuration import Registration, manifests

TENANTS, OWN = "memory", "memory-own"
SPEED = 60.0
SHOW_EVERY = 300.0


class Run:
    def __init__(self, plane: Plane, client: Client, args: argparse.Namespace) -> None:
        self._plane = plane
        self._client = client
        self._args = args
        self._happened = Counter[str]()
        self._churn = NodeChurn(plane.cluster, client, TENANTS, self._happened)
        self._port = ANY_PORTS.pick()
        clock = SimulatedClock.starting(START, SPEED)
        self._crew = Crew(plane.cluster, plane.keeper, TENANTS, OWN, clock, 2 if args.trace else 1)
        self._servers: list[Server] = []

    async def go(self) -> None:
        await herd.home(self._client, TENANTS)
        await self._client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": OWN}})
        await self._churn.prepare()
        await self._register()
        self._start(0, Path(self._args.out), 0.0)
        if self._args.trace:
            self._start(1, Path(self._args.trace), self._args.trace_after)
        informers = [self._informer(SCHEDULED_MACHINES), self._informer(MACHINES)]
        informers[1].listen(self._machine_changed)
        with suppress(TimeoutError):
            async with asyncio.timeout(60 * self._args.minutes), asyncio.TaskGroup() as group:
                for informer in informers:
                    group.create_task(informer.run())
                for _ in range(4):
                    group.create_task(self._churn.play_cluster_api())
                asked = Settings(60 * self._args.minutes, objects=self._args.objects, edits_per_second=self._args.rate)
                group.create_task(self._churn.go_on(informers[0], asked))
                group.create_task(self._churn.turn_over_clusters(15.0))
                group.create_task(self._restart_api_server())
                group.create_task(self._show())

    def _informer(self, resource: Any) -> Informer:
        return Informer(self._client, resource, namespaces=(TENANTS,))

    def _machine_changed(self, change: Change) -> None:
        if change.type is not EventType.DELETED:
            self._churn.held.put_nowait(change.object)

    async def _register(self) -> None:
        registration = Registration(at=f"https://{LOOPBACK}:{self._port}", service_account=access.OPERATOR)
        for resource, body in zip((MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), manifests(registration), strict=True):
            name = body["metadata"]["name"]
            await self._client.patch(resource, name, body, kind=PatchKind.APPLY, field_manager=FIELD_MANAGER)

    def _start(self, number: int, out: Path, trace_after: float) -> None:
        server = self._crew.replica(number)
        argv = list(server.argv[2:])
        if number == 0:
            argv.remove("--no-webhooks")
            argv += [f"--webhook-port={self._port}", f"--webhook-hosts={LOOPBACK}"]
        server.argv = [sys.executable, "-m", "bench._memory_probe", str(out.resolve()), str(trace_after), *argv]
        server.start()
        self._servers.append(server)

    async def _restart_api_server(self) -> None:
        while True:
            await asyncio.sleep(60 * self._args.restart_every * (0.5 + random.random()))
            await asyncio.to_thread(self._plane.cluster.apiserver.restart)
            self._happened["API server restarted"] += 1

    async def _show(self) -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(SHOW_EVERY)
            for server in self._servers:
                if server.exit_code is not None:
                    self._happened[f"operator ended with {server.exit_code}"] += 1
                    server.start()
            print(f"{(time.monotonic() - started) / 60:.0f} min: {dict(self._happened)}", flush=True)


async def run(plane: Plane, args: argparse.Namespace) -> None:
    async with plane.cluster.client() as client:
        await Run(plane, client, args).go()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default 10; 120 for a verdict)")
    parser.add_argument("--objects", type=int, default=60, help="ScheduledMachines at a time (default 60)")
    parser.add_argument("--rate", type=float, default=1.0, help="edits, creations and deletions a second (default 1)")
    parser.add_argument("--restart-every", type=float, default=15.0, help="minutes between API server restarts")
    parser.add_argument("--out", default="memory.jsonl", help="where the samples go (default memory.jsonl)")
    parser.add_argument("--svg", help="where a picture of the curve goes")
    parser.add_argument("--trace", help="a second replica under tracemalloc, and where its samples go")
    parser.add_argument("--trace-after", type=float, default=600.0, help="seconds of warm-up before tracing")
    args = parser.parse_args()
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(plane, args))
    bars, found = Bars(), report(Path(args.out))
    if args.svg:
        Path(args.svg).write_text(picture(samples(Path(args.out))), encoding="utf-8")
    if found is not None:
        bars.at_most("memory slope, lower bound", found.low, MOST_SLOPE, " MB an hour")
    bars.settle()


if __name__ == "__main__":
    main()
