"""Replicas that compete for shards on a real API server; their leases are short, so that losing one takes seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from service.kube.client import Client
from service.kube.resource import LEASES
from service.sharding.fence import Fence, boottime
from service.sharding.lease_store import LABELS, SELECTOR
from service.sharding.leases import LeaseTimes
from service.sharding.manager import ShardListener, ShardManager
from service.sharding.shard import Shard
from tests.conftest import drop_namespace, make_namespace
from tests.integration.wires import wire
from tests.waiting import until

TIMES = LeaseTimes(duration=4.0, deadline=2.4, retry=0.4)
LONG = LeaseTimes(duration=60.0, deadline=40.0, retry=0.4)
"""Where no lease must expire, however slow the machine is."""
SLACK = 20.0
"""What fail-over may take beyond the duration of a lease on a slow machine; `make bench` measures what it takes."""


@dataclass
class Seen:
    """Who held what and from when to when, over all replicas of a test."""

    spans: list[tuple[Shard, str, float, float]] = field(default_factory=list)

    def overlaps(self):
        """Pairs of spans in which two replicas acted for one shard, or for different numbers of shards."""
        by_time = [(one, other) for one in self.spans for other in self.spans if one[1] < other[1]]
        return [(one, other) for one, other in by_time if _clash(one, other)]


def _clash(one, other):
    rivals = one[0] == other[0] or one[0].count != other[0].count
    return rivals and max(one[2], other[2]) < min(one[3], other[3])


class SuspendableClock:
    """Runs on; what it skips is the time that the machine was suspended."""

    def __init__(self):
        self.suspended = 0.0

    def __call__(self):
        return boottime() + self.suspended


class RememberingFence(Fence):
    """Knows after it was dropped until when each shard could be acted for."""

    def __init__(self, *args):
        super().__init__(*args)
        self.ends = {}

    def extend(self, shard, until, *, others_from=None):
        self.ends[shard] = until
        super().extend(shard, until, others_from=others_from)


class Member:
    """One replica, without a controller: it only holds shards."""

    def __init__(self, client, group, name, count, preferred):
        self.name, self.client, self.seen = name, client, group.seen
        self.clock = SuspendableClock()
        self.fence = RememberingFence(count, self.clock)
        self.since = {}
        self.listener = ShardListener(self._acquired, self._lost)
        self.leases = ShardManager(
            client,
            self.fence,
            self.listener,
            namespace=group.namespace,
            preferred=preferred,
            watches=(group.namespace,),
            times=group.times,
            identity=name,
            clock=self.clock,
        )
        self.task = asyncio.create_task(self.leases.run())

    @property
    def held(self):
        return {shard.number for shard in self.leases.held if self.fence.holds(shard)}

    def _acquired(self, shard):
        self.since[shard] = boottime()

    def _lost(self, shard):
        # A process that stood still logs late what its fence ended in time.
        ended = min(boottime(), self.fence.ends[shard])
        self.seen.spans.append((shard, self.name, self.since.pop(shard), ended))

    async def crash(self):
        """Ends without a farewell."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def stop(self):
        """Ends as after SIGTERM."""
        await self.leases.release()
        await self.crash()


class Group:
    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        self.times = TIMES
        self.seen, self.members = Seen(), []
        self.clients = AsyncExitStack()

    async def join(self, name, *, count=1, preferred=0, url=None):
        token = self.cluster.access.tokens["admin"]
        client = Client.from_inline(url or self.cluster.url, ca=self.cluster.authority.pem, token=token)
        await self.clients.enter_async_context(client)
        member = Member(client, self, name, count, preferred)
        self.members.append(member)
        return member

    def served(self, count):
        """Whether every shard is held by exactly one."""
        held = [number for member in self.members for number in member.held if member.fence.count == count]
        return sorted(held) == list(range(count))


@pytest.fixture
async def group(small_cluster, namespace) -> AsyncIterator[Group]:
    found = Group(small_cluster, namespace)
    async with found.clients:
        yield found
        for member in found.members:
            await member.crash()
        assert found.seen.overlaps() == []


@asynccontextmanager
async def measured():
    spent: list[float] = []
    started = boottime()
    yield spent
    spent.append(boottime() - started)


async def test_one_of_two_holds_the_only_shard(group):
    group.times = LONG
    one = await group.join("one")
    await until(lambda: one.held == {0})
    two = await group.join("two")
    await asyncio.wait_for(two.leases.store.synced(), 60)
    await until(lambda: two.leases.store.get(Shard(0, 1)).wanted_by == "two")
    assert (one.held, two.held) == ({0}, set())


async def test_when_the_holder_crashes_the_other_takes_over_in_time(group):
    one = await group.join("one")
    await until(lambda: one.held == {0})
    two = await group.join("two")
    await until(lambda: two.leases.store.get(Shard(0, 1)))
    ends = one.fence.until(Shard(0, 1))
    await one.crash()
    async with measured() as spent:
        await until(lambda: two.held == {0})
    assert two.since[Shard(0, 1)] > ends
    assert spent[0] < TIMES.duration + SLACK


async def test_a_lease_that_is_given_back_is_taken_at_once(group):
    group.times = LONG
    one = await group.join("one")
    await until(lambda: one.held == {0})
    two = await group.join("two")
    await until(lambda: two.leases.store.get(Shard(0, 1)))
    await one.stop()
    async with measured() as spent:
        await until(lambda: two.held == {0})
    assert spent[0] < LONG.duration / 2


