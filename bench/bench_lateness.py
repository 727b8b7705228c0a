"""How late a single machine is requested after its window has opened, while 1,000 others are at rest.

The operator runs in a process of its own on a clock that is 600 times as fast as real; windows open one after the
other. Measured from outside: a watch shows when the Machine is there. Seconds are real ones.
"""

import argparse
import asyncio
from datetime import UTC, datetime, timedelta

import uvloop

from bench import _herd as herd
from bench import _population as population
from bench._bars import Bars, quantile
from bench._plane import Operated, Plane, control_plane
from local.operator import ClockPace
from local.provider.kinds import MACHINES
from service.clock import SimulatedClock
from service.kube.client import Client

START = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
APART = timedelta(minutes=4)
MOST_SECONDS = 1.0
Openings = dict[str, datetime]


async def run(plane: Plane, operated: Operated, args: argparse.Namespace) -> None:
    async with plane.cluster.client() as client:
        await herd.home(client, population.NAMESPACE)
        await population.settle_in(client, range(args.objects), START)
        await operated.until("others at rest", lambda: at_rest(operated) >= args.objects)
        await operated.at_rest()
        opens = await announce(client, operated, args)
        late = await watch(client, operated.operator.clock(), opens)
    await operated.at_rest()  # the last one is counted at the end of its pass
    count = operated.metric("activation_lateness_seconds_count")
    mean = operated.metric("activation_lateness_seconds_sum") / max(count, 1)
    print(f"{len(late)} activations: {quantile(late, 0.5) * 1000:.0f} ms p50, {max(late) * 1000:.0f} ms at most")
    print(f"by the operator's own metric: {count:.0f} activations, {mean * 1000:.0f} ms on average")
    bars = Bars()
    bars.at_most("lateness of an activation, p99", quantile(late, 0.99), MOST_SECONDS, " s", firm=False)
    bars.settle()


def at_rest(operated: Operated) -> int:
    return operated.in_phase("Active") + operated.in_phase("Inactive")


async def announce(client: Client, operated: Operated, args: argparse.Namespace) -> Openings:
    """Stores those whose windows open one by one, the first after all are at rest."""
    clock = operated.operator.clock()
    first = clock.now() + timedelta(seconds=args.margin * clock.speed)
    first = first.replace(second=0, microsecond=0)
    numbers = range(args.objects, args.objects + args.samples)
    at = {number: first + APART * index for index, number in enumerate(numbers)}
    given = [herd.scheduled_machine(number, population.opens_at(moment)) for number, moment in at.items()]
    await herd.store(client, population.NAMESPACE, given)
    await operated.until("all at rest", lambda: at_rest(operated) >= args.objects + args.samples)
    if clock.now() >= first:
        raise SystemExit(f"storing took longer than {args.margin} s; the machine is busy, try a larger --margin")
    return {f"{raw['metadata']['name']}-machine": at[number] for raw, number in zip(given, numbers, strict=True)}


async def watch(client: Client, clock: SimulatedClock, opens: Openings) -> list[float]:
    """Real seconds from each opening until the watch shows its Machine."""
    late: dict[str, float] = {}
    page = await client.list_page(MACHINES, namespace=population.NAMESPACE, limit=1)
    stream = client.watch(MACHINES, page.resource_version, namespace=population.NAMESPACE)
    async for event in stream:
        name = event.object["metadata"].get("name", "")
        if event.type == "ADDED" and name in opens:
            late[name] = clock.real_seconds(clock.now() - opens[name])
        if len(late) == len(opens):
            break
    await stream.aclose()
    return list(late.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="others at rest (default 1000)")
    parser.add_argument("--samples", type=int, default=300, help="activations, at most 500 (default 300)")
    parser.add_argument("--speed", type=float, default=600.0, help="speed of the clock (default 600)")
    parser.add_argument("--margin", type=float, default=30.0, help="seconds until the first opens (default 30)")
    args = parser.parse_args()
    with (
        control_plane() as plane,
        plane.operator(ClockPace(START, args.speed)) as operated,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(run(plane, operated, args))


if __name__ == "__main__":
    main()
