"""One shard in the hands of one replica: until when it may act, and when it lets others; the server is played."""

import asyncio
import math
from itertools import count

import pytest

from service.kube.client import Client
from service.kube.errors import AlreadyExists, Conflict, NotFound
from service.runtime.key import Key
from service.sharding.fence import Fence
from service.sharding.leases import LeaseTimes
from service.sharding.manager import ShardListener, ShardManager
from service.sharding.shard import Shard

SHARD, RIVAL = Shard(0, 1), Shard(0, 2)
KEY = Key("team", "desk")
SHORT = LeaseTimes(duration=0.9, deadline=0.6, retry=0.1)


class Now:
    def __init__(self):
        self.at = 100.0

    def __call__(self):
        return self.at


class NoNeighbours:
    """There is no other release; tests/service/sharding/test_releases.py is about those."""

    until = others = math.inf

    def blocked_for(self):
        return 0.0

    async def announce(self): ...

    look = keep = withdraw = announce


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


class Told:
    def __init__(self):
        self.acquired, self.lost = [], []


@pytest.fixture
def now():
    return Now()


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def told():
    return Told()


@pytest.fixture
async def make(now, server, told):
    async with Client.from_inline("https://127.0.0.1:1") as client:

        def made(times=None):
            listener = ShardListener(told.acquired.append, told.lost.append)
            leases = ShardManager(
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
                setattr(leases.book._client, verb, getattr(server, verb))
            leases.neighbours = NoNeighbours()
            return leases, leases._tenures[SHARD]

        yield made


async def holding(make, times=None):
    leases, tenure = make(times)
    await tenure._seek()
    assert tenure.held
    return leases, tenure


async def test_a_shard_is_ours_from_when_we_asked_for_it_and_not_from_when_we_heard(make, now, server):
    server.under_way = lambda: setattr(now, "at", now.at + 3.0)
    leases, _ = await holding(make)
    assert leases.fence.until(SHARD) == 100.0 + leases.times.deadline


async def test_a_renewal_counts_from_when_it_was_sent_and_not_from_when_it_was_answered(make, now, server):
    leases, tenure = await holding(make)
    now.at = 105.0
    server.under_way = lambda: setattr(now, "at", now.at + 3.0)
    await tenure._keep()
    assert leases.fence.until(SHARD) == 105.0 + leases.times.deadline


async def test_a_lease_that_somebody_else_took_is_not_kept(make, server, told):
    leases, tenure = await holding(make)
    leases.book.note(server.put(SHARD, "another"))
    await tenure._keep()
    assert (tenure.held, leases.fence.holds(SHARD), told.lost) == (False, False, [SHARD])
    assert server.holder(SHARD) == "another"


async def test_nothing_is_asked_for_while_a_lease_for_another_count_lives(make, server):
    leases, tenure = make()
    leases.book.note(server.put(RIVAL, "another"))
    assert await tenure._seek() == 15.0
    assert (tenure.held, server.writes) == (False, 0)


async def test_what_was_taken_together_with_a_lease_for_another_count_is_given_back_unused(make, server, told):
    _, tenure = make()
    server.under_way = lambda: server.put(RIVAL, "another")
    await tenure._seek()
    assert (tenure.held, told.acquired, server.holder(SHARD)) == (False, [], None)


async def test_a_dead_lease_for_another_count_is_removed_and_not_in_the_way(make, server):
    leases, tenure = make()
    leases.book.note(server.put(RIVAL, None))
    await tenure._seek()
    assert (tenure.held, list(server.leases)) == (True, [SHARD.lease_name])


async def test_but_not_if_it_comes_back_to_life_at_that_moment(make, server, told):
    leases, tenure = make()
    leases.book.note(server.put(RIVAL, None))
    server.listed = lambda: server.put(RIVAL, "another")
    await tenure._seek()
    assert (tenure.held, told.acquired, server.holder(SHARD)) == (False, [], None)
    assert server.holder(RIVAL) == "another"


async def test_a_shard_is_given_back_when_nothing_of_it_is_in_hand_any_more(make, server):
    leases, tenure = await holding(make)
    with leases.fence.in_hand(KEY):
        giving = asyncio.create_task(tenure.give_back("stopping"))
        await asyncio.sleep(0.02)
        assert (leases.fence.holds(SHARD), server.holder(SHARD)) == (False, "me")
    await giving
    assert server.holder(SHARD) is None


async def test_where_something_hangs_the_lease_is_left_to_expire(make, server):
    leases, tenure = await holding(make, SHORT)
    with leases.fence.in_hand(KEY):
        await tenure.give_back("stopping")
    assert (tenure.held, server.holder(SHARD)) == (False, "me")
