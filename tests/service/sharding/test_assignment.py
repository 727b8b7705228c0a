"""What becomes of objects when their shard becomes ours, and when it ceases to be."""

from contextlib import suppress

import pytest

from service.clock import ManualClock
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.sharding.assignment import ShardAssignment, ShardQueue
from service.sharding.fence import Fence, ShardNotHeldError
from service.sharding.shard import SHARD, Shard, shard_index, shard_number
from tests.service.decide.builders import MORNING

FIRST = Shard(0, 2)
KEYS = [Key("team", f"desk-{number}") for number in range(20)]
OURS = {key for key in KEYS if shard_number(key.namespace, key.name, 2) == FIRST.number}


class Care:
    """The objects of two shards, of which the first is ours, and those that were let go."""

    def __init__(self):
        self.fence = Fence(2, lambda: 0.0)
        self.queue = ShardQueue(ManualClock(MORNING), self.fence.owns)
        nowhere, indexes = Client.from_inline("https://127.0.0.1:1", token="t"), {SHARD: shard_index(2)}
        everything = Informer(nowhere, SCHEDULED_MACHINES, indexes=indexes)
        for key in KEYS:
            metadata = {"namespace": key.namespace, "name": key.name, "uid": key.name, "resourceVersion": "1"}
            everything.absorb({"metadata": metadata})
        self.let_go: set[Key] = set()
        self.ownership = ShardAssignment(self.fence, self.queue, everything, self.let_go.add)
        self.fence.extend(FIRST, 60.0)

    def due(self):
        return set(iter(self.queue.take, None))

    def lose(self):
        self.fence.drop(FIRST)
        self.ownership.lost(FIRST)


@pytest.fixture
def care():
    return Care()


def test_every_object_of_an_acquired_shard_is_queued_and_no_other(care):
    care.ownership.acquired(FIRST)
    assert care.due() == OURS


def test_no_object_of_a_lost_shard_stays_queued(care):
    care.ownership.acquired(FIRST)
    care.lose()
    assert (care.due(), care.queue.waiting, care.let_go) == (set(), 0, OURS)


async def test_a_key_whose_shard_is_lost_before_its_turn_is_not_handled(care):
    key, worked_on = min(OURS), []

    async def work(key):
        worked_on.append(key)

    care.fence.drop(FIRST)
    await care.ownership.handle(key, work)
    assert (worked_on, care.let_go) == ([], {key})


async def test_a_key_whose_shard_is_lost_during_its_pass_writes_nothing_more_and_leaves_no_timer(care):
    key = min(OURS)

    async def work(key):
        care.fence.check()
        care.queue.retry(key, after=30.0)
        care.lose()
        care.queue.retry(key, after=30.0)
        care.fence.check()

    with pytest.raises(ShardNotHeldError):
        await care.ownership.handle(key, work)
    assert (care.queue.waiting, key in care.let_go) == (0, True)


async def test_a_key_whose_shard_is_lost_and_acquired_again_during_its_pass_is_queued_again(care):
    care.queue.add(min(OURS))
    key = care.queue.take()

    async def work(_key):
        care.lose()
        care.fence.extend(FIRST, 60.0)
        care.ownership.acquired(FIRST)
        raise ShardNotHeldError("its write was refused in between")

    with suppress(ShardNotHeldError):
        await care.ownership.handle(key, work)
    care.queue.done(key)
    assert key in care.due()
