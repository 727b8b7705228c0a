"""What the operator costs while nothing is due, and how soon it is back after a restart.

`5spot run` in a process of its own, with webhooks, on a control plane of its own: first with some objects, a fifth of
them Active with children; requests are counted by the API server's audit log. Then with many: memory, and the time
from the start of the process until its caches are complete and every object has been looked at and has its timer. With
`--huge`, at last with as many as one replica is meant for. Every status has a full history.
"""

import argparse
import time
from collections import Counter
from datetime import UTC, datetime

from bench import _herd as herd
from bench import _population as population
from bench._bars import Bars
from bench._plane import Operated, Plane, requests_since, with_operator
from local.cluster import Audit
from service.kube.client import Client

MOST_REQUESTS = 10.0
MOST_CPU_SECONDS = 0.2
MOST_MEMORY = {"few": 85.0, "many": 170.0, "huge": 500.0}
MOST_START_SECONDS = 9.0
STOP_SECONDS = 60.0


async def run(plane: Plane, operated: Operated, args: argparse.Namespace) -> None:
    bars = Bars()
    async with plane.cluster.client() as client:
        await herd.home(client, population.NAMESPACE)
        await fill(client, operated, range(args.objects))
        bars.at_most(f"memory with {args.objects} objects", operated.resident, MOST_MEMORY["few"], " MB")
        await measure_rest(plane, operated, args.seconds, bars)
        if args.many > args.objects:
            await fill(client, operated, range(args.objects, args.many))
    if args.many > args.objects:
        print(f"{args.many} objects, after storing them: {operated.resident:.0f} MB", flush=True)
        await measure_start(plane, operated, args.many, bars)
        await operated.at_rest()
        await measure_rest(plane, operated, args.seconds, bars)
        bars.at_most(f"memory with {args.many} objects", operated.resident, MOST_MEMORY["many"], " MB")
        if args.overrides:
            await measure_overrides(plane, operated, args, bars)
    if args.huge > args.many:
        await measure_huge(plane, operated, args, bars)
    bars.settle()


async def measure_huge(plane: Plane, operated: Operated, args: argparse.Namespace, bars: Bars) -> None:
    """After another restart, as memory that many writes once needed stays with the process."""
    async with plane.cluster.client() as client:
        await fill(client, operated, range(max(args.objects, args.many), args.huge))
    await measure_start(plane, operated, args.huge, Bars())
    await operated.at_rest()
    used = await operated.usage(plane.cluster, args.seconds)
    bars.at_most(f"requests a minute at rest with {args.huge} objects", used.per_minute, 0.0)
    bars.at_most(f"memory with {args.huge} objects", operated.resident, MOST_MEMORY["huge"], " MB")


async def measure_overrides(plane: Plane, operated: Operated, args: argparse.Namespace, bars: Bars) -> None:
    """The same with overrides: each costs a few writes when it is stored, and none at rest."""
    logged, before = plane.cluster.audit_log.stat().st_size, operated.resident
    async with plane.cluster.client() as client:
        await population.override(client, range(args.overrides), datetime.now(UTC))
    await operated.until(
        f"{args.overrides} overrides accepted",
        lambda: operated.metric("overrides_judged_total", reason="Accepted") >= args.overrides,
    )
    await operated.at_rest()
    print(f"{args.overrides} overrides: {operated.resident - before:.0f} MB more", flush=True)
    print(f"  requests until all are accepted: {dict(Counter(requests_since(plane.cluster.audit_log, logged)))}")
    used = await operated.usage(plane.cluster, args.seconds)
    bars.at_most(f"requests a minute with {args.overrides} overrides at rest", used.per_minute, MOST_REQUESTS)
    print(f"  of these: {dict(Counter(used.requests))}", flush=True)


async def fill(client: Client, operated: Operated, numbers: range) -> None:
    """Stores more objects and lets the operator bring them to rest."""
    before = operated.in_phase("Active")
    wanted, there = before + await population.settle_in(client, numbers, datetime.now(UTC)), numbers.stop
    await operated.until(f"{wanted} Active", lambda: operated.in_phase("Active") >= wanted)
    await operated.until(f"{there} at rest", lambda: operated.in_phase("Inactive") >= there - wanted)
    await population.provision(client)
    await population.remember(client, datetime.now(UTC))
    await operated.at_rest()


async def measure_rest(plane: Plane, operated: Operated, seconds: float, bars: Bars) -> None:
    used = await operated.usage(plane.cluster, seconds)
    bars.at_most("requests a minute at rest", used.per_minute, MOST_REQUESTS)
    if used.requests:
        print(f"  of these: {dict(Counter(used.requests))}")
    cpu = used.core_share / 100 * 60
    bars.at_most("processor time a minute at rest", cpu, MOST_CPU_SECONDS, " s", firm=False)


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
    bars.at_most(f"start with {objects} until all timers are set", took, MOST_START_SECONDS, " s", firm=False)
    print(f"  requests: {dict(Counter(requests_since(plane.cluster.audit_log, logged)))}", flush=True)


def timers_set(operated: Operated, objects: int) -> bool:
    passes = operated.metric("reconciles_total")
    return passes >= objects and operated.metric("queue_depth") == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="objects at rest at first (default 1000)")
    parser.add_argument("--many", type=int, default=10_000, help="for memory and start (default 10000; 0: none)")
    parser.add_argument(
        "--overrides", type=int, default=1000, help="overrides beside the many objects (default 1000; 0: none)"
    )
    parser.add_argument("--huge", type=int, default=0, help="at last, such as 50000 (default 0: not)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look at rest (default 60)")
    args = parser.parse_args()
    with_operator(run, args, Audit.ALL)


if __name__ == "__main__":
    main()
