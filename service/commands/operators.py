"""Reads from the Leases of shards whether an operator is running; for `5spot release`."""

import asyncio
from dataclasses import dataclass
from typing import Final

from service.kube.client import Client
from service.kube.resource import LEASES
from service.sharding.lease_store import SELECTOR

LOOK_EVERY: Final = 0.5


@dataclass(frozen=True, slots=True)
class Holder:
    """A replica that holds a Lease, or held it when it died."""

    lease: tuple[str, str]
    """Its namespace and name."""
    identity: str
    renewed: str
    seconds: float


Holders = dict[tuple[str, str], Holder]


async def holders(client: Client, namespace: str | None) -> Holders:
    """The holder of each Lease that is held, running or not."""
    found: Holders = {}
    for raw in await client.list(LEASES, namespace=namespace, labels=SELECTOR):
        spec = raw.get("spec") or {}
        lease = (raw["metadata"]["namespace"], raw["metadata"]["name"])
        if spec.get("holderIdentity"):
            seconds = float(spec.get("leaseDurationSeconds") or 0)
            found[lease] = Holder(lease, spec["holderIdentity"], spec.get("renewTime") or "", seconds)
    return found


async def running(client: Client, namespace: str | None, seen: Holders) -> list[Holder]:
    """The replicas that renew a Lease before it expires. No clock is compared with that of another machine."""
    longest = max((holder.seconds for holder in seen.values()), default=0.0)
    for _ in range(int(longest / LOOK_EVERY) + 1 if seen else 0):
        await asyncio.sleep(LOOK_EVERY)
        found = newly_renewed(seen, await holders(client, namespace))
        if found:
            return found
    return []


def newly_renewed(before: Holders, after: Holders) -> list[Holder]:
    """The replicas that took or renewed a Lease between two looks."""
    return [holder for lease, holder in after.items() if before.get(lease) != holder]
