"""Ordinary reviews, and the leases, while others send the worst that three megabytes can hold.

The operator as a real process beside a real API server. Eighteen connections of another process post hostile reviews as
fast as they are answered, to both webhooks of ScheduledMachines and to that of classes. Ordinary ones come at 20 a
second on connections of their own, and fail if they are refused or take longer than API servers wait. The lease must
not change hands.
"""

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from multiprocessing.sharedctypes import Synchronized

import uvloop

from bench import _hostile as hostile
from bench._bars import Bars, quantile
from bench._load import Connection, Result, Target, paced
from bench._plane import Operated, Plane, with_operator
from bench.bench_admission_under_load import webhook
from crds import names
from webhooks.configuration import TIMEOUT_SECONDS

CONNECTIONS = 18
PATHS = 3
RATE = 20.0
MOST_FAILED = 0.01
WORST = (
    "combs of 100 in bootstrapSpec",
    "objects in objects in bootstrapSpec",
    "numbers in userInfo",
    "fields in annotations",
    "one text of commas in bootstrapSpec",
    "one text of escapes in cron",
    "long texts in hoursOfDay",
    "bad names in labels, updated",
    "objects in bootstrapSpec, updated",
    "short lists in finalizers, updated",
    "letters in schemas of a ScheduledMachineClass",
    "patterns in schemas of a ScheduledMachineClass",
    "a slow schema in parameters of a ScheduledMachineClass",
    "references in one text in texts of a ScheduledMachineClass",
)


def bodies() -> dict[str, list[bytes]]:
    """What is posted, by the path that it is posted to."""
    machines = [body for name, body in (*hostile.creations(), *hostile.updates()) if name in WORST]
    others = [body for name, path, body in hostile.other_kinds() if name in WORST]
    return {names.VALIDATE_PATH: machines, names.MUTATE_PATH: machines, names.VALIDATE_CLASS_PATH: others}


class Fire:
    """Connections that post hostile reviews for ever; one that is closed is opened again."""

    def __init__(self, target: Target, counter: "Synchronized[int]") -> None:
        self._target = target
        self._counter = counter
        self._requests: Sequence[bytes] = target.requests()

    async def burn(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(CONNECTIONS // PATHS):
                group.create_task(self._one(number))

    async def _one(self, number: int) -> None:
        while True:
            (connection,) = await self._target.connect(1)
            gone = asyncio.Event()
            connection.answered = self._next
            connection.on_lost = gone.set
            connection.send(self._requests[number % len(self._requests)])
            await gone.wait()

    def _next(self, connection: Connection) -> None:
        self._counter.value += 1
        connection.send(self._requests[self._counter.value % len(self._requests)])


def burn(target: Target, counter: "Synchronized[int]") -> None:
    """What the other process does, until it is killed."""
    hostile_bodies = bodies()

    async def both() -> None:
        fires = (Fire(replace(target, path=path, bodies=worst), counter) for path, worst in hostile_bodies.items())
        await asyncio.gather(*(fire.burn() for fire in fires))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(both())


@asynccontextmanager
async def under_fire(target: Target) -> "AsyncIterator[Synchronized[int]]":
    """Hostile reviews while this lasts; counts those that were answered."""
    context = multiprocessing.get_context("spawn")
    counter = context.Value("i", 0)
    process = context.Process(target=burn, args=(replace(target, bodies=()), counter), daemon=True)
    process.start()
    try:
        while not counter.value:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        yield counter
    finally:
        process.kill()
        process.join()


def failed(result: Result) -> float:
    """The share of ordinary reviews that an API server would have given up or been refused."""
    late = sum(latency > TIMEOUT_SECONDS for latency in result.latencies)
    return (late + result.failures) / result.requests


async def run(plane: Plane, operated: Operated, args: argparse.Namespace) -> None:
    async with plane.cluster.client() as client:
        target = await webhook(client, operated)
    quiet = await paced(target, CONNECTIONS, RATE, 5.0)
    lost = operated.metric("lease_transitions_total", event="lost")
    async with under_fire(target) as counter:
        started, before = time.monotonic(), counter.value
        cpu = operated.cpu_seconds
        result = await paced(target, CONNECTIONS, RATE, args.seconds)
        took, hostile_count = time.monotonic() - started, counter.value - before
        cores = (operated.cpu_seconds - cpu) / took
    await operated.until("the operator answers", operated.is_ready, 30.0)
    report(quiet, result, hostile_count / took)
    print(f"{cores:.2f} cores, {operated.resident:.0f} MB")
    bars = Bars()
    bars.at_most("ordinary reviews that failed", failed(result), MOST_FAILED)
    gone = await asyncio.to_thread(operated.metric, "lease_transitions_total", event="lost")
    bars.at_most("leases lost", gone - lost, 0)
    bars.at_most("ordinary reviews, p99", quantile(result.latencies, 0.99), 1.0, " s", firm=False)
    bars.settle()


def report(quiet: Result, result: Result, hostile_rate: float) -> None:
    print(f"before: {1000 * quiet.quantile(0.5):.1f} ms p50, {1000 * quiet.quantile(0.99):.1f} ms p99")
    print(
        f"under {hostile_rate:.1f} hostile reviews a second: {1000 * result.quantile(0.5):.1f} ms p50, "
        f"{1000 * result.quantile(0.99):.1f} ms p99, {1000 * max(result.latencies):.0f} ms at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long (default 30)")
    args = parser.parse_args()
    with_operator(run, args)


if __name__ == "__main__":
    main()
