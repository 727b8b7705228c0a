"""A controller inside the test that a test stops or lets crash."""

import asyncio
from contextlib import suppress

from local.cluster import LocalCluster
from service.clock import SystemClock
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.settings import Settings
from service.sharding.fence import Fence

STOPS_WITHIN = 120.0


class Replica:
    """Each is a user of its own, so that the audit log distinguishes them."""

    def __init__(self, cluster: LocalCluster, user: str, settings: Settings, fence: Fence) -> None:
        self.user = user
        self.client = cluster.client(user)
        self.shared = Shared(settings=settings, client=self.client, clock=SystemClock())
        self.controller = Controller(self.shared, fence)
        self.task = asyncio.create_task(self.controller.run())

    async def stop(self) -> None:
        """As after SIGTERM."""
        self.shared.stopping.set()
        await asyncio.wait_for(self.task, STOPS_WITHIN)

    async def crash(self) -> None:
        """Without a farewell."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.client.close()
