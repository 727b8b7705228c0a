"""1,000 machines due at the same instant, served by one process and by three: how much longer three take; and 5,000.

`5spot run` in processes of their own, with leases, on simulated clocks that show the same. All objects are at rest when
their window opens; the time counts from that instant until every status says Active. On a machine of two cores three
processes cannot be faster than one: each watches everything. Ratios of one run count, not seconds. The large herds are
served once, each on servers of its own, as an API server gets slower with what it stores.
"""

import argparse
import asyncio
import statistics
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import uvloop

from bench import _herd as herd
from bench import _proc
from bench._bars import Bars
from bench._plane import Plane, control_plane
from bench._replica import Crew, watching
from service.clock import SimulatedClock
from service.kube.client import Client
from service.kube.resource import NAMESPACES

T = TypeVar("T")
MOST_RATIO = 1.3
INSTANCES = (1, 3)
LARGE = 5
LOOK_EVERY = 0.05


async def one_round(plane: Plane, objects: int, instances: int, args: argparse.Namespace, number: int = 0) -> float:
    """Seconds until all are Active."""
    async with plane.cluster.client() as client:
        mark = f"{objects}-{instances}-{number}"
        tenants, own = f"herd-{mark}", f"own-{mark}"
        margin = herd.Margin(args.margin)
        await herd.prepare(client, tenants, objects)
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": own}})
        clock = SimulatedClock.starting(herd.OPENS - margin.until_opening())
        crew = Crew(plane.cluster, plane.keeper, tenants, own, clock, instances)
        replicas = [crew.replica(n) for n in range(instances)]
        for replica in replicas:
            replica.start()
        try:
            took = await served(client, crew, objects)
            cpu = sum(_proc.cpu_seconds(replica.pid) for replica in replicas if replica.pid)
            await herd.check(client, tenants, objects)
        finally:
            for replica in replicas:
                replica.kill()
    print(
        f"{objects} objects, {instances} instances, run {number + 1}: {took:.2f} s; {cpu:.1f} s of CPU since the start",
        flush=True,
    )
    return took


async def served(client: Client, crew: Crew, objects: int) -> float:
    """Waits for the opening, then until all are Active; seen by a watch of our own."""
    async with watching(client, crew.tenants) as phases:
        while phases("Inactive") < objects:
            if crew.clock.now() >= herd.OPENS:
                raise SystemExit("not at rest when the window opens; the machine is busy, try a larger --margin")
            await asyncio.sleep(LOOK_EVERY)
        while phases("Active") < objects:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY)
        return (crew.clock.now() - herd.OPENS).total_seconds()


async def compare(plane: Plane, args: argparse.Namespace) -> dict[int, float]:
    """The median time of each number of instances; they take turns."""
    took: dict[int, list[float]] = {instances: [] for instances in INSTANCES}
    for number in range(args.runs):
        for instances, times in took.items():
            times.append(await one_round(plane, args.objects, instances, args, number))
            await asyncio.sleep(1)  # leaves the servers a moment between rounds
    return {instances: statistics.median(times) for instances, times in took.items()}


def on_fresh_servers(measure: Callable[[Plane], Coroutine[Any, Any, T]]) -> T:
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(plane))


def grow(small: dict[int, float], args: argparse.Namespace, bars: Bars) -> None:
    """How the time grows with the herd, for each number of instances."""
    objects, large = LARGE * args.objects, dict[int, float]()
    for instances in INSTANCES:
        large[instances] = on_fresh_servers(partial(one_round, objects=objects, instances=instances, args=args))
        print(f"  {large[instances] / small[instances]:.1f} times as long as {args.objects}", flush=True)
    name = f"{objects} objects, three instances against one, a single run of each"
    bars.at_most(name, large[3] / large[1], MOST_RATIO, " times", firm=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="size of the herd (default 1000)")
    parser.add_argument("--runs", type=int, default=3, help="how many times they take turns (default 3)")
    parser.add_argument("--no-scale", action="store_true", help=f"leave out the herds {LARGE} times as large")
    parser.add_argument(
        "--margin", type=float, default=60.0, help="seconds until the window opens, at least (default 60)"
    )
    args = parser.parse_args()
    bars = Bars()
    took = on_fresh_servers(lambda plane: compare(plane, args))
    name = f"{args.objects} objects, three instances against one, median of {args.runs}"
    bars.at_most(name, took[3] / took[1], MOST_RATIO, " times")
    if not args.no_scale:
        grow(took, args, bars)
    bars.settle()


if __name__ == "__main__":
    main()
