"""The operator inside a test: on the real control plane, in the test's own loop, with a clock that the test moves."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.kube.client import Client, PatchKind
from service.kube.credentials import Credentials
from service.kube.resource import EVENTS, SCHEDULED_MACHINES, Resource
from service.kube.transport import Call
from service.settings import Settings
from tests import accounts, watching
from tests.e2e.manifests import HOLD, condition, machine

Raw = dict[str, Any]
WITHIN = 90.0
CHILDREN = {"machine": MACHINES, "bootstrap": BOOTSTRAPS, "infra": HOSTS}
"""The three objects of a machine, by the ends of their names."""


class MovableClock:
    """Runs like a real one, or so many times as fast, from wherever the test puts it."""

    def __init__(self, at: datetime, speed: float = 1.0) -> None:
        self._speed = speed
        self._settings: list[tuple[datetime, datetime]] = [(datetime.now(UTC), at)]
        self.on_move: Callable[[], None] = lambda: None

    def now(self) -> datetime:
        return self.shown_at(datetime.now(UTC))

    def real_seconds(self, span: timedelta) -> float:
        return span.total_seconds() / self._speed

    def shown_at(self, real: datetime) -> datetime:
        """By the last setting before that instant; a time stamp of an API server is up to a second early."""
        passed = [one for one in self._settings if one[0] <= real]
        since, shown = passed[-1] if passed else self._settings[0]
        return shown + (real - since) * self._speed

    def move_to(self, at: datetime) -> None:
        self._settings.append((datetime.now(UTC), at))
        self.on_move()

    def advance(self, span: timedelta) -> None:
        self.move_to(self.now() + span)


@dataclass
class Operator:
    """A running controller, a client of the test's own to look at what it does, and the calls that it made."""

    client: Client
    clock: MovableClock
    controller: Controller
    namespace: str
    calls: list[Call] = field(default_factory=list)
    on_call: Callable[[Call], None] = lambda _call: None

    def called(self, call: Call) -> None:
        self.calls.append(call)
        self.on_call(call)

    # The ScheduledMachine

    async def apply(self, body: Raw) -> Raw:
        """Creates it; without an address it gets a host of its own."""
        spec = body["spec"]["infrastructureSpec"]["spec"]
        spec.setdefault("address", f"{body['metadata']['name']}.{self.namespace}")
        return await self.client.create(SCHEDULED_MACHINES, body, namespace=self.namespace, field_manager="kubectl")

    async def get(self, name: str) -> Raw:
        return await self.read(SCHEDULED_MACHINES, name)

    async def edit(self, name: str, body: Raw) -> Raw:
        return await self.change(SCHEDULED_MACHINES, name, body, field_manager="kubectl-edit")

    async def edit_spec(self, name: str, **spec: Any) -> Raw:
        return await self.edit(name, {"spec": spec})

    async def delete(self, name: str, propagation: str | None = None) -> None:
        await self.client.delete(SCHEDULED_MACHINES, name, namespace=self.namespace, propagation=propagation)

    async def until(self, name: str, fact: Callable[[Raw], Any], within: float = WITHIN) -> Raw:
        """Waits until the object's status satisfies `fact`."""
        seen = await self.until_object(SCHEDULED_MACHINES, name, lambda raw: fact(raw.get("status") or {}), within)
        return seen.get("status") or {}

    async def phase(self, name: str, phase: str, reason: str | None = None, within: float = WITHIN) -> Raw:
        """Waits for a phase, and for the reason that Ready gives."""

        def there(status: Raw) -> bool:
            return status.get("phase") == phase and reason in (None, condition(status, "Ready").get("reason"))

        return await self.until(name, there, within)

    async def ready(self, name: str, within: float = WITHIN) -> Raw:
        """Waits until the machine is in service."""
        return await self.until(name, lambda status: condition(status, "Ready").get("status") == "True", within)

    async def in_service(self, **spec: Any) -> str:
        """A machine that runs; returns its Node."""
        await self.apply(machine(**spec))
        return str((await self.ready("worker"))["nodeRef"]["name"])

    async def gone(self, name: str, within: float = WITHIN) -> None:
        await self.absent(SCHEDULED_MACHINES, name, within)

    async def events(self, name: str) -> Counter[str]:
        """How many Events of each reason the object has; waits until all recorded Events are sent."""
        return Counter(event["reason"] for event in await self.event_objects(name))

    async def event_objects(self, name: str) -> list[Raw]:
        await self.at_rest()
        listed = await self.client.list(EVENTS, namespace=self.namespace, fields=f"regarding.name={name}")
        return sorted(listed, key=lambda event: event["eventTime"])

    async def at_rest(self) -> None:
        """Waits until no pass is due and all Events are sent; earlier writes of others must have reached the caches."""
        async with asyncio.timeout(WITHIN):
            while is_busy(self.controller):
                await asyncio.sleep(0.01)
                await self.controller.events.idle.wait()
            await self.controller.events.idle.wait()

    # What it is made of

    async def read(self, resource: Resource, name: str) -> Raw:
        return await self.client.get(resource, name, namespace=self.namespace)

    async def change(self, resource: Resource, name: str, body: Raw, **options: Any) -> Raw:
        chosen = {"field_manager": "another-client", **options}
        return await self.client.patch(resource, name, body, namespace=self.namespace, **chosen)

    async def remove(self, resource: Resource, name: str) -> None:
        await self.client.delete(resource, name, namespace=self.namespace)

    async def until_object(
        self, resource: Resource, name: str, fact: Callable[[Raw], Any], within: float = WITHIN
    ) -> Raw:
        return await watching.until(self.client, resource, name, fact, namespace=self.namespace, within=within)

    async def absent(self, resource: Resource, name: str, within: float = WITHIN) -> None:
        await watching.until_gone(self.client, resource, name, namespace=self.namespace, within=within)

    async def children(self, name: str) -> dict[str, Raw]:
        """The three objects, by the ends of their names."""
        return {end: await self.read(resource, f"{name}-{end}") for end, resource in CHILDREN.items()}

    async def childless(self, name: str) -> None:
        """Waits until all three are gone."""
        for end, resource in CHILDREN.items():
            await self.absent(resource, f"{name}-{end}")

    async def hold(self, resource: Resource, name: str, *, finalizers: tuple[str, ...] = (HOLD,)) -> None:
        """Another controller holds the object with a finalizer."""
        body = {**resource.envelope(), "metadata": {"name": name, "finalizers": list(finalizers)}}
        await self.change(resource, name, body, kind=PatchKind.APPLY, field_manager="holder", force=True)

    async def let_go(self, resource: Resource, name: str) -> None:
        await self.hold(resource, name, finalizers=())


