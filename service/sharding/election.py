"""One shard as a replica tries to get it, keeps it, loses it or gives it back; run by `service.sharding.manager`."""

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from service import metrics
from service.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from service.sharding.leases import LeaseRecord, shard_to_share, should_claim, should_yield, try_at
from service.sharding.shard import Shard

if TYPE_CHECKING:
    from service.sharding.manager import ShardManager

_LOOK_EVERY: Final = 0.05
_SOON: Final = 0.1

log = structlog.get_logger(__name__)


class ShardElection:
    """One shard: sought, kept, lost or given back. One step at a time, each with few requests."""

    def __init__(self, shard: Shard, leases: "ShardManager") -> None:
        self.shard = shard
        self.held = False
        self.news = asyncio.Event()
        self._leases = leases
        self._renewed = 0.0
        self._at_it = asyncio.Lock()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.news.clear()
            try:
                async with self._at_it:
                    pause = await (self._keep() if self.held else self._seek())
            except KubeError as error:
                log.warning("lease out of reach", shard=str(self.shard), error=error.message)
                pause = self._leases.times.retry
            await self._nap(pause)

    async def _nap(self, seconds: float) -> None:
        """Until there are news, or it is time; never past the moment at which a shard would be lost."""
        left = self._leases.fence.until(self.shard) - self._leases.clock() if self.held else seconds
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(seconds, left, self._leases.times.retry))):
                await self.news.wait()

    # While it is not ours

    async def _seek(self) -> float:
        """Tries to get the shard if it is time; the seconds until it is."""
        leases, sight, now = self._leases, self._leases.book.sight(self.shard), self._leases.clock()
        if leases.stopping:
            return leases.times.retry
        blocked = leases.blocked_for()
        if blocked:
            return blocked
        wait = try_at(self.shard, sight, leases.replica, leases.times) - now
        if wait <= 0:
            return await self._take()
        if sight is not None and self._wanted(sight, now):
            with suppress(Conflict, NotFound):
                await leases.book.claim(sight, leases.replica.identity)
        return wait

    def _wanted(self, sight: LeaseRecord, now: float) -> bool:
        """Whether to ask the shard's holder for it."""
        replica = self._leases.replica
        if should_claim(self.shard, sight, replica, now):
            return True
        return self.shard == shard_to_share(self._leases.book, replica, now)

    async def _take(self) -> float:
        leases, sent = self._leases, self._leases.clock()
        try:
            await leases.book.take(self.shard, leases.replica.identity)
        except (AlreadyExists, Conflict):  # somebody was quicker
            await leases.book.read(self.shard)
            return _jitter(_SOON)
        if not await leases.alone():
            await self._release()
            return _jitter(leases.times.retry)
        self._acquired(sent)
        return leases.times.retry

    def _acquired(self, sent: float) -> None:
        self.held, self._renewed = True, sent
        self._extend(sent)
        metrics.LEASE_TRANSITIONS.labels(str(self.shard), "acquired").inc()
        log.info("shard acquired", shard=str(self.shard))
        self._leases.listener.acquired(self.shard)

    # While it is ours

    async def _keep(self) -> float:
        """Renews if it is time; the seconds until it is."""
        leases, sight = self._leases, self._leases.book.sight(self.shard)
        if not leases.fence.holds(self.shard):
            self.lose("not renewed in time")
            return _SOON
        if sight is None or sight.deleted or sight.holder != leases.replica.identity:
            self.lose("taken by somebody else, or deleted")
            return _SOON
        if should_yield(self.shard, sight, leases.replica):
            await self._give_back("wanted by another replica")
            return leases.times.retry
        wait = self._renewed + leases.times.retry - leases.clock()
        return wait if wait > 0 else await self._renew(sight)

    async def _renew(self, sight: LeaseRecord) -> float:
        leases, sent = self._leases, self._leases.clock()
        try:
            await leases.book.renew(sight)
        except (Conflict, NotFound):  # changed meanwhile: perhaps only an annotation
            await leases.book.read(self.shard)
            return 0.0
        if not leases.fence.holds(self.shard):
            # The answer came after we had stopped acting: what was due meanwhile was let go, and is taken up again.
            self.lose("renewed too late")
            if not await leases.alone():
                await self._release()
                return _jitter(leases.times.retry)
            self._acquired(sent)
        self._renewed = sent
        self._extend(sent)
        await leases.neighbours.keep()
        return leases.times.retry

    def _extend(self, sent: float) -> None:
        """The others count from when they see a renewal, which is later than when it was sent."""
        times, neighbours = self._leases.times, self._leases.neighbours
        until = min(sent + times.deadline, neighbours.until)
        others = min(sent + times.duration, neighbours.others)
        self._leases.fence.extend(self.shard, until, others=others)

    def lose(self, why: str) -> None:
        """Stops acting, at once."""
        self._leases.fence.drop(self.shard)
        if self.held:
            self.held = False
            metrics.LEASE_TRANSITIONS.labels(str(self.shard), "lost").inc()
            log.warning("shard lost", shard=str(self.shard), why=why)
            self._leases.listener.lost(self.shard)

    async def give_back(self, why: str) -> None:
        """Waits until no request is under way, then gives the shard back."""
        async with self._at_it:
            if self.held:
                await self._give_back(why)

    async def _give_back(self, why: str) -> None:
        """Stops acting, and frees the Lease when nothing is in hand any more; if something hangs, it just expires."""
        self.held = False
        self._leases.fence.drop(self.shard)
        self._leases.listener.lost(self.shard)
        metrics.LEASE_TRANSITIONS.labels(str(self.shard), "released").inc()
        log.info("shard given back", shard=str(self.shard), why=why)
        if await self._put_down():
            await self._release()

    async def _put_down(self) -> bool:
        """Waits a little for what is in hand; its next write is refused, so it cannot take long."""
        for _ in range(int(self._leases.times.request / _LOOK_EVERY)):
            if not self._leases.fence.busy(self.shard):
                return True
            await asyncio.sleep(_LOOK_EVERY)
        return False

    async def _release(self) -> None:
        leases = self._leases
        seen = leases.book.sight(self.shard)
        try:
            while seen is not None and seen.holder == leases.replica.identity:
                with suppress(Conflict):
                    return await leases.book.release(seen)
                seen = await leases.book.read(self.shard)
        except KubeError as error:
            log.info("lease left to expire", shard=str(self.shard), error=error.message)


def _jitter(seconds: float) -> float:
    """So that two who collided do not collide again."""
    return seconds * (1 + random.random())  # noqa: S311 - not a secret
