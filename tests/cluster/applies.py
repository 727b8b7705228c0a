"""A user who never stops applying: what is refused meanwhile is what an outage of the webhooks looks like."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from service.kube.client import Client, PatchKind
from service.kube.errors import KubeError
from service.kube.resource import SCHEDULED_MACHINES
from tests.cluster.site import Site
from tests.e2e.manifests import machine

NAME = "applied"
EVERY = 0.2


@dataclass
class Applies:
    """How many went well, and what was said of the others."""

    done: int = 0
    refused: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    async def run(self, site: Site) -> None:
        async with site.cluster.client() as client:
            while not self.over.is_set():
                await self._apply(client)
                await asyncio.sleep(EVERY)
            await client.delete(SCHEDULED_MACHINES, NAME, namespace="default")

    async def _apply(self, client: Client) -> None:
        body = machine(NAME, schedule={"cron": "0 0 29 2 *"}, priority=self.done % 100)
        try:
            await client.patch(
                SCHEDULED_MACHINES, NAME, body, kind=PatchKind.APPLY, namespace="default", field_manager="user"
            )
        except KubeError as error:
            self.refused.append(error.message)
        else:
            self.done += 1


@contextmanager
def applying(site: Site) -> Iterator[Applies]:
    """Applies one object, each time a little different, a few times a second within the block."""
    applies = Applies()
    thread = threading.Thread(target=lambda: asyncio.run(applies.run(site)))
    thread.start()
    try:
        yield applies
    finally:
        applies.over.set()
        thread.join()
