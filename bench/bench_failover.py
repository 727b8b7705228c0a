"""A replica is killed, and objects of its shard become due right then: how long until they are served.

Three replicas as processes of their own with the usual leases, a shard each. Again and again one of them gets SIGKILL
while windows are about to open, on a clock that is 60 times as fast as real; the time counts from the kill until every
object says Active. The killed replica is started again and gets its shard back before the next round.
"""

import argparse
import asyncio
import time
from datetime import datetime, timedelta

import uvloop

from bench import _herd as herd
from bench._bars import Bars
from bench._plane import Plane, control_plane
from bench._replica import Crew, watching
from local.processes import Server
from service.clock import SimulatedClock
from service.kube.client import Client
from service.kube.resource import LEASES, NAMESPACES, SCHEDULED_MACHINES
from service.sharding.lease_store import SELECTOR
from service.sharding.leases import LeaseTimes

MOST_SECONDS = LeaseTimes().duration + 5.0
REPLICAS = 3
SPEED = 60.0
OBJECTS = 12
NOTICE = timedelta(minutes=8)
"""By the fast clock: time to look at new objects before their window opens."""
LOOK_EVERY = 0.05
PATIENCE = 180.0


async def one_round(client: Client, crew: Crew, replicas: list[Server], number: int) -> float:
    """Seconds from the loss of a replica until all that is due is served."""
    await evenly_held(client, crew)
    opens = (crew.clock.now() + NOTICE).replace(second=0, microsecond=0)
    await herd.store(client, crew.tenants, [opening(opens, OBJECTS * number + n) for n in range(OBJECTS)])
    async with watching(client, crew.tenants) as phases:
        while phases("Inactive") < OBJECTS:
            if crew.clock.now() >= opens:
                raise SystemExit("not at rest when the window opens; the machine is too busy")
            await asyncio.sleep(LOOK_EVERY)
        victim = number % REPLICAS
        await asyncio.to_thread(replicas[victim].kill)
        killed = time.monotonic()
        while phases("Active") < OBJECTS * (number + 1):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY)
        took = time.monotonic() - killed
    replicas[victim] = crew.replica(victim)
    replicas[victim].start()
    print(f"replica {victim} killed: all served after {took:.1f} s", flush=True)
    return took


async def evenly_held(client: Client, crew: Crew) -> None:
    """Waits until each replica has a shard of its own."""
    while True:
        leases = await client.list(LEASES, namespace=crew.own, labels=SELECTOR)
        holders = {lease["spec"].get("holderIdentity") for lease in leases} - {None}
        alive = all(lives(lease) for lease in leases)
        if len(leases) == len(holders) == REPLICAS and alive:
            return
        await asyncio.sleep(LOOK_EVERY)


def lives(lease: herd.Raw) -> bool:
    """Whether it was renewed a moment ago; all clocks here are the same one."""
    age = time.time() - datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp()
    return age < 2 * LeaseTimes().retry


def opening(moment: datetime, number: int) -> herd.Raw:
    """Open for a week from a minute on."""
    cron = {"cron": f"{moment.minute} {moment.hour} {moment.day} {moment.month} *", "duration": "168h"}
    return herd.scheduled_machine(number, {**cron, "timezone": "UTC", "enabled": True})


async def run(plane: Plane, rounds: int) -> None:
    async with plane.cluster.client() as client:
        tenants, own = "failover", "failover-own"
        await herd.home(client, tenants)
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": own}})
        crew = Crew(plane.cluster, plane.keeper, tenants, own, SimulatedClock.starting(herd.BEFORE, SPEED), REPLICAS)
        replicas = [crew.replica(number) for number in range(REPLICAS)]
        for replica in replicas:
            replica.start()
        try:
            async with asyncio.timeout(PATIENCE * rounds):
                took = [await one_round(client, crew, replicas, number) for number in range(rounds)]
        finally:
            for replica in replicas:
                await asyncio.to_thread(replica.kill)
        await herd.check(client, tenants, OBJECTS * rounds)
        stored = len(await client.list(SCHEDULED_MACHINES, namespace=tenants))
    print(f"{stored} objects in {rounds} rounds, shortest {min(took):.1f} s")
    bars = Bars()
    bars.at_most("longest from the loss of a replica until all is served", max(took), MOST_SECONDS, " s", firm=False)
    bars.settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="how often a replica is killed (default 6)")
    args = parser.parse_args()
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(plane, args.rounds))


if __name__ == "__main__":
    main()
