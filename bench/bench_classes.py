"""Fifty thousand ScheduledMachines of one class: what they cost in memory, and what an edit of the class sets off.

`5spot run` in a process of its own on a control plane of its own. One machine is stored in the usual way; the others
are copies of it that go straight into etcd, at rest. Then the operator is started with a small class, and again with
one a hundred times as large, which must cost the same. At last the class is edited so that every machine has to store
another status: the most that an edit can set off. Meanwhile the class of a few others goes, and these must not wait.
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from bench import _bulk
from bench import _herd as herd
from bench import _population as population
from bench._bars import Bars
from bench._plane import Operated, Plane, requests_since, with_operator
from local.cluster import Audit
from local.provider.kinds import BOOTSTRAPS, HOSTS
from service.controller.classes import WOKEN_AT_ONCE, WOKEN_PER_SECOND
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINE_CLASSES, SCHEDULED_MACHINES

NAMESPACE, ANNEXE = "floor", "annexe"
"""Where the machines of each class are."""
MANY, FEW = "desk", "pool"
FEW_USERS = 20
LARGE_FIELDS, LARGE_TEXT = 200, "x" * 1000
STOP_SECONDS = 60.0
EVERY = 5.0
"""The rate is taken over so many seconds."""
MOST_PER_SECOND = WOKEN_PER_SECOND + WOKEN_AT_ONCE / EVERY
MOST_MORE_KB = 0.5
"""By which a machine of a large class may be dearer than one of a small class: no two starts use the same memory."""
MOST_FEW_SECONDS = 5.0
MOST_REQUESTS_EACH = 2.0
"""For each machine woken: its status, and an Event."""
Raw = dict[str, Any]


def machine_class(name: str, **bootstrap: str) -> Raw:
    """A class with one parameter."""
    spec = {
        "namespaceSelector": {},
        "parameters": [address("string")],
        "bootstrapSpec": {"apiVersion": BOOTSTRAPS.api_version, "kind": BOOTSTRAPS.kind, "spec": bootstrap},
        "infrastructureSpec": {
            "apiVersion": HOSTS.api_version,
            "kind": HOSTS.kind,
            "spec": {"address": "$(params.address)", "port": 22, "user": "admin"},
        },
    }
    return {**SCHEDULED_MACHINE_CLASSES.envelope(), "metadata": {"name": name}, "spec": spec}


def address(kind: str) -> Raw:
    """The parameter, as text or as something that no address is."""
    return {"name": "address", "schema": {"type": kind}}


def user(number: int, of: str, schedule: Raw) -> Raw:
    """A machine of a class."""
    raw = herd.scheduled_machine(number, schedule)
    spec = raw["spec"]
    host = spec.pop("infrastructureSpec")["spec"]["address"]
    del spec["bootstrapSpec"]
    spec |= {"classRef": {"name": of}, "parameters": {"address": host}}
    return raw


def copies(of: Raw, numbers: range) -> Iterator[Raw]:
    """The same machine with other names and addresses."""
    for number in numbers:
        raw = deepcopy(of)
        own = user(number, MANY, {})
        raw["metadata"] |= {"name": own["metadata"]["name"], "uid": str(UUID(int=number))}
        del raw["metadata"]["resourceVersion"]
        raw["spec"]["parameters"] = own["spec"]["parameters"]
        yield raw


async def run(plane: Plane, operated: Operated, args: argparse.Namespace) -> None:
    bars = Bars()
    async with plane.cluster.client() as client:
        empty = operated.resident
        await populate(plane, client, operated, args.users)
        small = await measure_start(plane, operated, args.users)
        print(f"{args.users} machines: {1000 * (small - empty) / args.users:.1f} KB each", flush=True)
        fields = {f"field{number}": LARGE_TEXT for number in range(LARGE_FIELDS)}
        body = {"spec": machine_class(MANY, **fields)["spec"]}
        await client.patch(SCHEDULED_MACHINE_CLASSES, MANY, body)
        operated.operator.server.stop(STOP_SECONDS)
        large = await measure_start(plane, operated, args.users)
        more = 1000 * (large - small) / args.users
        bars.at_most("memory for a machine of a class a hundred times as large, in addition", more, MOST_MORE_KB, " KB")
        await measure_edit(plane, client, operated, args.seconds, bars)
    bars.settle()


async def populate(plane: Plane, client: Client, operated: Operated, users: int) -> None:
    """Both classes with their machines, at rest; the operator is stopped then."""
    for name, namespace in ((MANY, NAMESPACE), (FEW, ANNEXE)):
        await herd.home(client, namespace)
        await client.create(SCHEDULED_MACHINE_CLASSES, machine_class(name, version="v1.30.0+k0s.0"))
    schedule = population.far_away(0, datetime.now(UTC))
    await herd.store(client, NAMESPACE, [user(0, MANY, schedule)])
    await herd.store(client, ANNEXE, [user(users + number, FEW, schedule) for number in range(FEW_USERS)])
    await operated.until("the first are at rest", lambda: operated.in_phase("Inactive") > FEW_USERS)
    await operated.at_rest()
    operated.operator.server.stop(STOP_SECONDS)
    first = await client.get(SCHEDULED_MACHINES, "m-00000", namespace=NAMESPACE)
    began = time.monotonic()
    await asyncio.to_thread(
        _bulk.store, plane.cluster.directory / "etcd.sock", SCHEDULED_MACHINES, copies(first, range(1, users))
    )
    print(f"{users} machines stored within {time.monotonic() - began:.0f} s", flush=True)


async def measure_start(plane: Plane, operated: Operated, users: int) -> float:
    """Starts the operator and waits until it has looked at every machine; how much memory it has then, in MB."""
    logged, began = plane.cluster.audit_log.stat().st_size, time.monotonic()
    operated.operator.server.start()
    await operated.until("ready", operated.is_ready)
    await operated.until(
        "all timers set",
        lambda: operated.metric("reconciles_total") > users and operated.metric("queue_depth") == 0,
    )
    took = time.monotonic() - began
    await operated.at_rest()
    writes = Counter(each for each in requests_since(plane.cluster.audit_log, logged) if "scheduledmachines" in each)
    print(f"started within {took:.0f} s, {operated.resident:.0f} MB; {dict(writes)}", flush=True)
    return operated.resident


async def measure_edit(plane: Plane, client: Client, operated: Operated, seconds: float, bars: Bars) -> None:
    """The parameter becomes a number: no machine's address is one, and every status has to say so."""
    logged, cpu, began = plane.cluster.audit_log.stat().st_size, operated.cpu_seconds, time.monotonic()
    before = operated.metric("reconciles_total")
    await client.patch(SCHEDULED_MACHINE_CLASSES, MANY, {"spec": {"parameters": [address("number")]}})
    sampling = asyncio.create_task(samples(operated, seconds))
    await asyncio.sleep(seconds / 2)
    few = await without_class(client)
    rates, depths = await sampling
    took, used = time.monotonic() - began, operated.cpu_seconds - cpu
    # Passes last: each is counted after its requests, and others make requests while the log is read.
    requests = Counter(requests_since(plane.cluster.audit_log, logged))
    woken = operated.metric("reconciles_total") - before
    print(f"an edit, the first {took:.0f} s: {woken:.0f} passes; {dict(requests)}")
    print(f"  {100 * used / took:.0f} % of a core, {1000 * used / woken:.1f} ms a pass", flush=True)
    bars.at_most(f"passes a second, most in {EVERY:.0f} s", max(rates), MOST_PER_SECOND)
    bars.at_most("requests a pass", requests.total() / woken, MOST_REQUESTS_EACH)
    bars.at_most("machines that wait for a worker, most", max(depths), 10 * WOKEN_AT_ONCE, firm=False)
    bars.at_most(f"until {FEW_USERS} machines of another class are told", few, MOST_FEW_SECONDS, " s", firm=False)


