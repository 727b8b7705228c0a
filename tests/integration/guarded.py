"""A controller inside the test that watches a few namespaces, and every request that it makes."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from local import access
from local.cluster import LocalCluster
from local.provider.kinds import CLUSTERS
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.kube.client import Client
from service.kube.resource import NAMESPACES, SCHEDULED_MACHINES
from service.kube.transport import Request
from service.settings import Settings
from service.sharding.fence import Fence
from tests.e2e.operator import MovableClock, is_busy, running
from tests.waiting import until

Raw = dict[str, Any]
WITHIN = 90.0


@dataclass
class Guarded:
    """A running controller, the test's own connection, and what the controller asked for."""

    client: Client
    clock: MovableClock
    controller: Controller
    requests: list[Request] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    """When each of them was made."""

    def phases(self, phase: str) -> int:
        """How many ScheduledMachines are in a phase, as far as the controller knows."""
        return self.controller.watches.scheduled.count_by("phase", phase)

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.requests if request.body is not None]

    async def status(self, namespace: str, name: str) -> Raw:
        raw = await self.client.get(SCHEDULED_MACHINES, name, namespace=namespace)
        return raw.get("status") or {}

    async def until(self, namespace: str, name: str, fact: Any) -> Raw:
        async def there() -> Raw | None:
            status = await self.status(namespace, name)
            return status if fact(status) else None

        return await until(there, within=WITHIN)

    async def at_rest(self) -> None:
        await until(lambda: not is_busy(self.controller), within=WITHIN)
        await asyncio.wait_for(self.controller.events.idle.wait(), WITHIN)


async def home(client: Client, prefix: str, *, cluster: str | None = "demo") -> str:
    """A namespace of its own, with a Cluster."""
    name = f"{prefix}-{secrets.token_hex(3)}"
    await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": name}})
    if cluster is not None:
        body = {**CLUSTERS.envelope(), "metadata": {"name": cluster}, "spec": {"paused": False}}
        await client.create(CLUSTERS, body, namespace=name)
    return name


@asynccontextmanager
async def guarded(
    cluster: LocalCluster, namespaces: tuple[str, ...], at: datetime, *, url: str = "", **more: Any
) -> AsyncIterator[Guarded]:
    """The controller for these namespaces; `url` is a detour to the API server, `more` are settings.

    With a `namespace` of its own it keeps a lease there.
    """
    async with cluster.client() as client, cluster.client(access.OPERATOR) as own:
        if url:
            own.transport.endpoint = replace(own.transport.endpoint, server=url)
        clock = MovableClock(at)
        settings = Settings(namespaces=namespaces, webhooks=False, stop_seconds=1.0, **more)
        shared = Shared(settings=settings, client=own, clock=clock)
        made = Guarded(client, clock, Controller(shared, Fence(1) if "namespace" in more else None))
        record(own, made)
        clock.on_move = made.controller.queue.wake_due
        async with running(made.controller, shared):
            yield made


def record(client: Client, log: Guarded) -> None:
    """Takes down every request before it is sent, watches as well."""
    call, stream = client.transport.call, client.transport.stream

    def note(request: Request) -> None:
        log.requests.append(request)
        log.moments.append(time.monotonic())

    async def recorded_call(request: Request) -> bytes:
        note(request)
        return await call(request)

    def recorded_stream(request: Request, *, idle_seconds: float) -> Any:
        note(request)
        return stream(request, idle_seconds=idle_seconds)

    client.transport.call = recorded_call  # type: ignore[method-assign]
    client.transport.stream = recorded_stream  # type: ignore[method-assign]
