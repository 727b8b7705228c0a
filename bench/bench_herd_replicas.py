"""1,000 machines due at the same instant, served by one process and by three: how much longer three take.

`5spot run` in processes of their own, with leases, on simulated clocks that show the same. All objects are at rest when
their window opens; the time counts from that instant until every status says Active. On a machine of two cores three
processes cannot be faster than one: each watches everything. Ratios of one run count, not seconds.
"""

import argparse
import asyncio
import statistics
from datetime import timedelta

import uvloop

from bench import _herd as herd
from bench import _proc
from bench._bars import Bars
from bench._plane import Plane, control_plane
from bench._replica import Crew, watching
from service.clock import SimulatedClock
from service.kube.client import Client
from service.kube.resource import NAMESPACES

MOST_RATIO = 1.3
LOOK_EVERY = 0.05


async def one_round(plane: Plane, objects: int, instances: int, number: int, margin: float) -> float:
    """Seconds until all are Active."""
    async with plane.cluster.client() as client:
        tenants, own = f"herd-{instances}-{number}", f"own-{instances}-{number}"
        await herd.prepare(client, tenants, objects)
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": own}})
        clock = SimulatedClock.starting(herd.OPENS - timedelta(seconds=margin))
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
        f"{objects} objects, {instances} instances, run {number + 1}: {took:.2f} s; {cpu:.1f} s of CPU since the start"
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


async def run(plane: Plane, args: argparse.Namespace) -> None:
    took: dict[int, list[float]] = {1: [], 3: []}
    for number in range(args.runs):
        for instances, times in took.items():
            times.append(await one_round(plane, args.objects, instances, number, args.margin))
            await asyncio.sleep(1)  # leaves the servers a moment between rounds
    one, three = (statistics.median(times) for times in took.values())
    bars = Bars()
    name = f"{args.objects} objects, three instances against one, median of {args.runs}"
    bars.at_most(name, three / one, MOST_RATIO, " times")
    bars.settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="size of the herd (default 1000)")
    parser.add_argument("--runs", type=int, default=3, help="how many times they take turns (default 3)")
    parser.add_argument("--margin", type=float, default=60.0, help="seconds until the window opens (default 60)")
    args = parser.parse_args()
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(plane, args))


if __name__ == "__main__":
    main()