async def samples(operated: Operated, seconds: float) -> tuple[list[float], list[float]]:
    """Passes a second and the depth of the queue, every few seconds."""
    rates, depths, at = list[float](), list[float](), time.monotonic()
    end, passes = at + seconds, operated.metric("reconciles_total")
    while at < end:
        await asyncio.sleep(EVERY)
        now, found = time.monotonic(), await asyncio.to_thread(operated.metric, "reconciles_total")
        rates.append((found - passes) / (now - at))
        depths.append(await asyncio.to_thread(operated.metric, "queue_depth"))
        at, passes = now, found
    return rates, depths


async def without_class(client: Client) -> float:
    """Deletes the class of a few and waits until all of them say so; how long that takes."""
    began = time.monotonic()
    await client.delete(SCHEDULED_MACHINE_CLASSES, FEW)
    while True:
        if all(map(says_so, await client.list(SCHEDULED_MACHINES, namespace=ANNEXE))):
            return time.monotonic() - began
        await asyncio.sleep(0.1)


def says_so(raw: Raw) -> bool:
    return any(each.get("reason") == "ClassNotFound" for each in raw["status"]["conditions"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50_000, help="machines of the class (default 50000)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look at the edit (default 60)")
    args = parser.parse_args()
    with_operator(run, args, Audit.ALL)


if __name__ == "__main__":
    main()
