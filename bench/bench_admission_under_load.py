"""How fast the validating webhook answers while the same process brings up a herd.

`5spot run` in a process of its own. 1,000 windows open at the same minute; from then on until all machines are
requested, 20 validating requests a second go straight to the webhook, over TLS that is verified.
"""

import argparse
import asyncio
import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from bench import _herd as herd
from bench import _population as population
from bench._bars import Bars, quantile
from bench._load import Target, paced
from bench._plane import Operated, Plane, with_operator
from bench.bench_admission import checked, reviews
from crds import names
from local.ports import LOOPBACK
from service.kube.client import Client
from service.kube.resource import VALIDATING_WEBHOOKS
from webhooks.configuration import VALIDATING_NAME

RATE = 20.0
CONNECTIONS = 16
SLICE_SECONDS = 2.0
MOST_SECONDS = 0.25
# With nothing else to do, a slower tail comes from other programs.
QUIET_P99 = 0.05


async def run(plane: Plane, operated: Operated, args: argparse.Namespace) -> None:
    async with plane.cluster.client() as client:
        target = await webhook(client, operated)
        quiet = checked(await paced(target, CONNECTIONS, RATE, 5.0))
        print(f"before the herd: {quiet.quantile(0.5) * 1000:.1f} ms p50, {quiet.quantile(0.99) * 1000:.1f} ms p99")
        await herd.home(client, population.NAMESPACE)
        opens = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(seconds=60 + args.margin)
        opens = opens.replace(second=0)
        schedule = population.opens_at(opens)
        given = [herd.scheduled_machine(number, schedule) for number in range(args.objects)]
        await herd.store(client, population.NAMESPACE, given)
        await operated.until("all at rest", lambda: operated.in_phase("Inactive") >= args.objects)
    if datetime.now(UTC) >= opens:
        raise SystemExit(f"storing took longer than {args.margin} s; the machine is busy, try a larger --margin")
    await asyncio.sleep((opens - datetime.now(UTC)).total_seconds())
    late, took = await during(target, operated, args.objects)
    print(f"during a herd that took {took:.1f} s: {quantile(late, 0.5) * 1000:.1f} ms p50, {max(late):.3f} s at most")
    bars = Bars()
    name = f"validating during a herd, p99 of {len(late)}"
    bars.at_most(name, quantile(late, 0.99), MOST_SECONDS, " s", firm=False)
    if quiet.quantile(0.99) > QUIET_P99:
        print("it was slow before the herd too: the machine is busy, and this says nothing")
    bars.settle()


async def webhook(client: Client, operated: Operated) -> Target:
    """The validating webhook, and the CA that API servers are configured to trust."""
    stored = await client.get(VALIDATING_WEBHOOKS, VALIDATING_NAME)
    bundle = base64.b64decode(stored["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    port = urlsplit(operated.operator.endpoints.webhooks).port
    assert port is not None
    return Target(port, names.VALIDATE_PATH, bundle, reviews(), server_name=LOOPBACK)


async def during(target: Target, operated: Operated, objects: int) -> tuple[list[float], float]:
    """Latencies until all machines are requested, and how many seconds that took."""
    latencies: list[float] = []
    started = asyncio.get_running_loop().time()
    while await asyncio.to_thread(operated.in_phase, "Active") < objects:
        latencies += checked(await paced(target, CONNECTIONS, RATE, SLICE_SECONDS)).latencies
    return latencies, asyncio.get_running_loop().time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, help="size of the herd (default 1000)")
    parser.add_argument("--margin", type=float, default=90.0, help="seconds for storing the herd (default 90)")
    args = parser.parse_args()
    with_operator(run, args)


if __name__ == "__main__":
    main()
