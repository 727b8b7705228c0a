"""What the webhooks ask the API server about a namespace: reviews may be made up, and by many at once."""

import asyncio
from typing import Any, cast

import pytest

from service.http.tenancy import AT_ONCE, labels_of
from service.kube.client import Client
from service.kube.resource import Resource
from tests.waiting import until


class Counting:
    """An API server that answers when it is told to, and counts who waits for it."""

    def __init__(self) -> None:
        self.waiting = self.most = self.asked = 0
        self.answers = asyncio.Event()

    async def get(self, _resource: Resource, name: str) -> dict[str, Any]:
        self.asked += 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await self.answers.wait()
        self.waiting -= 1
        return {"metadata": {"name": name, "labels": {"team": name}}}


async def test_made_up_namespaces_do_not_take_all_connections_to_the_api_server():
    server, turns = Counting(), asyncio.Semaphore(AT_ONCE)
    reviews = [asyncio.create_task(labels_of(cast("Client", server), f"n{each}", turns)) for each in range(100)]
    await until(lambda: server.waiting == AT_ONCE)
    server.answers.set()
    assert await asyncio.gather(*reviews) == [{"team": f"n{each}"} for each in range(100)]
    assert (server.most, server.asked) == (AT_ONCE, 100)


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "x" * 64, "a\nb"])
async def test_the_api_server_is_not_asked_for_what_cannot_be_a_namespace(name: str):
    server = Counting()
    assert await labels_of(cast("Client", server), name, asyncio.Semaphore(1)) == {}
    assert not server.asked
