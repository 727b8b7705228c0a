"""Queues the objects of a shard that this replica acquires and drops those of one that it loses; for the controller.

A replica watches all objects, so that it can serve any shard at once, but reconciles only those of its own shards.
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
    """Accepts only keys whose shard this replica holds; the watches report all objects."""

    def __init__(self, clock: Clock, owns: Callable[[Key], bool], *, running_per_namespace: int | None = None) -> None:
        latency = metrics.QUEUE_LATENCY.observe
        super().__init__(clock, running_per_namespace=running_per_namespace, on_taken=latency)
        self._owns = owns

    def add(self, key: Key, *, due: datetime | None = None, priority: int | None = None) -> None:
        """Adds the key if this replica holds its shard."""
        if self._owns(key):
            super().add(key, due=due, priority=priority)


class ShardAssignment:
    """The objects that this replica reconciles. `forget` is called with each key that it no longer does.

    `machines` has the index `SHARD`, made for as many shards as the fence has.
    """

    def __init__(self, fence: Fence, queue: ShardQueue, machines: Informer, forget: Callable[[Key], None]) -> None:
        self._fence = fence
        self._queue = queue
        self._machines = machines
        self._forget = forget
        for shard in fence.shards:
            metrics.SHARD_OBJECTS.labels(str(shard)).set_function(partial(self._count, shard))

    def acquired(self, shard: Shard) -> None:
        """Queues every object of the shard: its last holder may have left work undone."""
        for key in self._members(shard):
            raw = self._machines.get(key)
            self._queue.add(key, priority=precedence_of(raw) if raw else None)

    def lost(self, shard: Shard) -> None:
        """Drops every object of the shard."""
        for key in self._members(shard):
            self._drop(key)

    async def handle(self, key: Key, work: Callable[[Key], Awaitable[None]]) -> None:
        """Runs `work` if this replica holds the key's shard; the fence refuses its writes as soon as it does not."""
        try:
            if self._fence.owns(key):
                with self._fence.acting_for(key):
                    await work(key)
        finally:
            if not self._fence.owns(key):
                self._drop(key)

    def _members(self, shard: Shard) -> frozenset[Key]:
        return self._machines.keys_by(SHARD, str(shard.number))

    def _count(self, shard: Shard) -> int:
        if not self._fence.holds(shard):
            return 0
        return self._machines.count_by(SHARD, str(shard.number))

    def _drop(self, key: Key) -> None:
        self._queue.discard(key)
        self._forget(key)
