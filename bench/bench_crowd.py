"""Many machines due at once in a Cluster with a limit, and a provider that takes some seconds for each.

Run as `python -m bench.bench_crowd`. `5spot run` as a process of its own; this process plays Cluster API and provider:
so many seconds after a Machine is created, its Node is Ready. Counted here, not by the operator: how many are on
the way at once, how long all take against the ideal, which is the time for that many full rounds, and that those that
are done cost no request.
"""

import argparse
import asyncio
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bench import _herd as herd
from bench._bars import Bars
from bench._plane import Operated, Plane, with_operator
from bench._population import opens_at
from crds import names
from local.access import ADMIN
from local.cluster import Audit
from local.provider.kinds import CLUSTERS, MACHINES
from service.kube.client import Client
from service.kube.resource import NODES, SCHEDULED_MACHINES, SECRETS

Raw = dict[str, Any]
SPACE = "crowd"
MOST_RATIO = 1.1
REST_SECONDS = 10.0
LASTING = "--node-monitor-grace-period=1h"
"""No kubelet runs here: without it, Kubernetes calls every Node not Ready some 50 seconds after it was created."""
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": None}


@dataclass
class Provider:
    """Sets up one host after the other for every Machine that appears, all at the same pace."""

    client: Client
    seconds: float
    wanted: int
    under_way: int = 0
    most: int = 0
    done: int = 0
    began: float = 0.0
    ended: float = 0.0
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        page = await self.client.list_page(MACHINES, namespace=SPACE, limit=1)
        async with asyncio.TaskGroup() as group:
            stream = self.client.watch(MACHINES, page.resource_version, namespace=SPACE, idle_seconds=600)
            async for event in stream:
                if event.type == "ADDED":
                    self._begin()
                    group.create_task(self._provision(event.object["metadata"]["name"]))
                    if self.under_way + self.done == self.wanted:
                        break
            await stream.aclose()
        self.ended = time.monotonic()
        self.finished.set()

    def _begin(self) -> None:
        self.began = self.began or time.monotonic()
        self.under_way += 1
        self.most = max(self.most, self.under_way)

    async def _provision(self, machine: str) -> None:
        await asyncio.sleep(self.seconds)
        provider_id = f"bench://{machine}"
        node = {**NODES.envelope(), "metadata": {"name": machine}, "spec": {"providerID": provider_id}}
        await self.client.patch(MACHINES, machine, {"spec": {"providerID": provider_id}}, namespace=SPACE)
        await self.client.patch(MACHINES, machine, _joined(machine), namespace=SPACE, subresource="status")
        self.under_way -= 1  # the operator cannot know it before the next write
        self.done += 1
        await self.client.create(NODES, node | {"status": {"conditions": [_ready()]}})


def _joined(node: str) -> Raw:
    return {"status": {"nodeRef": {"name": node}, "initialization": {"infrastructureProvisioned": True}}}


def _ready() -> Raw:
    return READY | {"lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


async def run(plane: Plane, operated: Operated, args: argparse.Namespace) -> None:
    bars = Bars()
    async with plane.cluster.client() as client:
        await home(plane, client, args.limit)
        await announce(client, operated, args.machines)
        provider = Provider(client, args.seconds, args.machines)
        task = asyncio.create_task(provider.run())
        await asyncio.wait({task}, timeout=30 + 10 * ideal(args))
        task.result()
        await measure(plane, operated, provider, args, bars)
    bars.settle()


def ideal(args: argparse.Namespace) -> float:
    rounds: int = math.ceil(args.machines / args.limit)
    return rounds * float(args.seconds)


async def home(plane: Plane, client: Client, limit: int) -> None:
    """A namespace with a Cluster that has a limit, and whose workload cluster is this cluster itself."""
    await herd.home(client, SPACE)
    annotations = {names.ANNOTATION_MAX_PROVISIONING: str(limit)}
    await client.patch(CLUSTERS, herd.CLUSTER, {"metadata": {"annotations": annotations}}, namespace=SPACE)
    secret = {
        **SECRETS.envelope(),
        "metadata": {
            "name": f"{herd.CLUSTER}{names.KUBECONFIG_SECRET_SUFFIX}",
            "labels": {names.LABEL_CLUSTER_NAME: herd.CLUSTER},
        },
        "type": names.KUBECONFIG_SECRET_TYPE,
        "stringData": {names.KUBECONFIG_SECRET_KEY: plane.cluster.access.kubeconfig(ADMIN)},
    }
    await client.create(SECRETS, secret, namespace=SPACE)


async def announce(client: Client, operated: Operated, machines: int) -> None:
    """Stores all of them; their windows open together, at the full minute after all are at rest."""
    margin = herd.Margin(at_least=20.0)
    raws = [
        herd.scheduled_machine(number, opens_at(datetime.now(UTC) + timedelta(days=90))) for number in range(machines)
    ]
    await herd.store(client, SPACE, raws)
    opens = datetime.now(UTC) + margin.until_opening() + timedelta(minutes=1)
    schedule = opens_at(opens.replace(second=0, microsecond=0))

    async def one(raw: Raw) -> None:
        body = {"spec": {"schedule": schedule}}
        await client.patch(SCHEDULED_MACHINES, raw["metadata"]["name"], body, namespace=SPACE)

    await herd.gently(raws, one)
    await operated.until("all at rest", lambda: operated.in_phase("Inactive") >= machines)
    if datetime.now(UTC) >= opens.replace(second=0, microsecond=0):
        raise SystemExit("the windows opened before all were at rest; the machine is busy, try fewer --machines")


async def measure(plane: Plane, operated: Operated, provider: Provider, args: argparse.Namespace, bars: Bars) -> None:
    took = provider.ended - provider.began
    print(f"{args.machines} machines, {args.limit} at a time, {args.seconds:g} s each: {took:.1f} s", flush=True)
    passes = operated.metric("reconciles_total")
    print(f"passes for each machine since the start: {passes / args.machines:.1f}", flush=True)
    bars.at_most("machines on the way at once", provider.most, args.limit)
    bars.at_most("time against the ideal", took / ideal(args), MOST_RATIO, firm=args.firm)
    await operated.until("all Ready", lambda: operated.metric("scheduledmachines_ready") >= args.machines)
    await operated.at_rest()
    used = await operated.usage(plane.cluster, REST_SECONDS)
    for request, count in Counter(used.requests).items():
        print(f"  at rest: {count} {request}", flush=True)
    bars.at_most("requests at rest", len(used.requests), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=1000, help="how many are due at once (default 1000)")
    parser.add_argument("--limit", type=int, default=50, help="the limit of the Cluster (default 50)")
    parser.add_argument("--seconds", type=float, default=5.0, help="what the provider takes for each (default 5)")
    parser.add_argument("--firm", action="store_true", help="fail if it takes too long; for a machine of its own")
    args = parser.parse_args()
    with_operator(run, args, Audit.ALL, (LASTING,))


if __name__ == "__main__":
    main()
