"""What the webhooks ask the API server about a namespace: reviews may be made up, and by many at once."""

import asyncio
from typing import Any, cast

import pytest

from crds.providers import DEFAULT_POLICY
from service.http.tenancy import AT_ONCE, class_lookups, labels_of
from service.kube.client import Client
from service.kube.errors import Forbidden
from service.kube.resource import Resource
from service.observe.classes import ClassStore
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


async def test_a_namespace_is_asked_for_while_the_list_of_them_is_refused():
    """The next attempt to list may be minutes away: until then the label that demands a class must not go unseen."""
    server = Counting()
    server.answers.set()
    store = ClassStore(Client.from_inline("https://127.0.0.1:1", token="t"), DEFAULT_POLICY)
    for reflector in store._namespaces._reflectors.values():
        reflector.failed(Forbidden("namespaces is forbidden"))
    lookups = class_lookups(cast("Client", server), store, lambda _name: None)
    assert lookups.labels("team-a") is None
    assert await lookups.ask("team-a") == {"team": "team-a"}
