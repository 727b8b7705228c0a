"""10,000 machines of one namespace due at once, against one of another: how late that one is.

The crowd has the highest priority and the one the lowest. Twice: each of the crowd with a host of its own, and all with
the same one, as when a user stores copies of one manifest. The controller runs in this process, on a clock that
stands still until it is set to the opening of the window; the time counts until it knows that the one Machine is there.
"""

import argparse
import asyncio
import os
import time

import uvloop

from bench import _herd as herd
from bench._bars import Bars
from bench._plane import control_plane
from local.cluster import LocalCluster
from service import log
from service.clock import ManualClock
from service.runtime import memory
from service.runtime.key import Key

MOST_SECONDS = 2.0
ALONE = "patient"


async def measure(cluster: LocalCluster, objects: int, *, one_host: bool) -> tuple[float, int]:
    """Seconds until the one is served, and how many of the crowd had been by then."""
    kind = "copies" if one_host else "crowd"
    crowd, alone = f"{kind}-{objects}", f"{kind}-{objects}-neighbour"
    clock = ManualClock(herd.BEFORE)
    async with cluster.client() as client:
        for namespace in (crowd, alone):
            await herd.home(client, namespace)
        await herd.store(client, crowd, [one_of_many(number, one_host=one_host) for number in range(objects)])
        await herd.store(client, alone, [patient()])
        async with herd.operating(client, clock, crowd, alone) as controller:
            await herd.settled(controller, "Inactive", objects + 1)
            await controller.events.idle.wait()
            clock.at = herd.OPENS
            started = time.perf_counter()
            controller.queue.wake_due()
            machines = controller.watches.machines
            assert machines is not None
            while Key(alone, f"{ALONE}-machine") not in machines:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            return time.perf_counter() - started, len(machines) - 1


def one_of_many(number: int, *, one_host: bool) -> herd.Raw:
    raw = herd.scheduled_machine(number)
    raw["spec"]["priority"] = 255
    if one_host:
        raw["spec"]["infrastructureSpec"]["spec"]["address"] = "10.9.9.9"
    return raw


def patient() -> herd.Raw:
    raw = herd.scheduled_machine(65_000)
    raw["metadata"]["name"] = ALONE
    raw["spec"]["priority"] = 0
    return raw


async def run(cluster: LocalCluster, objects: int) -> None:
    bars = Bars()
    for one_host in (False, True):
        took, before = await measure(cluster, objects, one_host=one_host)
        what = "all with one host" if one_host else "each with its own host"
        print(f"{objects} of a neighbour, {what}: {before} of them had their Machine before", flush=True)
        bars.at_most("lateness of the one", took, MOST_SECONDS, " s", firm=False)
        bars.at_most("of the crowd served before it", before, objects / 20)
    bars.settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000, help="size of the crowd (default 10000)")
    args = parser.parse_args()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - a device, not a path of ours
        log.configure("info", "json", nowhere)
        memory.configure()
        with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(plane.cluster, args.objects))


if __name__ == "__main__":
    main()
