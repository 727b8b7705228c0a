"""What the operator costs while nothing is due, and how soon it is back after a restart.

`5spot run` in a process of its own, with webhooks, on a control plane of its own: first with some objects, a fifth of
them Active with children; requests are counted by the API server's audit log. Then with many: memory, and the time
from the start of the process until its caches are complete and every object has been looked at and has its timer.
"""

import argparse
import asyncio
import time
from collections import Counter
from datetime import UTC, datetime

import uvloop

from bench import _herd as herd
from bench import _population as population
from bench._bars import Bars
from bench._plane import Operated, Plane, control_plane, requests_since
from local.cluster import Audit
from service.kube.client import Client

MOST_REQUESTS = 10.0
MOST_CORE = 1.0
MOST_MEMORY = 300.0
MOST_START_SECONDS = 20.0
STOP_SECONDS = 60.0


async def run(plane: Plane, operated: Operated, args: argparse.Namespace) -> None:
    bars = Bars()
    async with plane.cluster.client() as client:
        await herd.home(client, population.NAMESPACE)
        await fill(client, operated, range(args.objects))
        print(f"{args.objects} objects: {operated.resident:.0f} MB", flush=True)
        await measure_rest(plane, operated, args.seconds, bars)
        if args.many > args.objects:
            await fill(client, operated, range(args.objects, args.many))
    if args.many > args.objects:
        print(f"{args.many} objects, after storing them: {operated.resident:.0f} MB", flush=True)
        await measure_start(plane, operated, args.many, bars)
        await operated.at_rest()
        await measure_rest(plane, operated, args.seconds, Bars())
        bars.at_most(f"memory with {args.many} objects", operated.resident, MOST_MEMORY, " MB")
    bars.settle()


async def fill(client: Client, operated: Operated, numbers: range) -> None:
    """Stores more objects and lets the operator bring them to rest."""
    before = operated.in_phase("Active")
    wanted, there = before + await population.settle_in(client, numbers, datetime.now(UTC)), numbers.stop
    await operated.until(f"{wanted} Active", lambda: operated.in_phase("Active") >= wanted)
    await operated.until(f"{there} at rest", lambda: operated.in_phase("Inactive") >= there - wanted)
    await population.provision(client)
    await operated.at_rest()


async def measure_rest(plane: Plane, operated: Operated, seconds: float, bars: Bars) -> None:
    used = await operated.usage(plane.cluster, seconds)
    bars.at_most("requests a minute at rest", used.per_minute, MOST_REQUESTS)
    if used.requests:
        print(f"  of these: {dict(Counter(used.requests))}")
    bars.at_most("processor at rest", used.core_share, MOST_CORE, " % of a core", firm=False)


async def measure_start(plane: Plane, operated: Operated, objects: int, bars: Bars) -> None:
    """A second life: all statuses are written, so that nothing but reading and reckoning is left."""
    operated.operator.server.stop(STOP_SECONDS)  # in good order: a lease that is not given back has to run out first
    logged = plane.cluster.audit_log.stat().st_size
    started = time.monotonic()
    operated.operator.server.start()
    await operated.until("ready", operated.is_ready)
    synced = time.monotonic() - started
    await operated.until("all timers set", lambda: timers_set(operated, objects))
    took = time.monotonic() - started
    looks, cpu = operated.metric("reconciles_total"), operated.cpu_seconds
    print(f"{objects} objects: caches complete after {synced:.1f} s; {looks:.0f} looks, {cpu:.1f} s of CPU")
    bars.at_most("start until all timers are set", took, MOST_START_SECONDS, " s", firm=False)
    print(f"  requests: {dict(Counter(requests_since(plane.cluster.audit_log, logged)))}", flush=True)


def timers_set(operated: Operated, objects: int) -> bool:
    passes = operated.metric("reconciles_total")
    return passes >= objects and operated.metric("queue_depth") == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="objects at rest at first (default 1000)")
    parser.add_argument("--many", type=int, default=10_000, help="for memory and start (default 10000; 0: none)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look at rest (default 60)")
    args = parser.parse_args()
    with (
        control_plane(Audit.ALL) as plane,
        plane.operator() as operated,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(run(plane, operated, args))


if __name__ == "__main__":
    main()
