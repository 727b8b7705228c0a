"""How many calls may run at once, so that a server that hangs never blocks every worker.

A worker that finds no slot waits for one as long as all calls of its lane are quick, which takes milliseconds. Once one
of them is slow, the worker goes on with other keys, and its key is woken when a slot is free.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from service.runtime.key import Key

SLOW_SECONDS: Final = 1.0
"""A call that takes longer counts as slow; so do the next ones of its lane, until one takes less."""
CREATE: Final = "create"


class Lane(NamedTuple):
    """Calls that are likely to hang together: the same verb on the same kind."""

    kind: str
    verb: str


class NoSlotError(Exception):
    """All slots of a lane are taken; the key is woken when one is free."""

    def __init__(self, lane: Lane, *, slow: bool) -> None:
        super().__init__(f"{lane.verb} {lane.kind}")
        self.lane = lane
        self.slow = slow


@dataclass(slots=True)
class _State:
    """The calls that run in one lane, and the keys that wait for a slot, longest first."""

    started: dict[int, float] = field(default_factory=dict)
    waiting: dict[Key, None] = field(default_factory=dict)
    reserved: set[Key] = field(default_factory=set)
    """Keys that were woken; a slot is reserved for each."""
    slow: bool = False

    @property
    def taken(self) -> int:
        return len(self.started) + len(self.reserved)

    @property
    def idle(self) -> bool:
        return not (self.taken or self.waiting or self.slow)


class Slots:
    """One lane may use half of the workers, and an eighth while it is slow.

    All lanes together leave an eighth of the workers free, and those that create leave a quarter. `wake` is called with
    a key that has a slot now; call `finished` after the pass of every key.
    """

    def __init__(self, workers: int, wake: Callable[[Key], None], real: Callable[[], float] = time.monotonic) -> None:
        self._wake = wake
        self._real = real
        self._usual = max(1, workers // 2)
        self._slow = max(1, workers // 8)
        self._most = max(1, workers - max(1, workers // 8))
        self._most_created = max(1, workers - max(1, workers // 4))
        self._lanes: dict[Lane, _State] = {}
        self._serial = count()
        self._freed = asyncio.Event()
        """Set, and replaced by a new one, whenever a call ends."""

    async def until_free(self, lane: Lane) -> None:
        """Returns when there is a slot, or when waiting for one would take long because a running call is slow."""
        while (seconds := self._seconds_to_wait(lane)) > 0:
            freed = self._freed
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await freed.wait()

    def _seconds_to_wait(self, lane: Lane) -> float:
        """Seconds until a running call counts as slow; 0 if there is a slot, or none to wait for."""
        state = self._lanes.get(lane)
        if state is None or self._is_slow(state) or self._has_room(lane, state):
            return 0.0
        oldest = min((at for each in self._lanes.values() for at in each.started.values()), default=None)
        if oldest is None:
            return 0.0
        return max(0.0, oldest + SLOW_SECONDS - self._real())

    @contextmanager
    def held(self, lane: Lane, key: Key) -> Iterator[None]:
        """Takes a slot for one call; `NoSlotError` if there is none."""
        state = self._lanes.setdefault(lane, _State())
        state.reserved.discard(key)
        if not self._has_room(lane, state):
            state.waiting.setdefault(key)
            raise NoSlotError(lane, slow=self._is_slow(state))
        state.waiting.pop(key, None)
        call = next(self._serial)
        started = self._real()
        state.started[call] = started
        try:
            yield
        finally:
            del state.started[call]
            state.slow = self._real() - started > SLOW_SECONDS
            self._grant()
            self._freed.set()
            self._freed = asyncio.Event()

    def finished(self, key: Key, *, waits: bool = False) -> None:
        """The pass of a key is over; unless it `waits` for a slot, it needs none."""
        if not self._lanes:
            return
        for state in self._lanes.values():
            state.reserved.discard(key)
            if not waits:
                state.waiting.pop(key, None)
        self._grant()

    def _has_room(self, lane: Lane, state: _State) -> bool:
        limit = self._slow if self._is_slow(state) else self._usual
        if state.taken >= limit:
            return False
        if lane.verb == CREATE and self._taken(CREATE) >= self._most_created:
            return False
        return self._taken() < self._most

    def _taken(self, verb: str | None = None) -> int:
        return sum(state.taken for lane, state in self._lanes.items() if verb in (None, lane.verb))

    def _is_slow(self, state: _State) -> bool:
        if state.slow:
            return True
        oldest = next(iter(state.started.values()), None)
        return oldest is not None and self._real() - oldest > SLOW_SECONDS

    def _grant(self) -> None:
        for lane, state in list(self._lanes.items()):
            while state.waiting and self._has_room(lane, state):
                key = next(iter(state.waiting))
                del state.waiting[key]
                state.reserved.add(key)
                self._wake(key)
            if state.idle:
                del self._lanes[lane]
