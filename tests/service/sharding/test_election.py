"""One shard in the hands of one replica: until when it may act, and when it lets others; the server is played."""

import asyncio
import math
from itertools import count
from typing import Any

import pytest

from service.kube.client import Client
from service.kube.errors import AlreadyExists, Conflict, NotFound
from service.runtime.key import Key
from service.sharding.fence import Fence
from service.sharding.leases import LeaseTimes
from service.sharding.manager import ShardListener, ShardManager
from service.sharding.shard import Shard

SHARD, OTHER_COUNT = Shard(0, 1), Shard(0, 2)
KEY = Key("team", "desk")
SHORT = LeaseTimes(duration=0.9, deadline=0.6, retry=0.1)


class NoOtherReleases:
    """There is no other release; tests/service/sharding/test_releases.py is about those."""

    until = others_from = math.inf

    def blocked_for(self):
        return 0.0

    async def announce(self): ...

    refresh = renew = withdraw = announce


class Server:
    """Keeps Leases, refuses what is conditional on an older version.

    `under_way` happens while a write is, `listed` when a list has been made.
    """

    def __init__(self):
        self.leases = {}
        self.writes = 0
        self.under_way = self.listed = lambda: None
        self._versions = count(1)

    def put(self, shard, holder):
        self._store(shard.lease_name, {"holderIdentity": holder, "renewTime": "then", "leaseDurationSeconds": 15})
        return self.leases[shard.lease_name]

    def holder(self, shard):
        return self.leases[shard.lease_name]["spec"].get("holderIdentity")

    async def create(self, _resource, body, **_options):
        if body["metadata"]["name"] in self.leases:
            raise AlreadyExists("it is there")
        return self._written(body["metadata"]["name"], body["spec"])

    async def patch(self, _resource, name, body, **_options):
        stored = self._get(name)
        if body["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise Conflict("changed meanwhile")
        return self._written(name, {**stored["spec"], **body["spec"]})

    async def delete(self, _resource, name, *, resource_version=None, **_options):
        if resource_version not in (None, self._get(name)["metadata"]["resourceVersion"]):
            raise Conflict("changed meanwhile")
        return self.leases.pop(name)

    async def get(self, _resource, name, **_options):
        return self._get(name)

    async def list(self, _resource, **_options):
        listed = list(self.leases.values())
        self.listed()
        return listed

    def _get(self, name):
        if name not in self.leases:
            raise NotFound("there is none")
        return self.leases[name]

    def _written(self, name, spec):
        self.writes += 1
        self._store(name, spec)
        self.under_way()
        return self.leases[name]

    def _store(self, name, spec):
        self.leases[name] = {"metadata": {"name": name, "resourceVersion": str(next(self._versions))}, "spec": spec}


class Calls:
    def __init__(self):
        self.acquired, self.lost = [], []


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
async def make(now, server, calls):
    async with Client.from_inline("https://127.0.0.1:1") as client:

        def made(times=None):
            listener = ShardListener(calls.acquired.append, calls.lost.append)
            manager = ShardManager(
                client,
                Fence(1, now),
                listener,
                namespace="n",
                preferred=0,
                times=times,
                identity="me",
                clock=now,
            )
            for verb in ("create", "patch", "delete", "get", "list"):
                setattr(manager.store._client, verb, getattr(server, verb))
            releases: Any = NoOtherReleases()
            manager.releases = releases
            return manager, manager._elections[SHARD]

        yield made


async def holding(make, times=None):
    manager, election = make(times)
    await election._try_acquire()
    assert election.held
    return manager, election


async def test_a_shard_is_held_from_when_the_request_was_sent_and_not_from_when_it_was_answered(make, now, server):
    server.under_way = lambda: setattr(now, "at", now.at + 3.0)
    manager, _ = await holding(make)
    assert manager.fence.until(SHARD) == 100.0 + manager.times.deadline


async def test_a_renewal_counts_from_when_it_was_sent_and_not_from_when_it_was_answered(make, now, server):
    manager, election = await holding(make)
    now.at = 105.0
    server.under_way = lambda: setattr(now, "at", now.at + 3.0)
    await election._keep()
    assert manager.fence.until(SHARD) == 105.0 + manager.times.deadline


async def test_a_lease_that_another_replica_took_is_not_kept(make, server, calls):
    manager, election = await holding(make)
    manager.store.observe(server.put(SHARD, "another"))
    await election._keep()
    assert (election.held, manager.fence.holds(SHARD), calls.lost) == (False, False, [SHARD])
    assert server.holder(SHARD) == "another"


async def test_nothing_is_asked_for_while_a_lease_for_another_count_lives(make, server):
    manager, election = make()
    manager.store.observe(server.put(OTHER_COUNT, "another"))
    assert await election._try_acquire() == 15.0
    assert (election.held, server.writes) == (False, 0)


async def test_what_was_taken_together_with_a_lease_for_another_count_is_released_unused(make, server, calls):
    _, election = make()
    server.under_way = lambda: server.put(OTHER_COUNT, "another")
    await election._try_acquire()
    assert (election.held, calls.acquired, server.holder(SHARD)) == (False, [], None)


async def test_a_dead_lease_for_another_count_is_removed_and_not_in_the_way(make, server):
    manager, election = make()
    manager.store.observe(server.put(OTHER_COUNT, None))
    await election._try_acquire()
    assert (election.held, list(server.leases)) == (True, [SHARD.lease_name])


async def test_but_not_if_it_comes_back_to_life_at_that_moment(make, server, calls):
    manager, election = make()
    manager.store.observe(server.put(OTHER_COUNT, None))
    server.listed = lambda: server.put(OTHER_COUNT, "another")
    await election._try_acquire()
    assert (election.held, calls.acquired, server.holder(SHARD)) == (False, [], None)
    assert server.holder(OTHER_COUNT) == "another"


async def test_a_shard_is_released_when_no_pass_over_it_runs(make, server):
    manager, election = await holding(make)
    with manager.fence.acting_for(KEY):
        giving = asyncio.create_task(election.release("stopping"))
        await asyncio.sleep(0.02)
        assert (manager.fence.holds(SHARD), server.holder(SHARD)) == (False, "me")
    await giving
    assert server.holder(SHARD) is None


async def test_if_a_pass_hangs_the_lease_is_left_to_expire(make, server):
    manager, election = await holding(make, SHORT)
    with manager.fence.acting_for(KEY):
        await election.release("stopping")
    assert (election.held, server.holder(SHARD)) == (False, "me")
