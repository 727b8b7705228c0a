"""Collects the notices of passes and sends them in the background, in order, each until the receiver takes it.

One that the receiver cannot take for a while lets the others go first. The queue is bounded: what does not fit is
dropped and counted. Nothing that a pass does waits for a receiver.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import structlog

from crds.status import ScheduledMachineStatus
from service import metrics
from service.decide.notices import Notice, announcement, announcement_due, notices_of
from service.decide.plan import Event
from service.decide.situation import Situation
from service.notify.cloudevent import CONTENT_TYPE, encode
from service.notify.sink import Sink, SinkRefused, Unanswered
from service.runtime.backoff import Backoff
from service.runtime.key import Key

QUEUE_MAX: Final = 1000
PAUSES: Final = Backoff(base=1.0, cap=60.0)
ATTEMPTS_IN_A_ROW: Final = 6
SECONDS_IN_A_ROW: Final = 60.0
"""After so many attempts or such a wait the others go first: the receiver may only fail to take this one."""

log = structlog.get_logger(__name__)


class Notifier:
    """Without a sink it does nothing and costs nothing."""

    def __init__(self, sink: Sink | None = None, *, source: str = "", lead: timedelta = timedelta(0)) -> None:
        self._sink = sink
        self._source = source
        self._lead = lead
        self._queue: deque[Notice] = deque()
        self._added = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._announced: dict[Key, str] = {}
        """The last close that was announced of each object, by the id of its notice."""
        metrics.NOTIFICATIONS_QUEUED.set_function(lambda: len(self._queue))

    def record(self, s: Situation, after: ScheduledMachineStatus, events: Iterable[Event]) -> None:
        """Queues what happened in a pass; never waits."""
        if self._sink is None:
            return
        for notice in notices_of(s, after, events):
            self._put(notice)

    def announce(self, s: Situation, after: ScheduledMachineStatus) -> datetime | None:
        """Queues the notice of a close that is near, once; else says when it is due."""
        if self._sink is None:
            return None
        due = announcement_due(after, self._lead)
        if due is None or s.now < due:
            return due
        key, notice = Key(s.world.me.namespace, s.world.me.name), announcement(s, after)
        if self._announced.get(key) != notice.id:
            self._announced[key] = notice.id
            self._put(notice)
        return None

    def forget(self, key: Key) -> None:
        """An object is gone, or belongs to another replica now."""
        self._announced.pop(key, None)

    async def run(self) -> None:
        """Sends until cancelled."""
        try:
            while True:
                await self._added.wait()
                await self._send_all()
        finally:
            if self._sink is not None:
                await self._sink.close()

    async def finish(self, seconds: float) -> None:
        """Waits until all are sent, but not longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            log.warning("notifications were not sent before the stop", count=len(self._queue))

    def _put(self, notice: Notice) -> None:
        if len(self._queue) >= QUEUE_MAX:
            metrics.NOTIFICATIONS.labels("dropped").inc()
            return
        self._queue.append(notice)
        self._idle.clear()
        self._added.set()

    async def _send_all(self) -> None:
        attempts, waited = 0, 0.0
        while self._queue:
            asked = await self._send(self._queue[0])
            if asked is None:
                self._queue.popleft()
                attempts, waited = 0, 0.0
                continue
            attempts += 1
            pause = asked or PAUSES.seconds(attempts, chance=0.0)
            waited += pause
            if attempts >= ATTEMPTS_IN_A_ROW or waited >= SECONDS_IN_A_ROW:
                self._queue.rotate(-1)
            await asyncio.sleep(pause)
        self._added.clear()
        self._idle.set()

    async def _send(self, notice: Notice) -> float | None:
        """None if it is done with; else the seconds until the next attempt, 0 for the usual pause."""
        assert self._sink is not None, "nothing is queued without one"  # noqa: S101 - narrows the type
        try:
            await self._sink.post(encode(notice, self._source), CONTENT_TYPE)
        except SinkRefused as error:
            metrics.NOTIFICATIONS.labels("refused").inc()
            log.warning("a notification was refused", type=notice.type, error=str(error))
            return None
        except Unanswered as error:
            metrics.NOTIFICATIONS.labels("failed").inc()
            log.warning("a notification is delayed", type=notice.type, error=str(error))
            return error.retry_after or 0.0
        metrics.NOTIFICATIONS.labels("sent").inc()
        return None
