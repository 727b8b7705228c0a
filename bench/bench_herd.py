"""1,000 machines due at the same instant: how long until all are requested and reported, against bare clients.

The bare clients make the same writes, as many at once as the operator has workers: one in Python on aiohttp, one in Go.
The operator takes part twice: in this process, at rest until the window opens, and as `5spot run`, started when the
window is open. All take turns on a control plane of their own, in which nothing else is at work, and in going first
too: a server slows down with what it stores. Ratios of one run count, not seconds.
"""

import argparse
import asyncio
import os
import statistics
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import uvloop

from bench import _bare_go, _bare_python
from bench import _herd as herd
from bench._bare_go import BareRun
from bench._bars import Bars
from bench._herd_process import ProcessRun, process_herd
from bench._plane import Plane, control_plane
from bench._proc import Spent, Stopwatch
from local.cluster import LocalCluster
from service import log
from service.runtime import memory

MOST_RATIO = 1.3
MOST_GO_RATIO = 1.2
MOST_CPU_MILLISECONDS = 7.0
MOST_CPU_RATIO = 2.0
MOST_PASSES = 1.05
MOST_REQUESTS = 6.2
MOST_FIRST_SECONDS = 1.5
MOST_GROWTH = 5.5
MOST_EVENT_SECONDS = 60.0
LARGE = 5


@dataclass(frozen=True)
class Round:
    """One turn of both sides."""

    bare: Spent
    ours: Spent
    with_events: Spent
    go: BareRun
    process: ProcessRun

    @property
    def ratio(self) -> float:
        return self.ours.seconds / self.bare.seconds

    @property
    def go_ratio(self) -> float:
        return self.process.seconds / self.go.seconds

    @property
    def cpu_ratio(self) -> float:
        return self.process.cpu / self.bare.own

    def described(self, objects: int) -> str:
        work = self.ours.cpu / self.bare.cpu
        return (
            f"bare client {self.bare.seconds:.2f} s, operator {self.ours.seconds:.2f} s (ratio {self.ratio:.2f}), "
            f"all Events after {self.with_events.seconds:.1f} s\n"
            f"  processor time for each: {milliseconds(self.bare, objects)}, {milliseconds(self.ours, objects)} "
            f"(ratio {work:.2f})\n"
            f"  bare client in Go {self.go.seconds:.2f} s, {1000 * self.go.cpu / objects:.2f} ms of its own for each\n"
            f"  {self.process.described()}"
        )


def milliseconds(spent: Spent, objects: int) -> str:
    return f"{spent.own / objects * 1000:.1f} + {spent.servers / objects * 1000:.1f} ms of the servers"


async def one_round(plane: Plane, objects: int, number: int) -> Round:
    sides = {"bare": bare_client, "ours": operator, "go": go_client, "process": process}
    order = list(sides)[number % 2 :] + list(sides)[: number % 2]
    found: dict[str, Any] = {name: await sides[name](plane, objects, f"{name}-{objects}-{number}") for name in order}
    ours, with_events = found.pop("ours")
    done = Round(ours=ours, with_events=with_events, **found)
    print(f"{objects} objects, run {number + 1}: {done.described(objects)}", flush=True)
    return done


async def go_client(plane: Plane, objects: int, space: str) -> BareRun:
    async with plane.cluster.client() as client:
        stored = await herd.prepare(client, space, objects)
        return await _bare_go.run(plane.cluster, space, stored, await herd.cluster_uid(client, space))


async def process(plane: Plane, objects: int, space: str) -> ProcessRun:
    async with plane.cluster.client() as client:
        return await process_herd(plane, client, space, objects)


async def bare_client(plane: Plane, objects: int, space: str) -> Spent:
    async with plane.cluster.client() as client:
        stored = await herd.prepare(client, space, objects)
        return await _bare_python.run(plane.cluster, client, space, stored, stopwatch_of(plane.cluster))


