"""Outages in the middle of a herd: whether it ends well, how soon after the outage, and how many requests it costs.

`5spot run` in a process of its own, 1,000 objects due at once. When a tenth of them is served, the API server is killed
and started again ten seconds later; or etcd is stopped for a minute; or three in ten of all requests fail for a minute,
by a proxy that answers 500, 503 or 429 or cuts the connection before or after the request was carried out. Requests are
those that the operator counts itself, answered or not, watches and leases included. The first round has no outage.
"""

import argparse
import asyncio
import http.client
import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvloop

from bench import _herd as herd
from bench._bars import Bars
from bench._plane import Plane, control_plane
from bench._proxy import Proxy, proxy
from bench._replica import Crew, watching
from local import access, pki
from local.ports import ANY_PORTS
from service.clock import SimulatedClock
from service.kube.resource import NAMESPACES

MOST_BURST = 2.0
LOOK_EVERY = 0.25
PATIENCE = 900.0
REQUESTS = re.compile(rb"^fivespot_api_requests_total{.*} (\S+)$", re.MULTILINE)
Outage = Callable[[Plane, Proxy], Awaitable[None]]


@dataclass
class Story:
    """The operator's requests over time, and when the outage was."""

    begun: float = 0.0
    over: float = 0.0
    done: float = 0.0
    samples: list[tuple[float, float]] = field(default_factory=list)

    def rates(self, since: float, until: float) -> list[float]:
        """Requests a second, over each second."""
        inside = [(at, count) for at, count in self.samples if since <= at <= until]
        pairs = ((one, next((two for two in inside if two[0] >= one[0] + 1.0), None)) for one in inside)
        return [(two[1] - one[1]) / (two[0] - one[0]) for one, two in pairs if two is not None]

    def peak(self, since: float, until: float) -> float:
        return max(self.rates(since, until), default=0.0)

    @property
    def total(self) -> float:
        return self.samples[-1][1] - self.samples[0][1]


async def none(_plane: Plane, _proxy: Proxy) -> None:
    """Nothing happens."""


async def kill_api_server(plane: Plane, _proxy: Proxy) -> None:
    plane.cluster.apiserver.kill()
    await asyncio.sleep(SHORT)
    await asyncio.to_thread(plane.cluster.apiserver.started)


async def stop_storage(plane: Plane, _proxy: Proxy) -> None:
    plane.cluster.etcd.pause()
    await asyncio.sleep(LONG)
    plane.cluster.etcd.resume()


async def fail_requests(_plane: Plane, line: Proxy) -> None:
    line.failing = 0.3
    await asyncio.sleep(LONG)
    line.failing = 0.0


SHORT, LONG = 10.0, 60.0
OUTAGES: dict[str, Outage] = {
    "no outage": none,
    "API server killed, started again after 10 s": kill_api_server,
    "etcd stopped for 60 s": stop_storage,
    "30 % errors for 60 s": fail_requests,
}


async def one_round(plane: Plane, line: Proxy, number: int, outage: Outage, args: argparse.Namespace) -> Story:
    """One herd with one outage."""
    tenants, own, port = f"outage-{number}", f"own-{number}", ANY_PORTS.pick()
    async with plane.cluster.client() as client:
        margin = herd.Margin(args.margin)
        await herd.prepare(client, tenants, args.objects)
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": own}})
        clock = SimulatedClock.starting(herd.OPENS - margin.until_opening())
        detour = [f"--kubeconfig={detoured(plane, line)}"] if outage is fail_requests else []
        crew = Crew(plane.cluster, plane.keeper, tenants, own, clock, 1, (f"--metrics-port={port}", *detour))
        replica = crew.replica(0)
        replica.start()
        try:
            async with watching(client, tenants) as phases, asyncio.timeout(PATIENCE):
                story = await outcome_of(plane, line, outage, lambda phase: phases(phase) / args.objects, crew, port)
            await herd.check(client, tenants, args.objects)
        finally:
            await asyncio.to_thread(replica.kill)
    return story


async def outcome_of(
    plane: Plane, line: Proxy, outage: Outage, share: Callable[[str], float], crew: Crew, port: int
) -> Story:
    story = Story()
    while share("Inactive") < 1:
        if crew.clock.now() >= herd.OPENS:
            raise SystemExit("not at rest when the window opens; the machine is busy, try a larger --margin")
        await asyncio.sleep(LOOK_EVERY)
    await asyncio.sleep((herd.OPENS - crew.clock.now()).total_seconds() - 1)
    counting = asyncio.create_task(count(story, port))
    while share("Active") < 0.1:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    story.begun = time.monotonic()
    await outage(plane, line)
    story.over = time.monotonic()
    while share("Active") < 1:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_EVERY)
    story.done = time.monotonic()
    await asyncio.sleep(1)
    counting.cancel()
    return story


async def count(story: Story, port: int) -> None:
    while True:
        made = await asyncio.to_thread(requests_made, port)
        if made is not None:
            story.samples.append((time.monotonic(), made))
        await asyncio.sleep(LOOK_EVERY)


def requests_made(port: int) -> float | None:
    """What the operator says it has asked for so far."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5.0)
    try:
        connection.request("GET", "/metrics")
        return sum(map(float, REQUESTS.findall(connection.getresponse().read())))
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def detoured(plane: Plane, line: Proxy) -> Path:
    path = plane.keeper.directory / "detour.kubeconfig"
    pki.write_private(path, replace(plane.cluster.access, url=line.url).kubeconfig(access.OPERATOR))
    return path


def describe(name: str, story: Story, objects: int) -> None:
    while_, after = story.peak(story.begun + 1, story.over), story.peak(story.over, story.done + 1)
    print(
        f"{name}: all served {story.done - story.over:.1f} s after it; {story.total / objects:.1f} requests for each "
        f"object; at most {while_:.0f} requests a second while it lasted, {after:.0f} afterwards",
        flush=True,
    )


async def run(plane: Plane, args: argparse.Namespace) -> None:
    bars, usual = Bars(), 0.0
    with tempfile.TemporaryDirectory() as directory:
        async with proxy(plane.cluster, Path(directory)) as line:
            for number, (name, outage) in enumerate(OUTAGES.items()):
                story = await one_round(plane, line, number, outage, args)
                describe(name, story, args.objects)
                peak = story.peak(story.begun, story.done + 1)
                if not usual:
                    usual = peak
                    continue
                bars.at_most("  busiest second, against that without an outage", peak / usual, MOST_BURST, " times")
    bars.settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="size of the herd (default 1000)")
    parser.add_argument(
        "--margin", type=float, default=60.0, help="seconds until the window opens, at least (default 60)"
    )
    args = parser.parse_args()
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(plane, args))


if __name__ == "__main__":
    main()
