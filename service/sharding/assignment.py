"""Takes objects in hand when their shard becomes ours and lets go of them when it ceases to be; used by the controller.

A replica watches everything, so that it can serve any shard at once, but works only on what is its own.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from service import metrics
from service.clock import Clock
from service.decide.precedence import precedence_of
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.queue import Queue
from service.sharding.fence import Fence
from service.sharding.shard import SHARD, Shard


class ShardQueue(Queue):
    """Takes only keys that are ours: the watches tell of all."""

    def __init__(self, clock: Clock, owns: Callable[[Key], bool], *, running_per_namespace: int | None = None) -> None:
        latency = metrics.QUEUE_LATENCY.observe
        super().__init__(clock, running_per_namespace=running_per_namespace, on_taken=latency)
        self._owns = owns

    def add(self, key: Key, *, due: datetime | None = None, priority: int | None = None) -> None:
        """As any queue does, for keys of ours."""
        if self._owns(key):
            super().add(key, due=due, priority=priority)


class ShardAssignment:
    """Which of all objects are in our care. `forget` is told which of them is not any more.

    `everything` has the index `SHARD`, made for as many shards as the fence has.
    """

    def __init__(self, fence: Fence, queue: ShardQueue, everything: Informer, forget: Callable[[Key], None]) -> None:
        self._fence = fence
        self._queue = queue
        self._everything = everything
        self._forget = forget
        for shard in fence.shards:
            metrics.SHARD_OBJECTS.labels(str(shard)).set_function(partial(self._count, shard))

    def acquired(self, shard: Shard) -> None:
        """Looks at every object of the shard: nobody knows what its last holder left undone."""
        for key in self._members(shard):
            raw = self._everything.get(key)
            self._queue.add(key, priority=precedence_of(raw) if raw else None)

    def lost(self, shard: Shard) -> None:
        """Lets go of every object of the shard."""
        for key in self._members(shard):
            self._let_go(key)

    async def handle(self, key: Key, work: Callable[[Key], Awaitable[None]]) -> None:
        """Does the work for an object, if it is ours; what it writes is refused as soon as it is not."""
        try:
            if self._fence.owns(key):
                with self._fence.in_hand(key):
                    await work(key)
        finally:
            if not self._fence.owns(key):
                self._let_go(key)

    def _members(self, shard: Shard) -> frozenset[Key]:
        return self._everything.keys_by(SHARD, str(shard.number))

    def _count(self, shard: Shard) -> int:
        return self._everything.count_by(SHARD, str(shard.number)) if self._fence.holds(shard) else 0

    def _let_go(self, key: Key) -> None:
        self._queue.discard(key)
        self._forget(key)
