"""Gets, keeps and gives back the Leases of shards; what is held, and until when, stands in the `Fence`.

One task per shard. The controller starts it once its caches are complete, so that whoever gets a shard can serve it.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import structlog

from service import metrics
from service.kube.client import Client
from service.kube.errors import Conflict, KubeError
from service.sharding.election import ShardElection
from service.sharding.fence import Fence, RealTime, boottime
from service.sharding.lease_store import LeaseStore
from service.sharding.leases import LeaseTimes, Replica, rivals
from service.sharding.releases import ReleaseRegistry
from service.sharding.shard import Shard

log = structlog.get_logger(__name__)


def new_identity() -> str:
    """Tells this process from every other, also from its own predecessor on the same host."""
    return f"{socket.gethostname()}_{uuid4().hex[:12]}"


@dataclass(slots=True)
class ShardListener:
    """Who is told when a shard becomes ours and when it ceases to be."""

    acquired: Callable[[Shard], None]
    lost: Callable[[Shard], None]


class ShardManager:
    """All shards: wants the preferred one first, and any that nobody holds."""

    def __init__(  # noqa: PLR0913 - what a replica is, all by keyword
        self,
        client: Client,
        fence: Fence,
        listener: ShardListener,
        *,
        namespace: str,
        preferred: int | None,
        watches: tuple[str, ...] = (),
        times: LeaseTimes | None = None,
        identity: str | None = None,
        clock: RealTime = boottime,
    ) -> None:
        self.fence = fence
        self.times = times or LeaseTimes()
        self.clock = clock
        self.listener = listener
        self.book = LeaseStore(client, namespace, self.times, clock)
        self.book.on_news = self._news
        self._identity = identity or new_identity()
        self.neighbours = ReleaseRegistry(self.book.client, namespace, watches, self.times, clock, self._identity)
        self._taking = asyncio.Lock()
        self._preferred = preferred
        self._started = clock()
        self._stopping = False
        self._warned_of: set[int] = set()
        self._tenures = {shard: ShardElection(shard, self) for shard in fence.shards}
        for shard in self._tenures:
            metrics.SHARD_HELD.labels(str(shard)).set_function(partial(fence.holds, shard))

    @property
    def replica(self) -> Replica:
        """Who we are, to others."""
        return Replica(self._identity, self._preferred, self._started, len(self.held))

    @property
    def held(self) -> tuple[Shard, ...]:
        """The shards that are ours."""
        return tuple(shard for shard, tenure in self._tenures.items() if tenure.held)

    async def run(self) -> None:
        """Seeks and keeps shards until cancelled; `release` ends it in an orderly way."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.book.run(), name="watch leases")
                group.create_task(self.neighbours.run(), name="watch other releases")
                await self._seen_all()
                for tenure in self._tenures.values():
                    group.create_task(tenure.run(), name=f"lease {tenure.shard}")
        finally:
            for tenure in self._tenures.values():
                tenure.lose("stopped")
            await self.book.close()

    async def _seen_all(self) -> None:
        """Waits for the first sight of all Leases; says what is in the way, such as a missing permission."""
        while True:
            try:
                return await self.book.synced(within=self.times.duration)
            except KubeError as error:
                log.warning("no shard can be taken", error=error.message)

    async def release(self) -> None:
        """Gives everything back, as soon as nothing is in hand any more; nothing is taken from now on."""
        self._stopping = True
        await asyncio.gather(*(tenure.give_back("stopping") for tenure in self._tenures.values()))
        if not any(self.fence.busy(shard) for shard in self._tenures):
            await self.neighbours.withdraw()

    @property
    def stopping(self) -> bool:
        """Whether no more shards are wanted."""
        return self._stopping

    def blocked_for(self) -> float:
        """Seconds until no other release, and no Lease for another number of shards, can be live; 0 if none is."""
        now = self.clock()
        others = [sight for sight in rivals(self.book, self.fence.count) if sight.live(now)]
        counts = {sight.shard.count for sight in others}
        if counts - self._warned_of:
            log.warning("waiting for replicas that run with another instance count", theirs=sorted(counts))
        self._warned_of = counts
        counted = max((sight.since + sight.duration - now for sight in others), default=0.0)
        return max(counted, self.neighbours.blocked_for())

    async def alone(self) -> bool:
        """Whether no other release acts, nor a replica for another number of shards.

        Asked after taking a Lease and announcing that, so that at least one of two that begin at once notices.
        """
        async with self._taking:
            await self.neighbours.announce()
            alone = await self._sees_no_other()
            if not alone and not self.held:
                await self.neighbours.withdraw()
            return alone

    async def _sees_no_other(self) -> bool:
        await self.neighbours.look()
        await self.book.look()
        if self.blocked_for():
            return False
        for dead in rivals(self.book, self.fence.count):
            try:
                await self.book.remove(dead)
            except Conflict:  # it has come back to life
                return False
        return True

    def _news(self, shard: Shard) -> None:
        for tenure in [self._tenures[shard]] if shard in self._tenures else self._tenures.values():
            tenure.news.set()
