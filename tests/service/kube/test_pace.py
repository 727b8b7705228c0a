"""How fast a server may talk; time is moved by hand."""

import asyncio

from service.kube import pace
from service.kube.pace import ALL_UNITS_PER_SECOND, BURST_UNITS, UNITS_PER_SECOND, Limited, Pace, WatchThrottle, units


class Time:
    """A clock that moves when one sleeps."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds

    def throttle(self):
        return WatchThrottle(monotonic=self.monotonic, sleep=self.sleep)


async def test_a_cluster_that_says_little_is_never_slowed_down():
    time = Time()
    limited = Limited(time.throttle())
    for _ in range(int(BURST_UNITS)):
        await limited.spent(1.0)
    assert time.now == 0.0
    for _ in range(10_000):
        time.now += 1.1 / UNITS_PER_SECOND
        before = time.now
        await limited.spent(1.0)
        assert time.now == before


async def test_a_cluster_that_never_stops_is_read_at_its_share():
    time = Time()
    limited = Limited(time.throttle())
    for _ in range(int(BURST_UNITS + 10 * UNITS_PER_SECOND)):
        await limited.spent(1.0)
    assert abs(time.now - 10.0) < 0.1


async def test_large_events_count_for_more():
    assert units(b"x") < 1.01
    assert units(b"x" * 4 * 1024 * 1024) == 257
    assert units(b"," * 50_000) > 98


async def test_all_that_never_stop_share_what_there_is():
    throttle = Time().throttle()
    assert throttle.units_per_second == UNITS_PER_SECOND
    throttle.waiting = 10
    assert throttle.units_per_second == ALL_UNITS_PER_SECOND / 10


async def test_a_watch_that_always_has_something_to_do_lets_others_have_their_turn(monkeypatch):
    monkeypatch.setattr(pace, "TURN_SECONDS", 0.0)
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    mine = Pace()
    for _ in range(100):
        await mine.spent(1.0)
    task.cancel()
    assert turns >= 100
