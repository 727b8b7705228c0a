import asyncio
import time

import pytest

from service.controller import availability
from service.controller.availability import Availability
from service.kube.errors import Unavailable
from service.kube.transport import Call
from tests.waiting import running, until


class Server:
    """An API server as seen from afar: it answers or not, and counts how often it was asked."""

    def __init__(self):
        self.up = True
        self.asked = 0
        self.recovered = 0
        self.reach = Availability(self.ask, self.on_recovered)

    def on_recovered(self):
        self.recovered += 1

    async def ask(self):
        self.asked += 1
        self.call(200 if self.up else 0)
        if not self.up:
            raise Unavailable("away")

    def call(self, status, times=1):
        for _ in range(times):
            self.reach.note(Call("get", "machines", status, 0.01))

    async def gets_through(self):
        try:
            await asyncio.wait_for(self.reach.wait(), 0.02)
        except TimeoutError:
            return False
        return True


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(availability, "ASK_SECONDS", 0.02)
    monkeypatch.setattr(availability, "QUIET_SECONDS", 0.1)
    return Server()


async def test_one_call_without_an_answer_stops_nobody(server):
    server.call(0, times=2)
    server.call(200)
    server.call(0, times=2)
    assert await server.gets_through()


async def test_while_nothing_answers_work_waits_and_somebody_asks_now_and_then(server):
    server.up = False
    async with running(server.reach.run()):
        server.call(0, times=3)
        assert server.reach.away
        assert not await server.gets_through()
        await until(lambda: server.asked > 3)
        assert not await server.gets_through()
        server.up = True
        await server.reach.wait()
        await until(lambda: server.recovered)


async def test_errors_stop_nobody_and_when_they_are_over_that_is_told_once(server):
    async with running(server.reach.run()):
        server.call(503, times=20)
        assert await server.gets_through()
        await until(lambda: server.recovered)
        await asyncio.sleep(0.2)
        assert server.recovered == 1
        assert server.asked == 0, "nobody asks a server that answers"


async def test_what_fails_again_as_soon_as_it_is_tried_is_left_to_its_back_off(server):
    """Such as a webhook of somebody's provider that is never there."""

    def fail_again():
        server.on_recovered()
        server.call(500)

    server.reach = Availability(server.ask, fail_again)
    started = time.monotonic()
    async with running(server.reach.run()):
        server.call(500)
        await until(lambda: server.recovered == 4)
    assert time.monotonic() - started >= (1 + 2 + 4 + 8) * availability.QUIET_SECONDS


async def test_an_answer_that_does_not_come_counts_as_none(server, monkeypatch):
    monkeypatch.setattr(availability, "ASK_PATIENCE", 0.02)
    server.ask = lambda: asyncio.sleep(60)
    server.reach = Availability(server.ask, server.on_recovered)
    async with running(server.reach.run()):
        server.call(0, times=3)
        await asyncio.sleep(0.3)
        assert server.reach.away
        assert not server.recovered


async def test_whoever_waits_is_let_go_at_the_end(server):
    server.call(0, times=3)
    server.reach.release()
    assert await server.gets_through()
