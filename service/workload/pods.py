"""Lists the pods on a Node; used where no watch of them can be relied on."""

import asyncio
from collections.abc import Callable
from typing import Final

from service.decide.world import Pod
from service.kube.client import Client
from service.kube.errors import Unavailable
from service.kube.resource import PODS
from service.objects import views
from service.workload.connection import PAGE

LIST_SECONDS: Final = 30.0
MOST_PODS: Final = 5000
"""Ten times as many as a Node can have."""


async def pods_on(client: Callable[[], Client], node: str) -> tuple[Pod, ...]:
    """The pods on a Node, sorted by name; `Unavailable` for a list that does not end: it would occupy a worker."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return await _listed(client(), node)
    except TimeoutError:
        raise Unavailable(f"the list of the pods on Node {node} does not end") from None


async def _listed(client: Client, node: str) -> tuple[Pod, ...]:
    found: list[Pod] = []
    more: str | None = None
    while len(found) <= MOST_PODS:
        page = await client.list_page(PODS, fields=f"spec.nodeName={node}", limit=PAGE, more=more)
        found += views.pods(page.items)
        more = page.more
        if more is None:
            return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))
    raise Unavailable(f"the list of the pods on Node {node} does not end")