def is_busy(controller: Controller) -> bool:
    """Whether anything is due or in work."""
    controller.queue.wake_due()  # what has just become due counts, though no worker has woken up for it yet
    return bool(controller.queue.depth or controller.queue.running)


@asynccontextmanager
async def operating(
    client: Client,
    namespace: str,
    at: datetime,
    *,
    also: tuple[str, ...] = (),
    credentials: Credentials | None = None,
    speed: float = 1.0,
    **settings: Any,
) -> AsyncIterator[Operator]:
    """A controller for one namespace, until the block ends; it has a connection of its own, whose calls are counted.

    Without other credentials it is its own ServiceAccount, with the chart's roles, where those are installed.
    """
    clock = MovableClock(at, speed)
    chosen = Settings(namespaces=(namespace, *also), webhooks=False, stop_seconds=1.0, **settings)
    async with Client(client.transport.endpoint, credentials or accounts.credentials(client)) as own:
        shared = Shared(settings=chosen, client=own, clock=clock)
        controller = Controller(shared)
        clock.on_move = controller.queue.wake_due
        operator = Operator(client, clock, controller, namespace)
        _also(own, operator.called)
        async with running(controller, shared):
            yield operator


@asynccontextmanager
async def running(controller: Controller, shared: Shared) -> AsyncIterator[None]:
    """A controller that has started, until the block ends."""
    task = asyncio.create_task(controller.run())
    try:
        await _started(controller, task)
        yield
    finally:
        shared.stopping.set()
        await asyncio.wait((task,), timeout=5)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _also(client: Client, listener: Callable[[Call], None]) -> None:
    first = client.transport.on_call

    def both(call: Call) -> None:
        if first is not None:
            first(call)
        listener(call)

    client.observe_calls(both)


async def _started(controller: Controller, task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(90):
        while controller.unready() is not None:
            if task.done():
                await task
            await asyncio.sleep(0.02)
