"""From the agent's request on a Node until its Machine's deletion is asked for, with pods on the Node.

Run as `python -m bench.bench_reclaim`. Both clusters with Cluster API and simulated hosts, and `5spot run` as a process
of its own. Measured from outside: watches show when pods are gone and when the Machine is being deleted.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench import _herd as herd
from bench._bars import Bars
from crds import names
from crds.definitions import all_definitions
from local.binaries import ensure
from local.cluster import Options
from local.operator import REAL_TIME, Operator
from local.plane import DEMO_CLUSTER, DEMO_NAMESPACE, ControlPlane
from local.ports import ANY_PORTS
from local.processes import Keeper
from local.progress import Progress
from local.provider.kinds import MACHINES
from service.kube.client import Client
from service.kube.resource import NODES, PODS, SCHEDULED_MACHINES, Resource

Raw = dict[str, Any]
REQUEST = dict(zip(names.RECLAIM_ANNOTATIONS, ("true", 'process "idea" matched', "2026-01-01T00:00:00Z"), strict=True))
ALWAYS = {"hoursOfDay": ["0-23"]}
MOST_SECONDS = 2.0
MOST_IN_ALL = 60.0
PATIENCE = 120.0
LOOK_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds until the deletion was asked for, and how many of them pods were being deleted."""

    took: float
    pods: float

    @property
    def beside(self) -> float:
        """What it took but for the pods."""
        return self.took - self.pods


@dataclass(frozen=True, slots=True)
class Desk:
    """A workstation in service."""

    management: Client
    workload: Client
    name: str
    node: str

    @classmethod
    async def in_service(cls, management: Client, workload: Client, number: int) -> "Desk":
        """Its Node is ready, and known to the operator."""
        raw = herd.scheduled_machine(number, ALWAYS)
        raw["spec"]["clusterName"] = DEMO_CLUSTER
        name = raw["metadata"]["name"]
        await management.create(SCHEDULED_MACHINES, raw, namespace=DEMO_NAMESPACE)
        seen = await until(lambda: management.get(SCHEDULED_MACHINES, name, namespace=DEMO_NAMESPACE), is_ready)
        return cls(management, workload, name, seen["status"]["nodeRef"]["name"])

    async def occupy(self, pods: int) -> None:
        """So many pods run on it."""
        spec = {"nodeName": self.node, "containers": [{"name": "main", "image": "pause"}]}
        for number in range(pods):
            body = {**PODS.envelope(), "metadata": {"name": f"{self.name}-{number}"}, "spec": spec}
            await self.workload.create(PODS, body, namespace="default")
        for number in range(pods):
            await until(lambda n=number: self.workload.get(PODS, f"{self.name}-{n}", namespace="default"), runs)

    async def asked_back(self, pods: int) -> Round:
        """What happens after the request."""
        gone = asyncio.create_task(seen_by(self.workload, PODS, "default", is_gone, times=pods))
        leaving = asyncio.create_task(seen_by(self.management, MACHINES, DEMO_NAMESPACE, self._leaves))
        await asyncio.sleep(1.0)  # the watches connect
        asked = time.monotonic()
        await self.workload.patch(NODES, self.node, {"metadata": {"annotations": REQUEST}})
        (deleted,), drained = await asyncio.gather(leaving, gone)
        return Round(deleted - asked, drained[-1] - drained[0] if drained else 0.0)

    def _leaves(self, _kind: str, machine: Raw) -> bool:
        return machine["metadata"]["name"] == f"{self.name}-machine" and "deletionTimestamp" in machine["metadata"]


def is_ready(machine: Raw) -> bool:
    conditions = (machine.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def runs(pod: Raw) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def is_gone(kind: str, _pod: Raw) -> bool:
    return kind == "DELETED"


async def until(look: Callable[..., Any], fact: Callable[[Raw], bool]) -> Raw:
    """What a look shows, once the fact holds."""
    async with asyncio.timeout(PATIENCE):
        while True:
            seen: Raw = await look()
            if fact(seen):
                return seen
            await asyncio.sleep(LOOK_EVERY)


async def seen_by(
    client: Client, resource: Resource, namespace: str, fact: Callable[[str, Raw], bool], times: int = 1
) -> list[float]:
    """When a watch showed something, so many times."""
    page = await client.list_page(resource, namespace=namespace, limit=1)
    moments: list[float] = []
    stream = client.watch(resource, page.resource_version, namespace=namespace)
    async with asyncio.timeout(PATIENCE):
        while len(moments) < times:
            event = await anext(stream)
            if fact(event.type, event.object):
                moments.append(time.monotonic())
    await stream.aclose()
    return moments


async def run(plane: ControlPlane, args: argparse.Namespace) -> None:
    rounds: list[Round] = []
    async with plane.management.client() as management, plane.workload.client() as workload:
        for number in range(args.rounds):
            desk = await Desk.in_service(management, workload, number)
            await desk.occupy(args.pods)
            rounds.append(await desk.asked_back(args.pods))
            print(f"{rounds[-1].took:.2f} s, of which {rounds[-1].pods:.2f} s deleted {args.pods} pods", flush=True)
    bars = Bars()
    median = statistics.median(one.beside for one in rounds)
    bars.at_most("request to deletion of the Machine, beside the pods, median", median, MOST_SECONDS, " s", firm=False)
    bars.at_most("request to deletion of the Machine, longest", max(one.took for one in rounds), MOST_IN_ALL, " s")
    bars.settle()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.bench_reclaim", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="machines asked back, one by one (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=30, help="on each of their Nodes (default: %(default)s)")
    args = parser.parse_args()
    options = Options(definitions=all_definitions())
    with (
        Keeper() as keeper,
        ControlPlane(ensure(Progress()), keeper, options) as plane,
        Operator.start(plane.management, keeper, REAL_TIME, ANY_PORTS),
    ):
        asyncio.run(run(plane, args))


if __name__ == "__main__":
    main()
