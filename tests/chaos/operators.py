"""The operator behind the proxy: inside the test, crashed by cutting it off and throwing it away; or `5spot run`."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import httpx
import yaml

from local.access import OPERATOR
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.kube.client import Client
from service.kube.transport import Limits
from service.runtime.backoff import Backoff, Failures
from service.settings import Settings
from service.sharding.fence import Fence
from tests.chaos.rest import rest, unrest
from tests.chaos.stage import Stage
from tests.service.process import Process, started
from tests.waiting import until

IMPATIENT = Backoff(base=0.5, cap=2.0, jitter=0.2)
"""Instead of half a minute: the tests show that it tries again, not how long it waits."""
CALL_SECONDS = 6.0
LIMITS = Limits(call_seconds=CALL_SECONDS)
LEASES: dict[str, Any] = {"lease_seconds": 6.0, "lease_renew_seconds": 4.0, "lease_retry_seconds": 0.5}
START_SECONDS = 180.0
REST_SECONDS = 90.0
LOOK_EVERY = 0.7
WORK = ("fivespot_queue_depth ", "fivespot_reconciles_total{", "fivespot_api_requests_total{")
"""The metrics of a process that do not change while it has nothing to do, except for its Lease."""
NOT_WORK = 'resource="leases"'


class Operator(Protocol):
    """What a case does with an operator."""

    async def start(self) -> None: ...

    async def at_rest(self) -> None:
        """Waits until all that is due is done and reported; `RestlessError` if that takes too long."""
        ...

    async def bury(self) -> None:
        """Removes what is left of it after its death, without an orderly stop."""
        ...

    async def stop(self) -> None:
        """Stops it in order."""
        ...


class InProcess:
    """A controller in the loop of the test; with `fenced` it acts under a lease, as a real one does."""

    def __init__(self, stage: Stage, *, fenced: bool = False) -> None:
        self._stage = stage
        self._cluster = stage.cluster
        self._proxy = stage.proxy
        self._clock = stage.clock
        self._fenced = fenced
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        namespace = self._proxy.namespace
        settings = Settings(namespace=namespace, namespaces=(namespace,), webhooks=False, stop_seconds=2.0, **LEASES)
        self._client = Client.from_inline(
            self._proxy.url, ca=self._cluster.authority.pem, token=self._cluster.access.tokens[OPERATOR], limits=LIMITS
        )
        self._shared = Shared(settings=settings, client=self._client, clock=self._clock)
        self.controller = Controller(self._shared, Fence(1) if self._fenced else None)
        controller = self.controller
        for queue in (controller.queue, controller.calendars._queue, controller.overrides._queue):
            queue._failures = Failures(IMPATIENT)
        self._clock.on_move = self._wake_due
        self._task = asyncio.create_task(self.controller.run())
        async with asyncio.timeout(START_SECONDS):
            while self.controller.unready() is not None:
                if self._task.done():
                    return  # the fault ended it: the case notices that
                await asyncio.sleep(0.01)

    def _wake_due(self) -> None:
        self.controller.queue.wake_due()
        self.controller.overrides._queue.wake_due()

    async def bury(self) -> None:
        await self._end()

    async def stop(self) -> None:
        self._shared.stopping.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=10)
        await self._end()

    async def at_rest(self) -> None:
        await rest(self._unrest, REST_SECONDS)

    async def _unrest(self) -> str:
        stage = self._stage
        if stage.actor.is_busy(stage.namespace):
            return "Cluster API is at work"
        return await unrest(self.controller, stage.client, stage.namespace)

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._client.close()


class RealProcess:
    """`5spot run` as a child process; its clock starts at what the case's clock shows."""

    def __init__(self, stage: Stage) -> None:
        self._cluster = stage.cluster
        self._proxy = stage.proxy
        self._clock = stage.clock
        self._stack = AsyncExitStack()
        self.process: Process | None = None

    async def start(self) -> None:
        self._proxy.on_death = self.kill
        words = [
            f"--kubeconfig={self._kubeconfig()}",
            f"--namespace={self._proxy.namespace}",
            f"--namespaces={self._proxy.namespace}",
            "--no-webhooks",
            "--bind-address=127.0.0.1",
            "--health-port=0",
            "--metrics-port=0",
            "--drain-seconds=0",
            f"--at={self._clock.now().isoformat()}",
            *(f"--{name.replace('_', '-')}={value}" for name, value in LEASES.items()),
        ]
        self.process = process = await self._stack.enter_async_context(started(words))

        def is_up() -> bool:
            return process.child.returncode is not None or any(
                entry.get("event") == "shard acquired" for entry in process.events
            )

        await until(is_up, within=START_SECONDS)

    async def at_rest(self) -> None:
        """Reads its metrics; a process that hangs does not answer either."""
        seen = await self._work()

        async def unrest() -> str:
            nonlocal seen
            before = seen
            await asyncio.sleep(LOOK_EVERY)
            seen = await self._work()
            idle = seen == before and f"{WORK[0]}0.0" in seen
            return self._tries_again() or ("" if idle else f"at work: {set(seen) ^ set(before) or seen}")

        if self._is_alive:
            await rest(unrest, REST_SECONDS)

    @property
    def _is_alive(self) -> bool:
        return self.process is not None and self.process.child.returncode is None

    async def _work(self) -> list[str]:
        assert self.process is not None
        port = await self.process.port("metrics")
        async with httpx.AsyncClient(timeout=REST_SECONDS) as client:
            lines = (await client.get(f"http://127.0.0.1:{port}/metrics")).text.splitlines()
        return [line for line in lines if line.startswith(WORK) and NOT_WORK not in line]

    def _tries_again(self) -> str:
        """Reads its log: an object that failed and waits for its next attempt."""
        assert self.process is not None
        for entry in self.process.events:
            if entry.get("event") == "will try again" and entry["seconds"] < REST_SECONDS / 2:
                due = datetime.fromisoformat(entry["timestamp"]) + timedelta(seconds=entry["seconds"])
                if due + timedelta(seconds=LOOK_EVERY) > datetime.now(UTC):
                    return f"{entry['object']} failed and will be tried again"
        return ""

    def kill(self) -> None:
        """Kills the process at once, as the kernel does when memory is short."""
        if self.process is not None and self._is_alive:
            os.kill(self.process.child.pid, signal.SIGKILL)

    async def bury(self) -> None:
        assert self.process is not None
        code = await self.process.ended()
        assert code == -signal.SIGKILL, f"5spot run ended with {code}, not by SIGKILL"

    async def stop(self) -> None:
        if self.process is not None and self._is_alive:
            self.process.child.terminate()
            await self.process.ended()
        await self._stack.aclose()

    def _kubeconfig(self) -> Path:
        path = self._cluster.directory / f"{self._proxy.namespace}.kubeconfig"
        config = yaml.safe_load(self._cluster.access.kubeconfig(OPERATOR))
        config["clusters"][0]["cluster"]["server"] = self._proxy.url
        path.write_text(yaml.safe_dump(config))
        return path
