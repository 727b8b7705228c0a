"""Decides which object is looked at next, and when; workers take keys from here, watches and timers put them in.

Knows keys only: what is done with one is the business of whoever takes it.
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
from service.runtime.timers import Ask, Timers, speed_of

# A wall clock can be set, and a machine can be suspended: nothing trusts a longer nap.
LONGEST_NAP = 10.0
# The highest priority is worth this many seconds of waiting: it goes first among equals, and nobody starves.
PRIORITY_WORTH = 10.0
HIGHEST_PRIORITY = 255
URGENT: Final = datetime.fromtimestamp(0, UTC)
"""A due time for what no crowd of its namespace may hold up, however long that has waited."""
_PROMOTE_AT_ONCE = 1000


def _ignore(_seconds: float) -> None:
    """For a queue whose waits are not measured."""


class QueueClosed(Exception):
    """No more keys are given out."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A key whose time has come: what it asked for, and since when (real time) it waits for a worker."""

    ask: Ask
    since: float


class Queue:
    """Keys with a due time and a priority. A key is in the hands of at most one worker at any time."""

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
        self._worth = PRIORITY_WORTH / HIGHEST_PRIORITY * speed_of(clock)
        self._timers = Timers(clock, real)
        self._due: dict[Key, _Due] = {}
        self._ready = FairHeap()
        self._running: dict[Key, Ask | None] = {}
        self._running_by_namespace: Counter[str] = Counter()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._rings_at = 0.0
        self._closed = False

    @property
    def depth(self) -> int:
        """Keys that are due and wait for a worker."""
        return len(self._due)

    @property
    def waiting(self) -> int:
        """Keys whose time has not come."""
        return len(self._timers)

    @property
    def running(self) -> int:
        """Keys in the hands of workers."""
        return len(self._running)

    def add(self, key: Key, *, due: datetime | None = None, priority: int | None = None) -> None:
        """Asks for a look at `due` on the domain's clock, or now.

        The earliest time asked for wins. Without a priority the key keeps the one it has.
        """
        self._file(key, Ask(due=(due or self._clock.now()).timestamp(), at=None, priority=priority))

    def retry(self, key: Key, *, after: float | None = None, priority: int | None = None) -> float:
        """Asks for another look, in `after` real seconds or, after a failure, by the key's back-off; says how many."""
        pause = self._failures.failed(key) if after is None else after
        self._file(key, Ask(due=None, at=self._real() + pause, priority=priority))
        return pause

    def hasten(self, within: float) -> None:
        """What made keys fail is over: those that wait it out look again soon, each at a moment of its own."""
        for key in self._failures.failing():
            if key in self._timers:
                self._file(key, Ask(due=None, at=self._real() + within * self._failures.chance(), priority=None))

    def succeeded(self, key: Key) -> None:
        """The next failure of this key counts as the first."""
        self._failures.succeeded(key)

    def discard(self, key: Key) -> None:
        """Forgets what is asked for this key: its object is gone, or somebody else's now."""
        self._failures.succeeded(key)
        self._timers.remove(key)
        self._ready.remove(key)
        self._due.pop(key, None)
        if key in self._running:
            self._running[key] = None

    async def get(self) -> Key:
        """The next key, waiting for one if need be; give it back with `done`."""
        while True:
            if self._closed:
                raise QueueClosed
            key = self.take()
            if key is not None:
                return key
            await self._wake_up_call()

    def take(self) -> Key | None:
        """The next key if one is due now."""
        self._promote()
        key = self._ready.pop()
        if key is None:
            return None
        due = self._due.pop(key)
        self._running[key] = None
        self._count(key.namespace, 1)
        self._on_taken(self._real() - due.since)
        return key

    def done(self, key: Key) -> None:
        """Gives a key back; what was asked for it meanwhile counts from here."""
        again = self._running.pop(key)
        self._count(key.namespace, -1)
        if again is not None:
            self._file(key, again)
        self._wake(1)

    def recheck(self) -> None:
        """The clock was set: look at once what is due, rather than at the end of the current nap."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._ring()

    def close(self) -> None:
        """Ends all waiting in `get` with `QueueClosed`; keys in work are finished as usual."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._wake(len(self._waiters))

    def _file(self, key: Key, ask: Ask) -> None:
        if key in self._running:
            self._running[key] = ask.after(self._running[key])
            return
        due = self._due.get(key)
        if due is not None:
            self._make_ready(key, _Due(ask.after(due.ask), due.since))
            return
        if self._timers.add(key, ask):
            self._rearm()

    def _promote(self) -> None:
        for key, ask in self._timers.expired(_PROMOTE_AT_ONCE):
            self._make_ready(key, _Due(ask, self._real()))

    def _make_ready(self, key: Key, due: _Due) -> None:
        self._due[key] = due
        self._ready.push(key, due.ask.moment - due.ask.rank * self._worth)

    def _count(self, namespace: str, change: int) -> None:
        self._running_by_namespace[namespace] += change
        running = self._running_by_namespace[namespace]
        if not running:
            del self._running_by_namespace[namespace]
        if self._running_limit is None:
            return
        if running >= self._running_limit:
            self._ready.shut(namespace)
        else:
            self._ready.reopen(namespace)

    async def _wake_up_call(self) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        self._rearm()
        try:
            await waiter
        except asyncio.CancelledError:
            # The call may have come just before: somebody else must hear it then.
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self._wake(1)
            raise

    def _rearm(self) -> None:
        """Sets the alarm for the next key that becomes due; needed only while somebody waits."""
        if not self._waiters or self._closed:
            return
        pause = min(LONGEST_NAP, self._timers.seconds_left())
        loop = asyncio.get_running_loop()
        rings_at = loop.time() + pause
        if self._alarm is not None:
            if self._rings_at <= rings_at:
                return
            self._alarm.cancel()
        # Remembered here: the handles of some event loops cannot tell.
        self._rings_at = rings_at
        self._alarm = loop.call_later(pause, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._promote()
        self._wake(len(self._due))
        self._rearm()

    def _wake(self, workers: int) -> None:
        while workers > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                workers -= 1
