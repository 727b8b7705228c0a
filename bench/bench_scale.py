"""What many objects in several shards need, predicted from small runs and then measured: docs/scale.md uses the same.

Small runs give the constants: what a replica needs without any object, for each object that it watches, and for each
that it acts for. From these follows what many objects in several shards need, and a large run shows whether that holds.
Every run starts `5spot run` once for each shard, when all objects are stored already; their windows are far away. It
ends some seconds after the last status was written.
"""

import argparse
import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import uvloop

from bench import _herd as herd
from bench import _population as population
from bench import _proc
from bench._bars import Bars
from bench._plane import Plane, control_plane, requests_since
from bench._replica import Crew, watching
from local.cluster import Audit
from local.processes import Server
from service.clock import SimulatedClock
from service.kube.client import Client
from service.kube.resource import NAMESPACES

MOST_OFF = 0.25
LOOK_EVERY = 0.2
QUIET_SECONDS = 5.0
PATIENCE = 1200.0


@dataclass(frozen=True)
class Cost:
    """What all replicas need together, until all is at rest; memory is that of one."""

    requests: float
    memory: float
    cpu: float

    def described(self) -> str:
        return f"{self.requests:.0f} requests, {self.memory:.0f} MB for each replica, {self.cpu:.1f} s of CPU"


@dataclass(frozen=True)
class Size:
    """How many objects there are, and how many shards, which is how many replicas."""

    objects: int
    shards: int


@dataclass(frozen=True)
class Constants:
    """What follows from the small runs, by replica, by object that it watches and by object that it acts for."""

    requests_acted: float
    requests_replica: float
    memory_replica: float
    memory_watched: float
    cpu_replica: float
    cpu_watched: float
    cpu_acted: float

    @classmethod
    def of(cls, few: Cost, many: Cost, two: Cost, sizes: tuple[Size, Size, Size]) -> "Constants":
        """`few` and `many` are served by one replica; `two` are as many as `many`, in two shards."""
        less, more = sizes[0].objects, sizes[1].objects
        requests = (many.requests - few.requests) / (more - less)
        memory = (many.memory - few.memory) / (more - less)
        both = (many.cpu - few.cpu) / (more - less)
        replica = few.cpu - less * both
        watched = max(0.0, (two.cpu - many.cpu - replica) / more)
        return cls(
            requests_acted=requests,
            requests_replica=few.requests - less * requests,
            memory_replica=few.memory - less * memory,
            memory_watched=memory,
            cpu_replica=replica,
            cpu_watched=watched,
            cpu_acted=both - watched,
        )

    def predict(self, size: Size) -> Cost:
        return Cost(
            requests=size.objects * self.requests_acted + size.shards * self.requests_replica,
            memory=self.memory_replica + size.objects * self.memory_watched,
            cpu=size.shards * (self.cpu_replica + size.objects * self.cpu_watched) + size.objects * self.cpu_acted,
        )

    def described(self) -> str:
        return (
            f"a replica: {self.requests_replica:.0f} requests, {self.memory_replica:.1f} MB, {self.cpu_replica:.2f} s\n"
            f"each object that it watches: {1024 * self.memory_watched:.2f} KB, {1e6 * self.cpu_watched:.0f} us\n"
            f"each that it acts for: {self.requests_acted:.2f} requests, {1e6 * self.cpu_acted:.0f} us"
        )


async def run(plane: Plane, size: Size) -> Cost:
    async with plane.cluster.client() as client:
        await herd.home(client, population.NAMESPACE)
        await population.settle_in(client, range(size.objects), datetime.now(UTC), active_of_5=0)
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": "own"}})
        logged = plane.cluster.audit_log.stat().st_size
        clock = SimulatedClock.starting(datetime.now(UTC))
        crew = Crew(plane.cluster, plane.keeper, population.NAMESPACE, "own", clock, size.shards)
        replicas = [crew.replica(number) for number in range(size.shards)]
        began = time.monotonic()
        for replica in replicas:
            replica.start()
        try:
            await _at_rest(client, size.objects)
            cost = _cost(replicas, len(requests_since(plane.cluster.audit_log, logged)))
        finally:
            for replica in replicas:
                replica.kill()
    print(
        f"{size.objects} objects, {size.shards} shards: {cost.described()}; {time.monotonic() - began:.0f} s",
        flush=True,
    )
    return cost


def _cost(replicas: list[Server], requests: int) -> Cost:
    pids = [replica.pid for replica in replicas if replica.pid]
    if len(pids) < len(replicas):
        raise SystemExit("a replica died")
    memory = sum(map(_proc.resident, pids)) / len(pids)
    return Cost(float(requests), memory, sum(map(_proc.cpu_seconds, pids)))


async def _at_rest(client: Client, objects: int) -> None:
    """Waits until every status is written, and a little for what follows."""
    deadline = time.monotonic() + PATIENCE
    async with watching(client, population.NAMESPACE) as phases:
        while phases("Inactive") < objects:
            if time.monotonic() > deadline:
                raise SystemExit(f"only {phases('Inactive')} of {objects} are at rest")
            await asyncio.sleep(LOOK_EVERY)
    await asyncio.sleep(QUIET_SECONDS)


def on_fresh_servers(size: Size) -> Cost:
    with control_plane(Audit.ALL) as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(plane, size))


def judge(name: str, predicted: float, measured: float, bars: Bars, *, firm: bool = True) -> None:
    print(f"  {name}: predicted {predicted:.4g}, measured {measured:.4g}")
    bars.at_most(f"{name}, off by", abs(measured / predicted - 1), MOST_OFF, firm=firm)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=500, help="size of the smallest run (default 500)")
    parser.add_argument("--many", type=int, default=2500, help="size of the other small runs (default 2500)")
    parser.add_argument("--objects", type=int, default=20_000, help="size of the large run (default 20000; 0: none)")
    parser.add_argument("--shards", type=int, default=4, help="its shards (default 4)")
    args = parser.parse_args()
    sizes = (Size(args.few, 1), Size(args.many, 1), Size(args.many, 2))
    few, many, two = map(on_fresh_servers, sizes)
    constants = Constants.of(few, many, two, sizes)
    print(constants.described(), flush=True)
    if not args.objects:
        return
    large = Size(args.objects, args.shards)
    predicted = constants.predict(large)
    print(f"predicted for {large.objects} objects, {large.shards} shards: {predicted.described()}", flush=True)
    measured = on_fresh_servers(large)
    bars = Bars()
    judge("requests", predicted.requests, measured.requests, bars)
    judge("memory of a replica", predicted.memory, measured.memory, bars)
    # What else the machine does changes processor time by more than this.
    judge("processor time", predicted.cpu, measured.cpu, bars, firm=False)
    bars.settle()


if __name__ == "__main__":
    main()
