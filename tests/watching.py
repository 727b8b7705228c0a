"""Waits for objects on a real API server by watching them; nothing here polls or sleeps."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from service.kube.client import Client
from service.kube.resource import Resource

WITHIN = 90.0
Object = dict[str, Any]


async def until(
    client: Client,
    resource: Resource,
    name: str,
    true: Callable[[Object], object],
    *,
    namespace: str | None = None,
    within: float = WITHIN,
) -> Object:
    """The object as soon as `true` holds for it; it may not exist yet. A time-out shows how it looked last."""
    last: Object | None = None
    try:
        async with asyncio.timeout(within):
            async with aclosing(versions(client, resource, name, namespace)) as seen:
                async for found in seen:
                    last = found or last
                    if found is not None and true(found):
                        return found
    except TimeoutError:
        pass
    raise AssertionError(f"{resource.kind} {name} did not get there within {within} s; it looked like this: {last}")


async def until_gone(
    client: Client, resource: Resource, name: str, *, namespace: str | None = None, within: float = WITHIN
) -> None:
    """Returns when there is no such object."""
    last: Object | None = None
    try:
        async with asyncio.timeout(within):
            async with aclosing(versions(client, resource, name, namespace)) as seen:
                async for found in seen:
                    last = found or last
                    if found is None:
                        return
    except TimeoutError:
        pass
    raise AssertionError(f"{resource.kind} {name} was still there after {within} s: {last}")


async def versions(client: Client, resource: Resource, name: str, namespace: str | None):
    """The object now and after each change, None while it does not exist; ends with the server's patience."""
    fields = f"metadata.name={name}"
    page = await client.list_page(resource, namespace=namespace, fields=fields)
    yield page.items[0] if page.items else None
    # With a connection of its own that is closed before the stream is: so no TLS farewell outlives the test's loop.
    own = Client(client.transport.endpoint, client.transport.credentials)
    async with aclosing(own.watch(resource, page.resource_version, namespace=namespace, fields=fields)) as changes, own:
        async for change in changes:
            if change.type != "BOOKMARK":
                yield None if change.type == "DELETED" else change.object
