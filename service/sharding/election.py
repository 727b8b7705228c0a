"""The election for one shard: one replica acquires its Lease, renews it, and releases or loses it.

`service.sharding.manager` runs one election per shard.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from service import metrics
from service.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from service.sharding.fence import Fence, RealTime
from service.sharding.lease_store import LeaseStore
from service.sharding.leases import (
    LeaseRecord,
    LeaseTimes,
    Replica,
    acquire_at,
    shard_to_share,
    should_hand_over,
    should_request,
)
from service.sharding.releases import ReleaseRegistry
from service.sharding.shard import Shard

_IDLE_POLL_SECONDS: Final = 0.05
_RETRY_SOON_SECONDS: Final = 0.1

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class ShardListener:
    """Callbacks for a shard that this replica acquires, and for one that it loses or releases."""

    acquired: Callable[[Shard], None]
    lost: Callable[[Shard], None]


@dataclass(frozen=True, slots=True)
class ElectionContext:
    """What all elections of one replica share."""

    store: LeaseStore
    fence: Fence
    listener: ShardListener
    times: LeaseTimes
    clock: RealTime


class Coordinator(Protocol):
    """What an election asks about the replica as a whole; the shard manager answers."""

    releases: ReleaseRegistry

    @property
    def replica(self) -> Replica:
        """This replica, with the number of shards that it holds now."""
        ...

    @property
    def stopping(self) -> bool:
        """Whether the replica stops, so that it acquires no more shards."""
        ...

    def blocked_for(self) -> float:
        """Seconds until this replica may acquire a shard; 0 if it may now."""
        ...

    async def confirm_alone(self) -> bool:
        """Asks the API server whether no other release, and no replica with another shard count, acts."""
        ...


class ShardElection:
    """The election for one shard. Each step sends few requests and returns the seconds until the next step."""

    def __init__(self, shard: Shard, context: ElectionContext, coordinator: Coordinator) -> None:
        self.shard = shard
        self.held = False
        self._store = context.store
        self._fence = context.fence
        self._listener = context.listener
        self._times = context.times
        self._clock = context.clock
        self._coordinator = coordinator
        self._renewed_at = 0.0
        self._lease_changed = asyncio.Event()
        self._step = asyncio.Lock()

    def wake(self) -> None:
        """Starts the next step now, because a Lease changed."""
        self._lease_changed.set()

    async def run(self) -> None:
        """Acquires and renews until cancelled."""
        while True:
            self._lease_changed.clear()
            try:
                async with self._step:
                    pause = await (self._keep() if self.held else self._try_acquire())
            except KubeError as error:
                log.warning("the request for a Lease failed", shard=str(self.shard), error=error.message)
                pause = self._times.retry
            await self._wait(pause)

    async def _wait(self, seconds: float) -> None:
        """Waits until the Lease changes or the time is up, but never past the moment at which the shard is lost."""
        timeout = min(seconds, self._times.retry)
        if self.held:
            timeout = min(timeout, self._fence.until(self.shard) - self._clock())
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, timeout)):
                await self._lease_changed.wait()

    # While another replica, or none, holds the shard

    async def _try_acquire(self) -> float:
        """Acquires the Lease if it is time to; returns the seconds until it is."""
        if self._coordinator.stopping:
            return self._times.retry
        blocked = self._coordinator.blocked_for()
        if blocked:
            return blocked
        record = self._store.get(self.shard)
        replica = self._coordinator.replica
        now = self._clock()
        wait = acquire_at(self.shard, record, replica, self._times) - now
        if wait <= 0:
            return await self._acquire()
        if record is not None and self._requests(record, replica, now):
            with suppress(Conflict, NotFound):
                await self._store.request(record, replica.identity)
        return wait

    def _requests(self, record: LeaseRecord, replica: Replica, now: float) -> bool:
        """Whether to request the shard from its holder."""
        if should_request(self.shard, record, replica, now):
            return True
        return self.shard == shard_to_share(self._store, replica, now)

    async def _acquire(self) -> float:
        sent = self._clock()
        try:
            await self._store.acquire(self.shard, self._coordinator.replica.identity)
        except (AlreadyExists, Conflict):  # another replica was faster
            await self._store.read(self.shard)
            return _jitter(_RETRY_SOON_SECONDS)
        if not await self._coordinator.confirm_alone():
            await self._free_lease()
            return _jitter(self._times.retry)
        self._start_acting(sent)
        return self._times.retry

    def _start_acting(self, sent: float) -> None:
        self.held = True
        self._renewed_at = sent
        self._extend(sent)
        metrics.LEASE_TRANSITIONS.labels(str(self.shard), "acquired").inc()
        log.info("shard acquired", shard=str(self.shard))
        self._listener.acquired(self.shard)

    # While this replica holds the shard

    async def _keep(self) -> float:
        """Renews the Lease if it is time to; returns the seconds until it is."""
        record = self._store.get(self.shard)
        if not self._fence.holds(self.shard):
            self.lose("not renewed in time")
            return _RETRY_SOON_SECONDS
        if record is None or record.deleted or record.holder != self._coordinator.replica.identity:
            self.lose("another replica took the Lease, or it was deleted")
            return _RETRY_SOON_SECONDS
        if should_hand_over(self.shard, record, self._coordinator.replica):
            await self._release("another replica requests it")
            return self._times.retry
        wait = self._renewed_at + self._times.retry - self._clock()
        if wait > 0:
            return wait
        return await self._renew(record)

    async def _renew(self, record: LeaseRecord) -> float:
        sent = self._clock()
        try:
            await self._store.renew(record)
        except (Conflict, NotFound):  # the Lease changed, perhaps only in an annotation
            await self._store.read(self.shard)
            return 0.0
        if not self._fence.holds(self.shard):
            # The answer came after the replica stopped acting. It dropped the shard's keys, so it acquires them again.
            self.lose("renewed too late")
            if not await self._coordinator.confirm_alone():
                await self._free_lease()
                return _jitter(self._times.retry)
            self._start_acting(sent)
        self._renewed_at = sent
        self._extend(sent)
        await self._coordinator.releases.renew()
        return self._times.retry

    def _extend(self, sent: float) -> None:
        """Counts from when the renewal was sent: other replicas see it later, and count from then."""
        releases = self._coordinator.releases
        until = min(sent + self._times.deadline, releases.until)
        others_from = min(sent + self._times.duration, releases.others_from)
        self._fence.extend(self.shard, until, others_from=others_from)

    def lose(self, why: str) -> None:
        """Stops acting at once."""
        self._fence.drop(self.shard)
        if self.held:
            self.held = False
            metrics.LEASE_TRANSITIONS.labels(str(self.shard), "lost").inc()
            log.warning("shard lost", shard=str(self.shard), why=why)
            self._listener.lost(self.shard)

    async def release(self, why: str) -> None:
        """Waits for the current step to end, then releases the shard."""
        async with self._step:
            if self.held:
                await self._release(why)

    async def _release(self, why: str) -> None:
        """Stops acting, and frees the Lease once no pass over the shard runs; if a pass hangs, the Lease expires."""
        self.held = False
        self._fence.drop(self.shard)
        self._listener.lost(self.shard)
        metrics.LEASE_TRANSITIONS.labels(str(self.shard), "released").inc()
        log.info("shard released", shard=str(self.shard), why=why)
        if await self._wait_until_idle():
            await self._free_lease()

    async def _wait_until_idle(self) -> bool:
        """Waits a little for passes to end; the fence refuses their next write, so they cannot take long."""
        for _ in range(int(self._times.request / _IDLE_POLL_SECONDS)):
            if not self._fence.busy(self.shard):
                return True
            await asyncio.sleep(_IDLE_POLL_SECONDS)
        return False

    async def _free_lease(self) -> None:
        """Removes this replica as holder, so that another can acquire the Lease at once."""
        identity = self._coordinator.replica.identity
        record = self._store.get(self.shard)
        try:
            while record is not None and record.holder == identity:
                with suppress(Conflict):
                    return await self._store.release(record)
                record = await self._store.read(self.shard)
        except KubeError as error:
            log.info("cannot free the Lease; it expires by itself", shard=str(self.shard), error=error.message)


def _jitter(seconds: float) -> float:
    """Keeps two replicas that collided from colliding again."""
    return seconds * (1 + random.random())  # noqa: S311 - not a secret
