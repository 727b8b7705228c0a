"""The work queue: decides which key a worker handles next, and when; watches and workers add keys.

It knows keys only, not the objects behind them.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from service.clock import Clock
from service.runtime.backoff import Failures
from service.runtime.fairness import FairHeap
from service.runtime.key import Key
from service.runtime.timers import Timer, Timers, speed_of

# A wall clock can be set and a machine can be suspended, so no worker waits longer than this without a look at it.
MAX_WAIT_SECONDS = 10.0
# The highest priority counts as this many seconds of waiting: it goes first among equals, and no key starves.
PRIORITY_WORTH = 10.0
HIGHEST_PRIORITY = 255
URGENT: Final = datetime.fromtimestamp(0, UTC)
"""A due time that goes before all other keys of its namespace, however long those have waited."""
_EXPIRED_AT_ONCE = 1000


def _ignore(_seconds: float) -> None:
    """For a queue whose waits are not measured."""


class QueueClosed(Exception):
    """The queue is closed and gives out no more keys."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A key that is due: its timer, and since when (real time) it waits for a worker."""

    timer: Timer
    since: float


class Queue:
    """Keys with a due time and a priority. At most one worker handles a key at any time."""

    def __init__(
        self,
        clock: Clock,
        *,
        failures: Failures | None = None,
        running_per_namespace: int | None = None,
        real: Callable[[], float] = time.monotonic,
        on_taken: Callable[[float], None] = _ignore,
    ) -> None:
        self._on_taken = on_taken
        """Called with the real seconds for which a key was due before a worker took it."""
        self._clock = clock
        self._real = real
        self._failures = failures or Failures()
        self._running_limit = running_per_namespace
        self._seconds_per_priority = PRIORITY_WORTH / HIGHEST_PRIORITY * speed_of(clock)
        self._timers = Timers(clock, real)
        self._due: dict[Key, _Due] = {}
        self._ready = FairHeap()
        self._running: dict[Key, Timer | None] = {}
        self._running_by_namespace: Counter[str] = Counter()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._wakeup: asyncio.TimerHandle | None = None
        self._wakeup_at = 0.0
        self._closed = False

    @property
    def depth(self) -> int:
        """Keys that are due and wait for a worker."""
        return len(self._due)

    @property
    def waiting(self) -> int:
        """Keys that are not due yet."""
        return len(self._timers)

    @property
    def running(self) -> int:
        """Keys that workers handle now."""
        return len(self._running)

    def add(self, key: Key, *, due: datetime | None = None, priority: int | None = None) -> None:
        """Makes a key due at `due` on the domain's clock, or now.

        The earliest due time of a key counts. Without a priority the key keeps the one it has.
        """
        self._schedule(key, Timer(due=(due or self._clock.now()).timestamp(), real=None, priority=priority))

    def retry(self, key: Key, *, after: float | None = None, priority: int | None = None) -> float:
        """Requeues a key after `after` real seconds or, without it, after its back-off; returns the seconds."""
        pause = self._failures.failed(key) if after is None else after
        self._schedule(key, Timer(due=None, real=self._real() + pause, priority=priority))
        return pause

    def retry_failed(self, within: float) -> None:
        """Requeues the keys that back off after a failure, spread over `within` seconds: its cause is over."""
        for key in self._failures.failing():
            if key in self._timers:
                pause = within * self._failures.chance()
                self._schedule(key, Timer(due=None, real=self._real() + pause, priority=None))

    def succeeded(self, key: Key) -> None:
        """Resets the back-off of a key."""
        self._failures.succeeded(key)

    def discard(self, key: Key) -> None:
        """Removes a key and its back-off: its object is gone, or another replica reconciles it."""
        self._failures.succeeded(key)
        self._timers.remove(key)
        self._ready.remove(key)
        self._due.pop(key, None)
        if key in self._running:
            self._running[key] = None

    async def get(self) -> Key:
        """Waits for the next key; call `done` when it is handled."""
        while True:
            if self._closed:
                raise QueueClosed
            key = self.take()
            if key is not None:
                return key
            await self._wait_for_key()

    def take(self) -> Key | None:
        """The next key if one is due now, else None."""
        self._move_expired()
        key = self._ready.pop()
        if key is None:
            return None
        due = self._due.pop(key)
        self._running[key] = None
        self._count(key.namespace, 1)
        self._on_taken(self._real() - due.since)
        return key

    def done(self, key: Key) -> None:
        """Ends the handling of a key; if it was added meanwhile, it is queued again."""
        timer = self._running.pop(key)
        self._count(key.namespace, -1)
        if timer is not None:
            self._schedule(key, timer)
        self._wake_workers(1)

    def wake_due(self) -> None:
        """Wakes a worker for every key that is due by now; call it after moving a simulated clock."""
        self._cancel_wakeup()
        self._move_expired()
        self._wake_workers(len(self._due))
        self._set_wakeup()

    def close(self) -> None:
        """Ends all waiting in `get` with `QueueClosed`; workers finish the keys that they handle."""
        self._closed = True
        self._cancel_wakeup()
        self._wake_workers(len(self._waiters))

    def _schedule(self, key: Key, timer: Timer) -> None:
        if key in self._running:
            self._running[key] = timer.merged(self._running[key])
            return
        due = self._due.get(key)
        if due is not None:
            self._make_ready(key, _Due(timer.merged(due.timer), due.since))
            return
        if self._timers.add(key, timer):
            self._set_wakeup()

    def _move_expired(self) -> None:
        for key, timer in self._timers.expired(_EXPIRED_AT_ONCE):
            self._make_ready(key, _Due(timer, self._real()))

    def _make_ready(self, key: Key, due: _Due) -> None:
        self._due[key] = due
        head_start = due.timer.priority_or_default * self._seconds_per_priority
        self._ready.push(key, due.timer.due_or_inf - head_start)

    def _count(self, namespace: str, change: int) -> None:
        self._running_by_namespace[namespace] += change
        running = self._running_by_namespace[namespace]
        if not running:
            del self._running_by_namespace[namespace]
        if self._running_limit is None:
            return
        if running >= self._running_limit:
            self._ready.hold(namespace)
        else:
            self._ready.resume(namespace)

    async def _wait_for_key(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._set_wakeup()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self._wake_workers(1)  # this worker was woken just before it was cancelled: another takes the key
            raise

    def _set_wakeup(self) -> None:
        """Wakes workers when the next key becomes due; needed only while a worker waits."""
        if not self._waiters or self._closed:
            return
        pause = min(MAX_WAIT_SECONDS, self._timers.seconds_left())
        loop = asyncio.get_running_loop()
        at = loop.time() + pause
        if self._wakeup is not None and self._wakeup_at <= at:
            return
        self._cancel_wakeup()
        self._wakeup_at = at  # kept here, as the handles of some event loops do not know their time
        self._wakeup = loop.call_later(pause, self.wake_due)

    def _cancel_wakeup(self) -> None:
        if self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None

    def _wake_workers(self, count: int) -> None:
        while count > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1
