"""What may be written, and until when."""

import asyncio
import time
from typing import Any

import pytest

from service.runtime.key import Key
from service.sharding.fence import Fence, NoFence, ShardNotHeldError, boottime
from service.sharding.shard import Shard

KEY = Key("default", "one")


@pytest.fixture
def fence(now):
    now.at = 50.0
    return Fence(3, now)


def test_nothing_is_ours_before_a_lease_is_held(fence):
    assert not fence.owns(KEY)
    with fence.acting_for(KEY), pytest.raises(ShardNotHeldError, match="default/one"):
        fence.check()


def test_a_shard_is_ours_until_its_lease_runs_out(fence, now):
    fence.extend(fence.shard(KEY), 60.0)
    with fence.acting_for(KEY):
        fence.check()
        now.at = 59.99
        fence.check()
        now.at = 60.0
        with pytest.raises(ShardNotHeldError):
            fence.check()


def test_how_long_a_shard_is_ours_counts_from_when_it_was_taken_and_not_from_a_renewal(fence, now):
    shard = fence.shard(KEY)
    fence.extend(shard, 60.0)
    now.at = 55.0
    fence.extend(shard, 65.0)
    assert fence.held_for(KEY) == 5.0
    now.at = 70.0
    fence.extend(shard, 80.0)
    assert fence.held_for(KEY) == 0.0, "it had run out"
    fence.drop(shard)
    now.at = 72.0
    fence.extend(shard, 80.0)
    assert fence.held_for(KEY) == 0.0, "it had been given up"


def test_a_single_replica_without_leases_has_always_held_its_shard():
    assert NoFence().held_for(KEY) == float("inf")


def test_a_shard_that_was_given_up_is_refused_at_once(fence):
    fence.extend(fence.shard(KEY), 60.0)
    fence.drop(fence.shard(KEY))
    with fence.acting_for(KEY), pytest.raises(ShardNotHeldError):
        fence.check()


def test_holding_one_shard_says_nothing_about_another(fence):
    others = [Shard(n, 3) for n in range(3) if Shard(n, 3) != fence.shard(KEY)]
    for other in others:
        fence.extend(other, 60.0)
    assert not fence.owns(KEY)


def test_what_is_written_for_no_object_passes(fence):
    fence.check()


async def test_what_a_pass_starts_beside_itself_is_checked_too(fence):
    async def write():
        fence.check()

    with fence.acting_for(KEY):
        results = await asyncio.gather(write(), write(), return_exceptions=True)
    assert all(isinstance(result, ShardNotHeldError) for result in results)


def test_a_shard_is_busy_while_a_pass_over_one_of_its_objects_runs(fence):
    shard = fence.shard(KEY)
    with fence.acting_for(KEY):
        assert fence.busy(shard)
    assert not fence.busy(shard)


def test_the_status_shows_the_shard_as_its_lease_is_named(fence):
    assert fence.shard(KEY).lease_name == f"5spot-shard-{fence.shown(KEY)}"


def test_without_leases_everything_is_ours_and_no_shard_is_shown():
    fence = NoFence()
    assert fence.owns(KEY)
    assert fence.shown(KEY) is None
    with fence.acting_for(KEY):
        fence.check()


def test_the_clock_runs_on_while_the_machine_is_suspended(monkeypatch):
    assert 0 < boottime() <= boottime()
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_MONOTONIC: 5.0, time.CLOCK_BOOTTIME: 65.0}.__getitem__)
    assert boottime() == 65.0


class Watcher:
    def __init__(self):
        self.watched = []

    def watch(self, at):
        self.watched.append(at)


def test_the_watchdog_is_armed_to_end_the_process_before_others_may_act(now):
    watchdog: Any = Watcher()
    fence = Fence(3, now, watchdog)
    fence.extend(fence.shard(KEY), 110.0, others_from=115.0)
    with fence.acting_for(KEY):
        fence.check()
    assert watchdog.watched == [112.5]


def test_an_expired_lease_refuses_a_write_without_arming_the_watchdog(now):
    watchdog: Any = Watcher()
    fence = Fence(3, now, watchdog)
    fence.extend(fence.shard(KEY), 110.0, others_from=115.0)
    now.at = 120.0
    with fence.acting_for(KEY), pytest.raises(ShardNotHeldError):
        fence.check()
    assert watchdog.watched == []
