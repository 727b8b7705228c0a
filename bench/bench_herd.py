"""1,000 machines due at the same instant: how long until all are requested and reported, against a bare client.

The bare client makes the same writes on the same HTTP stack, as many at once as the operator has workers. Both sides
take turns on a control plane of their own, in which nothing else is at work, and in going first too: a server slows
down with what it stores. Ratios of one run count, not seconds.
"""

import argparse
import asyncio
import os
import statistics
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import uvloop

from bench import _herd as herd
from bench._bars import Bars
from bench._plane import control_plane
from bench._proc import Spent, Stopwatch
from local.cluster import LocalCluster
from service import log
from service.runtime import memory

MOST_RATIO = 1.3
MOST_GROWTH = 5.5
MOST_EVENT_SECONDS = 60.0
LARGE = 5


@dataclass(frozen=True)
class Round:
    """One turn of both sides."""

    bare: Spent
    ours: Spent
    with_events: Spent

    @property
    def ratio(self) -> float:
        return self.ours.seconds / self.bare.seconds

    def described(self, objects: int) -> str:
        work = self.ours.cpu / self.bare.cpu
        return (
            f"bare client {self.bare.seconds:.2f} s, operator {self.ours.seconds:.2f} s (ratio {self.ratio:.2f}), "
            f"all Events after {self.with_events.seconds:.1f} s\n"
            f"  processor time for each: {milliseconds(self.bare, objects)}, {milliseconds(self.ours, objects)} "
            f"(ratio {work:.2f})"
        )


def milliseconds(spent: Spent, objects: int) -> str:
    return f"{spent.own / objects * 1000:.1f} + {spent.servers / objects * 1000:.1f} ms of the servers"


async def one_round(cluster: LocalCluster, objects: int, number: int) -> Round:
    bare_space, our_space = f"bare-{objects}-{number}", f"ours-{objects}-{number}"
    if number % 2:
        ours, with_events = await operator(cluster, objects, our_space)
        bare = await bare_client(cluster, objects, bare_space)
    else:
        bare = await bare_client(cluster, objects, bare_space)
        ours, with_events = await operator(cluster, objects, our_space)
    done = Round(bare, ours, with_events)
    print(f"{objects} objects, run {number + 1}: {done.described(objects)}", flush=True)
    return done


async def bare_client(cluster: LocalCluster, objects: int, space: str) -> Spent:
    async with cluster.client() as client:
        return await herd.bare_client(client, space, await herd.prepare(client, space, objects), stopwatch_of(cluster))


async def operator(cluster: LocalCluster, objects: int, space: str) -> tuple[Spent, Spent]:
    async with cluster.client() as client:
        await herd.prepare(client, space, objects)
        spent = await herd.operator(client, space, objects, stopwatch_of(cluster))
        await herd.check(client, space, objects)
        await herd.check_events(client, space, objects)
    return spent


def stopwatch_of(cluster: LocalCluster) -> Stopwatch:
    return Stopwatch([server.pid for server in cluster.servers if server.pid])


async def compare(cluster: LocalCluster, objects: int, runs: int, bars: Bars) -> None:
    await bare_client(cluster, objects, "warm-up")  # the first round meets a server that is still empty, and so faster
    rounds = [await one_round(cluster, objects, number) for number in range(runs)]
    ratio = statistics.median(each.ratio for each in rounds)
    bars.at_most(f"{objects} objects, operator against bare client, median of {runs}", ratio, MOST_RATIO, " times")
    slowest = max(each.with_events.seconds for each in rounds)
    bars.at_most(f"{objects} objects, until the last Event", slowest, MOST_EVENT_SECONDS, " s", firm=False)


async def grow(cluster: LocalCluster, objects: int, bars: Bars) -> None:
    """The small herds before and after the large one, so that a server that gets slower with age hits both."""
    before = await alone(cluster, objects, "before")
    large = await alone(cluster, LARGE * objects, "large")
    after = await alone(cluster, objects, "after")
    growth = large.seconds / statistics.mean((before.seconds, after.seconds))
    bars.at_most(f"{LARGE * objects} objects against {objects}", growth, MOST_GROWTH, " times")


async def compare_large(cluster: LocalCluster, objects: int) -> None:
    """For comparison only, as it is done once: the side that comes second meets a server that stores more."""
    await one_round(cluster, objects, 0)


async def alone(cluster: LocalCluster, objects: int, space: str) -> Spent:
    spent, _ = await operator(cluster, objects, space)
    print(f"{objects} objects: {spent.seconds:.2f} s, {milliseconds(spent, objects)} for each", flush=True)
    return spent


def on_fresh_servers(measure: Callable[[LocalCluster], Coroutine[Any, Any, None]]) -> None:
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(plane.cluster))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="size of the herd (default 1000)")
    parser.add_argument("--runs", type=int, default=5, help="how many times both sides take turns (default 5)")
    parser.add_argument("--scale", action="store_true", help=f"only what concerns a herd {LARGE} times as large")
    args = parser.parse_args()
    bars = Bars()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - a device, not a path of ours
        # As `5spot run` does: what is logged costs time as well.
        log.configure("info", "json", nowhere)
        memory.configure()
        if not args.scale:
            on_fresh_servers(lambda cluster: compare(cluster, args.objects, args.runs, bars))
        on_fresh_servers(lambda cluster: grow(cluster, args.objects, bars))
        on_fresh_servers(lambda cluster: compare_large(cluster, LARGE * args.objects))
    bars.settle()


if __name__ == "__main__":
    main()
