"""Acquires, renews and releases the Leases of shards; the `Fence` records which shards are held, and until when.

One task per shard. The controller starts the manager once its caches are synced, so that a replica can serve a shard
as soon as it acquires it.
"""

import asyncio
import socket
from functools import partial
from uuid import uuid4

import structlog

from service import metrics
from service.kube.client import Client
from service.kube.errors import Conflict, KubeError
from service.sharding.election import ElectionContext, ShardElection, ShardListener
from service.sharding.fence import Fence, RealTime, boottime
from service.sharding.lease_store import LeaseStore
from service.sharding.leases import LeaseTimes, Replica, with_other_count
from service.sharding.releases import ReleaseRegistry
from service.sharding.shard import Shard

__all__ = ["ShardListener", "ShardManager", "new_identity"]

log = structlog.get_logger(__name__)


def new_identity() -> str:
    """Identifies this process among all others, including earlier ones on the same host."""
    return f"{socket.gethostname()}_{uuid4().hex[:12]}"


class ShardManager:
    """The elections for all shards: acquires the preferred shard first, then any that no replica holds."""

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
        self.store = LeaseStore(client, namespace, self.times, clock, self._lease_changed)
        self._clock = clock
        self._identity = identity or new_identity()
        self.releases = ReleaseRegistry(self.store.client, namespace, watches, self.times, clock, self._identity)
        self._confirming = asyncio.Lock()
        self._preferred = preferred
        self._started = clock()
        self._stopping = False
        self._logged_counts: set[int] = set()
        context = ElectionContext(self.store, fence, listener, self.times, clock)
        self._elections = {shard: ShardElection(shard, context, self) for shard in fence.shards}
        for shard in self._elections:
            metrics.SHARD_HELD.labels(str(shard)).set_function(partial(fence.holds, shard))

    @property
    def replica(self) -> Replica:
        """This replica, as the elections see it."""
        return Replica(self._identity, self._preferred, self._started, len(self.held))

    @property
    def held(self) -> tuple[Shard, ...]:
        """The shards that this replica holds."""
        return tuple(shard for shard, election in self._elections.items() if election.held)

    async def run(self) -> None:
        """Acquires and renews shards until cancelled; call `release` first for an orderly end."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.store.run(), name="watch leases")
                group.create_task(self.releases.run(), name="watch other releases")
                await self._wait_for_sync()
                for election in self._elections.values():
                    group.create_task(election.run(), name=f"lease {election.shard}")
        finally:
            for election in self._elections.values():
                election.lose("stopped")
            await self.store.close()

    async def _wait_for_sync(self) -> None:
        """Waits until all Leases are listed; logs what prevents it, such as a missing permission."""
        while True:
            try:
                return await self.store.synced(within=self.times.duration)
            except KubeError as error:
                log.warning("cannot acquire shards: the Leases cannot be listed", error=error.message)

    async def release(self) -> None:
        """Acquires no more shards, and releases all that are held as soon as no pass runs."""
        self._stopping = True
        await asyncio.gather(*(election.release("stopping") for election in self._elections.values()))
        if not any(self.fence.busy(shard) for shard in self._elections):
            await self.releases.withdraw()

    @property
    def stopping(self) -> bool:
        """Whether this replica acquires no more shards."""
        return self._stopping

    def blocked_for(self) -> float:
        """Seconds until every other release, and every Lease for another shard count, has expired; 0 if none lives."""
        now = self._clock()
        others = [record for record in with_other_count(self.store, self.fence.count) if record.live(now)]
        self._log_other_counts({record.shard.count for record in others})
        longest = max((record.since + record.duration - now for record in others), default=0.0)
        return max(longest, self.releases.blocked_for())

    def _log_other_counts(self, counts: set[int]) -> None:
        if counts - self._logged_counts:
            log.warning("waiting for replicas that run with another instance count", theirs=sorted(counts))
        self._logged_counts = counts

    async def confirm_alone(self) -> bool:
        """Asks the API server whether no other release, and no replica with another shard count, acts.

        An election calls this after it acquired a Lease, and this announces the replica first. So of two replicas that
        start at the same time at least one notices the other.
        """
        async with self._confirming:
            await self.releases.announce()
            alone = await self._no_other_acts()
            if not alone and not self.held:
                await self.releases.withdraw()
            return alone

    async def _no_other_acts(self) -> bool:
        await self.releases.refresh()
        await self.store.refresh()
        if self.blocked_for():
            return False
        for expired in with_other_count(self.store, self.fence.count):
            try:
                await self.store.remove(expired)
            except Conflict:  # its holder renewed it after all
                return False
        return True

    def _lease_changed(self, shard: Shard) -> None:
        election = self._elections.get(shard)
        if election is not None:
            election.wake()
            return
        # A Lease for another shard count may block or unblock all elections.
        for each in self._elections.values():
            each.wake()
