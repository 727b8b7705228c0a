"""What machines cost whose pods take long to terminate, and whether a kill switch still works at the same time.

Run as `python -m bench.bench_drains`. Both clusters with Cluster API and simulated hosts, `5spot run` as a process of
its own. Each Node has a pod that stays terminating; the windows of all machines close at once. When all drains are
under way, passes and requests are counted by the operator's own metrics.
"""

import argparse
import asyncio
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime

from bench import _herd as herd
from bench._bars import Bars
from bench._plane import Operated
from bench.bench_reclaim import ALWAYS, Raw, is_ready, until
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
from service.kube.errors import NotFound, Unavailable
from service.kube.resource import PODS, SCHEDULED_MACHINES

HOLD = "bench.example/hold"
MOST_REQUESTS = 1.0
MOST_KILL_SECONDS = 2.0
SETTLE_SECONDS = 15.0
PATIENCE = 1500.0


async def run(plane: ControlPlane, operated: Operated, args: argparse.Namespace) -> None:
    bars = Bars()
    async with plane.management.client() as management, plane.workload.client() as workload:
        names = await in_service(management, args.machines)
        try:
            await occupy(management, workload, names)
            await close(management, names)
            await operated.until("all drains under way", lambda: operated.in_phase("ShuttingDown") >= len(names))
            await asyncio.sleep(SETTLE_SECONDS)
            await measure(operated, len(names), args.seconds, bars)
            await kill(management, names[-1], bars)
        finally:
            await let_go(workload, names)
    bars.settle()


async def in_service(management: Client, count: int) -> list[str]:
    """So many machines whose Nodes are Ready."""
    raws = [herd.scheduled_machine(number, ALWAYS) for number in range(count)]
    for raw in raws:
        raw["spec"] |= {"clusterName": DEMO_CLUSTER, "nodeDrainTimeout": "1h", "gracefulShutdownTimeout": "1h"}
    await herd.store(management, DEMO_NAMESPACE, raws)
    names = [raw["metadata"]["name"] for raw in raws]
    async with asyncio.timeout(PATIENCE):
        while True:
            listed = await management.list(SCHEDULED_MACHINES, namespace=DEMO_NAMESPACE)
            ready = sum(is_ready(raw) for raw in listed)
            if ready >= count:
                return names
            await asyncio.sleep(1.0)


async def occupy(management: Client, workload: Client, names: list[str]) -> None:
    """A pod on each Node that will not go before it is let."""
    listed = await management.list(SCHEDULED_MACHINES, namespace=DEMO_NAMESPACE)
    nodes = {raw["metadata"]["name"]: raw["status"]["nodeRef"]["name"] for raw in listed}

    async def one(name: str) -> None:
        spec = {"nodeName": nodes[name], "containers": [{"name": "main", "image": "pause"}]}
        body = {**PODS.envelope(), "metadata": {"name": f"slow-{name}", "finalizers": [HOLD]}, "spec": spec}
        await workload.create(PODS, body, namespace="default")

    await herd.gently(names, one)


async def close(management: Client, names: list[str]) -> None:
    """Ends the windows of all."""
    later = str((datetime.now(UTC).hour + 6) % 24)

    async def one(name: str) -> None:
        body = {"spec": {"schedule": {"hoursOfDay": [later]}}}
        while True:
            try:
                await management.patch(SCHEDULED_MACHINES, name, body, namespace=DEMO_NAMESPACE)
            except Unavailable:  # on a machine that is full a webhook may take too long
                await asyncio.sleep(1.0)
            else:
                return

    await herd.gently(names, one)


async def measure(operated: Operated, machines: int, seconds: float, bars: Bars) -> None:
    before, (passes, cpu) = operated.requests(), counted(operated)
    await asyncio.sleep(seconds)
    after, made = counted(operated), Counter(operated.requests())
    made.subtract(before)
    minutes = seconds / 60
    print(f"{machines} machines, passes a minute: {(after[0] - passes) / minutes:.0f}; {operated.resident:.0f} MB")
    broken = operated.metric("watch_restarts_total")
    print(f"processor: {100 * (after[1] - cpu) / seconds:.1f} % of a core; {broken:.0f} watches broke", flush=True)
    for request, count in (+made).most_common():
        print(f"  {count} {request}", flush=True)
    per_machine = made.total() / minutes / machines
    bars.at_most("requests a minute for each draining machine", per_machine, MOST_REQUESTS)


def counted(operated: Operated) -> tuple[float, float]:
    return operated.metric("reconciles_total"), operated.cpu_seconds


async def kill(management: Client, name: str, bars: Bars) -> None:
    """From the kill switch until the Machine's deletion is asked for."""
    started = time.monotonic()
    await management.patch(SCHEDULED_MACHINES, name, {"spec": {"killSwitch": True}}, namespace=DEMO_NAMESPACE)
    await until(lambda: there(management, name), lambda raw: not raw or "deletionTimestamp" in raw["metadata"])
    bars.at_most("kill switch until the deletion", time.monotonic() - started, MOST_KILL_SECONDS, " s", firm=False)


async def there(management: Client, name: str) -> Raw:
    try:
        return await management.get(MACHINES, f"{name}-machine", namespace=DEMO_NAMESPACE)
    except NotFound:
        return {}


async def let_go(workload: Client, names: list[str]) -> None:
    async def one(name: str) -> None:
        with suppress(NotFound):
            await workload.patch(PODS, f"slow-{name}", {"metadata": {"finalizers": None}}, namespace="default")

    await herd.gently(names, one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=60, help="how many drain at once (default 60)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look (default 60)")
    args = parser.parse_args()
    options = Options(definitions=all_definitions())
    with (
        Keeper() as keeper,
        ControlPlane(ensure(Progress()), keeper, options) as plane,
        Operator.start(plane.management, keeper, REAL_TIME, ANY_PORTS) as operator,
    ):
        asyncio.run(run(plane, Operated(operator), args))


if __name__ == "__main__":
    main()
