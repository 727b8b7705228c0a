"""The operator behind the proxy: inside the test, crashed by cutting it off and throwing it away; or `5spot run`."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Protocol

import yaml

from local.access import OPERATOR
from local.cluster import Cluster
from service.app import Shared
from service.controller import Controller
from service.fence import Fence
from service.kube.client import Client
from service.kube.transport import Limits
from service.runtime.backoff import Backoff, Failures
from service.settings import Settings
from tests.chaos.proxy import Proxy
from tests.e2e.operator import MovableClock
from tests.service.process import Process, started
from tests.waiting import until

IMPATIENT = Backoff(base=0.5, cap=2.0, jitter=0.2)
"""In place of half a minute: what is proven is that it tries again, not how long it waits."""
CALL_SECONDS = 6.0
LIMITS = Limits(call_seconds=CALL_SECONDS)
LEASES = {"lease_seconds": 3.0, "lease_renew_seconds": 2.0, "lease_retry_seconds": 0.4}
START_SECONDS = 90.0


class Operator(Protocol):
    """What a case does with it."""

    async def start(self) -> None: ...

    async def at_rest(self) -> None:
        """Waits until all that is due has been done and told."""
        ...

    async def bury(self) -> None:
        """After its death: nothing of it is left, and nothing was put in order."""
        ...

    async def stop(self) -> None:
        """In good order."""
        ...


class InProcess:
    """A controller in the loop of the test; with `fenced` it acts under a lease, as a real one does."""

    def __init__(self, cluster: Cluster, proxy: Proxy, clock: MovableClock, *, fenced: bool = False) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self._clock = clock
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
        self.controller.queue._failures = Failures(IMPATIENT)
        self._clock.on_move = self.controller.queue.recheck
        self._task = asyncio.create_task(self.controller.run())
        async with asyncio.timeout(START_SECONDS):
            while self.controller.unready() is not None:
                if self._task.done():
                    return  # it died of the fault, which the case will find out
                await asyncio.sleep(0.01)

    async def bury(self) -> None:
        await self._end()

    async def stop(self) -> None:
        self._shared.stopping.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=10)
        await self._end()

    async def at_rest(self) -> None:
        """Waits until all that is due has been done and told."""
        queue, events = self.controller.queue, self.controller.events

        def is_at_rest() -> bool:
            failing = queue._failures._counts
            return not (queue.depth or queue.running or failing) and events.idle.is_set() and self._is_connected()

        await until(is_at_rest, within=START_SECONDS)

    def _is_connected(self) -> bool:
        """Whether all watches are well; those of workload clusters too, as far as they are needed."""
        watches, workloads = self.controller.watches, self.controller.workloads
        informers = (watches.scheduled, watches.machines, watches.clusters, *watches._kinds.values())
        well = all(informer.error is None for informer in informers if informer is not None)
        return well and all(
            cluster.state.reachable for key, cluster in workloads._open.items() if workloads.holders(key)
        )

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._client.close()


class RealProcess:
    """`5spot run` as a child process; its clock starts at what the case's clock shows."""

    def __init__(self, cluster: Cluster, proxy: Proxy, clock: MovableClock) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self._clock = clock
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
        """Nobody can look into it: time enough to look at a few objects."""
        await asyncio.sleep(1.0)

    def kill(self) -> None:
        """At once, as the kernel does it when memory is short."""
        if self.process is not None and self.process.child.returncode is None:
            os.kill(self.process.child.pid, signal.SIGKILL)

    async def bury(self) -> None:
        assert self.process is not None
        code = await self.process.ended()
        assert code == -signal.SIGKILL, f"5spot run ended with {code}, not by SIGKILL"

    async def stop(self) -> None:
        if self.process is not None and self.process.child.returncode is None:
            self.process.child.terminate()
            await self.process.ended()
        await self._stack.aclose()

    def _kubeconfig(self) -> Path:
        path = self._cluster.directory / f"{self._proxy.namespace}.kubeconfig"
        config = yaml.safe_load(self._cluster.access.kubeconfig(OPERATOR))
        config["clusters"][0]["cluster"]["server"] = self._proxy.url
        path.write_text(yaml.safe_dump(config))
        return path