async def operator(plane: Plane, objects: int, space: str) -> tuple[Spent, Spent]:
    async with plane.cluster.client() as client:
        await herd.prepare(client, space, objects)
        spent = await herd.operator(client, space, objects, stopwatch_of(plane.cluster))
        await herd.check(client, space, objects)
        await herd.check_events(client, space, objects)
    return spent


def stopwatch_of(cluster: LocalCluster) -> Stopwatch:
    return Stopwatch([server.pid for server in cluster.servers if server.pid])


async def compare(plane: Plane, objects: int, runs: int, bars: Bars) -> None:
    # The first round meets a server that is still empty, and so faster; the process writes its byte code.
    await process(plane, objects, "warm-up")
    rounds = [await one_round(plane, objects, number) for number in range(runs)]
    ratio = statistics.median(each.ratio for each in rounds)
    bars.at_most(f"{objects} objects, operator against bare client, median of {runs}", ratio, MOST_RATIO, " times")
    slowest = max(each.with_events.seconds for each in rounds)
    bars.at_most(f"{objects} objects, until the last Event", slowest, MOST_EVENT_SECONDS, " s", firm=False)
    judge_process(rounds, bars)


def judge_process(rounds: list[Round], bars: Bars) -> None:
    """What the process needs from its start on; medians, with what was seen in between."""

    def judge(name: str, figures: list[float], bar: float, unit: str = "", *, firm: bool = True) -> None:
        print(f"  {name}: {min(figures):.3g} to {max(figures):.3g}{unit}")
        bars.at_most(f"5spot run, {name}, median", statistics.median(figures), bar, unit, firm=firm)

    runs = [each.process for each in rounds]
    cpu = [1000 * each.cpu / each.objects for each in runs]
    judge("processor time for each object", cpu, MOST_CPU_MILLISECONDS, " ms", firm=False)
    judge(
        "processor time against a bare client on aiohttp", [one.cpu_ratio for one in rounds], MOST_CPU_RATIO, " times"
    )
    judge("time against a bare client in Go", [one.go_ratio for one in rounds], MOST_GO_RATIO, " times")
    judge("first Machine", [each.first_machine for each in runs], MOST_FIRST_SECONDS, " s", firm=False)
    judge("passes for each object", [each.passes / each.objects for each in runs], MOST_PASSES)
    judge("requests for each object", [each.requests.total() / each.objects for each in runs], MOST_REQUESTS)


async def grow(plane: Plane, objects: int, bars: Bars) -> None:
    """The small herds before and after the large one, so that a server that gets slower with age hits both."""
    before = await alone(plane, objects, "before")
    large = await alone(plane, LARGE * objects, "large")
    after = await alone(plane, objects, "after")
    growth = large.seconds / statistics.mean((before.seconds, after.seconds))
    bars.at_most(f"{LARGE * objects} objects against {objects}", growth, MOST_GROWTH, " times")


async def compare_large(plane: Plane, objects: int) -> None:
    """For comparison only, as it is done once: the side that comes second meets a server that stores more."""
    await one_round(plane, objects, 0)


async def alone(plane: Plane, objects: int, space: str) -> Spent:
    spent, _ = await operator(plane, objects, space)
    print(f"{objects} objects: {spent.seconds:.2f} s, {milliseconds(spent, objects)} for each", flush=True)
    return spent


def on_fresh_servers(measure: Callable[[Plane], Coroutine[Any, Any, None]]) -> None:
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(plane))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="size of the herd (default 1000)")
    parser.add_argument("--runs", type=int, default=5, help="how many times both sides take turns (default 5)")
    parser.add_argument("--scale", action="store_true", help=f"only what concerns a herd {LARGE} times as large")
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an image has its byte code
    bars = Bars()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - a device, not a path of ours
        # As `5spot run` does: what is logged costs time as well.
        log.configure("info", "json", nowhere)
        memory.configure()
        if not args.scale:
            on_fresh_servers(lambda plane: compare(plane, args.objects, args.runs, bars))
        on_fresh_servers(lambda plane: grow(plane, args.objects, bars))
        on_fresh_servers(lambda plane: compare_large(plane, LARGE * args.objects))
    bars.settle()


if __name__ == "__main__":
    main()
