import asyncio
import time

import pytest

from service.controller import availability
from service.controller.availability import Availability
from service.kube.errors import Unavailable
from service.kube.transport import Call
from tests.waiting import running, until


class Server:
    """An API server that answers or does not, and counts the probes."""

    def __init__(self):
        self.up = True
        self.probes = 0
        self.recovered = 0
        self.availability = Availability(self.probe, self.on_recovered)

    def on_recovered(self):
        self.recovered += 1

    async def probe(self):
        self.probes += 1
        self.call(200 if self.up else 0)
        if not self.up:
            raise Unavailable("no answer")

    def call(self, status, times=1):
        for _ in range(times):
            self.availability.record(Call("get", "machines", status, 0.01))

    async def lets_work_through(self):
        try:
            await asyncio.wait_for(self.availability.wait(), 0.02)
        except TimeoutError:
            return False
        return True


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(availability, "PROBE_SECONDS", 0.02)
    monkeypatch.setattr(availability, "RECOVERY_SECONDS", 0.1)
    return Server()


async def test_single_calls_without_an_answer_do_not_stop_work(server):
    server.call(0, times=2)
    server.call(200)
    server.call(0, times=2)
    assert await server.lets_work_through()


async def test_while_the_api_server_does_not_answer_work_waits_and_a_loop_probes(server):
    server.up = False
    async with running(server.availability.run()):
        server.call(0, times=3)
        assert server.availability.unavailable
        assert not await server.lets_work_through()
        await until(lambda: server.probes > 3)
        assert not await server.lets_work_through()
        server.up = True
        await server.availability.wait()
        await until(lambda: server.recovered)


async def test_errors_do_not_stop_work_and_their_end_is_reported_once(server):
    async with running(server.availability.run()):
        server.call(503, times=20)
        assert await server.lets_work_through()
        await until(lambda: server.recovered)
        await asyncio.sleep(0.2)
        assert server.recovered == 1
        assert server.probes == 0, "a server that answers needs no probe"


async def test_objects_that_fail_again_at_once_are_left_to_their_back_off(server):
    """Such as calls to a provider's webhook that is never available."""

    def fail_again():
        server.on_recovered()
        server.call(500)

    server.availability = Availability(server.probe, fail_again)
    started = time.monotonic()
    async with running(server.availability.run()):
        server.call(500)
        await until(lambda: server.recovered == 4)
    assert time.monotonic() - started >= (1 + 2 + 4 + 8) * availability.RECOVERY_SECONDS


async def test_a_probe_that_times_out_counts_as_unanswered(server, monkeypatch):
    monkeypatch.setattr(availability, "PROBE_TIMEOUT", 0.02)
    server.probe = lambda: asyncio.sleep(60)
    server.availability = Availability(server.probe, server.on_recovered)
    async with running(server.availability.run()):
        server.call(0, times=3)
        await asyncio.sleep(0.3)
        assert server.availability.unavailable
        assert not server.recovered


async def test_a_stop_ends_every_wait(server):
    server.call(0, times=3)
    server.availability.release()
    assert await server.lets_work_through()