async def test_a_holder_that_is_cut_off_stops_before_its_lease_ends_and_comes_back_by_itself(group):
    async with wire(group.cluster.url) as line:
        one = await group.join("one", url=line.url)
        await until(lambda: one.held == {0})
        two = await group.join("two")
        await until(lambda: two.leases.store.get(Shard(0, 1)))
        line.silent = True
        await until(lambda: two.held == {0})
        assert one.held == set()
        line.silent = False
        line.cut()
        await two.stop()
        await until(lambda: one.held == {0})


async def test_after_a_renewal_that_is_answered_too_late_the_shard_is_acquired_again(group):
    group.times = LONG
    one = await group.join("one")
    await until(lambda: one.held == {0})
    renew, taken = one.leases.store.renew, []

    async def held_up(record):
        await renew(record)
        one.leases.store.renew = renew
        one.fence.extend(Shard(0, 1), one.clock() - 1)  # meanwhile nothing was allowed, and what was due was let go
        assert one.held == set()

    def acquired(shard):
        taken.append(shard)
        one._acquired(shard)

    one.listener.acquired = acquired
    one.leases.store.renew = held_up
    await until(lambda: taken == [Shard(0, 1)])
    await until(lambda: one.held == {0})


async def test_a_holder_that_was_suspended_knows_it_by_its_clock_alone_and_takes_its_shard_up_again(group):
    one = await group.join("one")
    await until(lambda: one.held == {0})
    one.clock.suspended += TIMES.deadline
    assert one.held == set()
    await until(lambda: group.seen.spans)
    await until(lambda: one.held == {0})


async def test_a_spare_replica_takes_what_is_free_and_hands_it_to_the_one_that_prefers_it(group):
    group.times = LONG
    zero = await group.join("zero", count=2, preferred=0)
    await until(lambda: zero.held == {0, 1})
    one = await group.join("one", count=2, preferred=1)
    await until(lambda: (zero.held, one.held) == ({0}, {1}))
    await one.stop()
    await until(lambda: zero.held == {0, 1})


async def test_the_shard_of_a_replica_that_died_is_served_by_another(group):
    members = [await group.join(f"m{n}", count=3, preferred=n) for n in range(3)]
    await until(lambda: all(member.held == {n} for n, member in enumerate(members)))
    await group.join("spare", count=3, preferred=0)
    await members[2].crash()
    await until(lambda: group.served(3))


async def test_no_replica_acts_for_one_count_while_a_lease_for_another_is_alive(group):
    group.times = LONG
    old = [await group.join(f"old-{n}", count=3, preferred=n) for n in range(3)]
    await until(lambda: group.served(3))
    new = [await group.join(f"new-{n}", count=4, preferred=n) for n in range(4)]
    for leaving in old:  # as a rolling update stops them; those who are left take over meanwhile
        await leaving.stop()
        assert leaving is old[-1] or not any(member.held for member in new)
        await until(lambda leaving=leaving: leaving is old[-1] or group.served(3))
    await until(lambda: group.served(4))
    left = await group.members[0].client.list(LEASES, namespace=group.namespace, labels=SELECTOR)
    names = {lease["metadata"]["name"] for lease in left}
    assert names == {Shard(n, 4).lease_name for n in range(4)}


async def test_a_new_shard_count_takes_over_also_when_the_old_replicas_crash(group):
    old = await group.join("old", count=2)
    await until(lambda: group.served(2))
    new = await group.join("new", count=3)
    await until(lambda: new.leases.store.get(Shard(1, 2)))
    await old.crash()
    await until(lambda: new.held == {0, 1, 2})


async def test_of_two_shard_counts_that_start_at_once_only_one_acts(group):
    pair = [await group.join("two", count=2), await group.join("three", count=3)]
    await until(lambda: group.served(2) or group.served(3))
    assert sum(bool(member.held) for member in pair) == 1


async def test_a_lease_that_a_user_deletes_is_created_again_by_its_holder(group):
    group.times = LONG
    one = await group.join("one")
    await until(lambda: one.held == {0})
    two = await group.join("two")
    await until(lambda: two.leases.store.get(Shard(0, 1)))
    before = (await _lease(group))["metadata"]["uid"]
    await one.client.delete(LEASES, Shard(0, 1).lease_name, namespace=group.namespace)
    made = await until(lambda: _lease_unlike(group, before))
    assert made["spec"]["holderIdentity"] == "one"
    await until(lambda: one.held == {0})


async def test_a_lease_that_loses_its_labels_gets_them_back_and_stays_held(group):
    group.times = LONG
    one = await group.join("one")
    await until(lambda: one.held == {0})
    body = {"metadata": {"labels": None}}
    await one.client.patch(LEASES, Shard(0, 1).lease_name, body, namespace=group.namespace)
    await until(lambda: _labelled(group))
    await until(lambda: one.held == {0})
    before = len(group.seen.spans)
    await asyncio.sleep(3 * LONG.retry)
    assert (one.held, len(group.seen.spans)) == ({0}, before)


async def test_a_namespace_that_is_missing_is_waited_for(group):
    absent = Group(group.cluster, f"{group.namespace}-late")
    async with absent.clients:
        member = await absent.join("one")
        await asyncio.wait_for(member.leases.store.synced(), 60)
        await make_namespace(group.cluster, absent.namespace, with_cluster=False)
        await until(lambda: member.held == {0})
        await member.crash()
    await drop_namespace(group.cluster, absent.namespace)


async def _labelled(group):
    return (await _lease(group))["metadata"].get("labels") == LABELS


async def _lease(group):
    return await group.members[0].client.get(LEASES, Shard(0, 1).lease_name, namespace=group.namespace)


async def _lease_unlike(group, uid):
    listed = await group.members[0].client.list(LEASES, namespace=group.namespace, labels=SELECTOR)
    return next((lease for lease in listed if lease["metadata"]["uid"] != uid), None)
