"""What the console costs, as `5spot console -A` in a process of its own, with Chromium in front of it.

With 1,000 machines: how soon a page paints for the first time and shows its machines, whether scrolling has long tasks,
and what the API server sees while nothing happens. With 10,000: memory, after every page was open.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from bench import _proc
from bench._bars import Bars
from bench._plane import Plane, control_plane
from local.cluster import Audit
from local.processes import Server
from service.kube.client import Client
from service.kube.resource import NAMESPACES
from service.kube.transport import Request
from tests.browser import chromium, scene
from tests.browser.chromium import Page
from tests.browser.measures import DRAWN, SCROLL, TIMES

FEW, MANY = 1000, 10_000
NAMESPACE_SIZE = 250
FIRST_PAINT = 300.0
ALL_DRAWN = 2000.0
LONGEST_TASK = 100.0
MEMORY = 150.0
WATCHES = 4.0
REST_SECONDS = 30.0
PAGES = ("/fleet", "/week", "/overrides", "/calendars", "/report")
ADDRESS = re.compile(r"The console: (http://\S+?)(/#token=\S+)")
OPEN_WATCHES = re.compile(
    r'^apiserver_longrunning_requests{.*group="5spot.finos.org".*verb="WATCH".*} (\S+)$', re.MULTILINE
)


async def run(plane: Plane, profile: Path, args: argparse.Namespace) -> None:
    bars = Bars()
    async with plane.cluster.client() as client:
        await fill(client, 0, FEW)
        before = await watches(client)
        async with console(plane, profile) as (page, pid):
            for path in ("/fleet", "/week"):
                await measure_page(page, path, args.rounds, bars)
            await measure_rest(plane, client, before, bars)
            print(f"memory with {FEW} machines: {_proc.resident(pid):.0f} MB", flush=True)
        if args.many > FEW:
            await fill(client, FEW, args.many)
            await measure_many(plane, profile, args.many, bars)
    bars.settle()


async def fill(client: Client, first: int, last: int) -> None:
    """Stores machines with statuses and histories, some in each namespace."""
    for begin in range(first, last, NAMESPACE_SIZE):
        name = f"team-{begin // NAMESPACE_SIZE}"
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": name}})
        await scene.fleet(client, name, NAMESPACE_SIZE)
    print(f"{last} machines stored", flush=True)


@asynccontextmanager
async def console(plane: Plane, profile: Path) -> AsyncIterator[tuple[Page, int]]:
    """The console as a process, opened in the browser."""
    words = ["-m", "service", "console", "-A", f"--kubeconfig={plane.cluster.kubeconfig}"]
    server = Server(
        f"console-{time.monotonic_ns()}", [sys.executable, *words], plane.keeper, lambda: bool(address(server))
    )
    await asyncio.to_thread(server.started)
    printed = address(server)
    assert printed is not None
    try:
        with chromium.started(profile / server.name) as driver:
            page = Page(driver, printed[1])
            await page.open(printed[2])
            await page.find("nav a")
            yield page, server.pid or 0
    finally:
        server.stop()


def address(server: Server) -> "re.Match[str] | None":
    """What it printed, once it did: the origin, and the path with the token."""
    return ADDRESS.search("\n".join(server.last_lines()))


async def measure_page(page: Page, path: str, rounds: int, bars: Bars) -> None:
    paints, drawings, tasks = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        await page.open(path)
        await page.until(lambda: page.run(DRAWN), "drawn")
        times: dict[str, Any] = await page.run(TIMES)
        paints.append(times["paint"])
        drawings.append(times["drawn"])
        scrolled: dict[str, Any] = await page.answer(SCROLL)
        tasks.append(max(scrolled["long"], default=0.0))
    print(
        f"{path}, {rounds} times: first paint {spread(paints)}, drawn {spread(drawings)}, longest task {spread(tasks)}"
    )
    # How quick the machine is decides about these, too.
    bars.at_most(f"{path}: first paint, median", median(paints), FIRST_PAINT, " ms", firm=False)
    bars.at_most(f"{path}: {FEW} machines drawn, median", median(drawings), ALL_DRAWN, " ms", firm=False)
    bars.at_most(f"{path}: longest task while scrolling, median", median(tasks), LONGEST_TASK, " ms", firm=False)


def spread(values: list[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f} ms"


async def measure_rest(plane: Plane, client: Client, before: float, bars: Bars) -> None:
    """With a page open; nothing else than the console asks this API server for objects of ours."""
    # Kubernetes' own controllers watch every kind, too.
    bars.at_most("watches open", await watches(client) - before, WATCHES)
    logged = plane.cluster.audit_log.stat().st_size
    await asyncio.sleep(REST_SECONDS)
    with plane.cluster.audit_log.open("rb") as lines:
        lines.seek(logged)
        entries = [orjson.loads(line) for line in lines if line.endswith(b"\n")]
    users = [each for each in entries if not each["user"].get("username", "").startswith("system:")]
    ours = [each for each in users if each["verb"] != "watch"]
    asked = Counter(f"{each['verb']} {each['requestURI'].partition('?')[0]}" for each in ours)
    bars.at_most(f"requests in {REST_SECONDS:.0f} s at rest", sum(asked.values()), 0)
    print(f"  of these: {dict(asked)}", flush=True)


async def watches(client: Client) -> float:
    """Open watches of our kinds, as the API server counts them."""
    text = await client.transport.call(Request("get", "GET", "/metrics", "metrics"))
    return sum(float(each) for each in OPEN_WATCHES.findall(text.decode()))


async def measure_many(plane: Plane, profile: Path, count: int, bars: Bars) -> None:
    began = time.monotonic()
    async with console(plane, profile) as (page, pid):
        print(f"{count} machines: shown {time.monotonic() - began:.1f} s after the start of console and browser")
        for path in PAGES:
            await page.open(path)
            await page.until(lambda: page.run(DRAWN), "drawn")
            times = await page.run(TIMES)
            print(f"  {path}: drawn after {times['drawn']:.0f} ms, memory {_proc.resident(pid):.0f} MB", flush=True)
        bars.at_most(f"memory with {count} machines", _proc.resident(pid), MEMORY, " MB")


def main() -> None:
    """Runs it, on a control plane without an operator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--many", type=int, default=MANY)
    args = parser.parse_args()
    missing = chromium.ensure()
    if missing:
        print(f"not measured: {missing}")
        return
    with tempfile.TemporaryDirectory() as folder, control_plane(Audit.ALL) as plane:
        asyncio.run(run(plane, Path(folder), args))


if __name__ == "__main__":
    main()
