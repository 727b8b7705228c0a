"""A server whose events never stop: others have their turn, and it is read at its own pace. Counts events, not time."""

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from service.kube import pace
from service.kube.client import Client
from service.kube.pace import BURST_UNITS, Limited, WatchThrottle
from service.kube.resource import NODES
from service.runtime.cache import Cache
from service.runtime.watch import ListWatch, Reflector
from tests.waiting import running, until

CHUNK = 1_000


class Endless:
    """Content that is always there: reading it never waits."""

    def __init__(self):
        self.sent = 0

    async def pieces(self):
        for version in count(2, CHUNK):
            self.sent += CHUNK
            yield b"".join(
                b'{"type":"MODIFIED","object":{"metadata":{"name":"n","uid":"u","resourceVersion":"%d"}}}\n' % number
                for number in range(version, version + CHUNK)
            )


def noisy_client():
    client, content = Client.from_inline("https://127.0.0.1:1"), Endless()

    @asynccontextmanager
    async def stream(_request, *, idle_seconds):
        yield content.pieces()

    async def call(_request):
        return b'{"metadata":{"resourceVersion":"1"},"items":[]}'

    transport: Any = client.transport
    transport.stream, transport.call = stream, call
    return client, content


async def test_others_have_their_turn_beside_a_watch_that_never_waits(monkeypatch):
    monkeypatch.setattr(pace, "TURN_SECONDS", 0.0)
    client, _ = noisy_client()
    cache = Cache()
    async with client, running(Reflector(ListWatch(client, NODES), cache).run()):
        await until(lambda: cache.newest > 1)
        for _ in range(20):
            before = cache.newest
            await asyncio.sleep(0)
            assert cache.newest - before <= 2, "an event or two, then the others"


async def test_a_cluster_that_never_stops_gets_its_burst_and_then_waits_for_its_share():
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        await asyncio.Event().wait()

    client, content = noisy_client()
    client.pace = Limited(WatchThrottle(monotonic=lambda: 0.0, sleep=sleep))
    cache = Cache()
    async with client, running(Reflector(ListWatch(client, NODES), cache).run()):
        await until(lambda: slept)
        assert BURST_UNITS * 0.9 < cache.newest <= BURST_UNITS
        assert content.sent <= BURST_UNITS + CHUNK, "what is not read stays with the server"
