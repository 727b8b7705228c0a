"""How many slow calls may be under way at once, so that a server that hangs never holds every worker.

A worker that finds no slot waits for one as long as all calls of its lane are quick, which is a matter of milliseconds.
Once one of them is slow it goes on with other keys, and its key is woken when a slot is free.
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
"""A call that takes longer counts as slow; so do the next ones of its lane, until one is answered in less."""
CREATE: Final = "create"


class Lane(NamedTuple):
    """Calls that hang together, if one of them does: the same verb on the same kind."""

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
    """What is under way and who waits in one lane, the longest first."""

    started: dict[int, float] = field(default_factory=dict)
    waiting: dict[Key, None] = field(default_factory=dict)
    invited: set[Key] = field(default_factory=set)
    """Woken, and a slot is kept for each."""
    slow: bool = False

    @property
    def taken(self) -> int:
        return len(self.started) + len(self.invited)

    @property
    def idle(self) -> bool:
        return not (self.taken or self.waiting or self.slow)


class Slots:
    """Half of the workers for one lane, an eighth while it is slow; a quarter is never used to create, an eighth never.

    `wake` is told which key has a slot now; `finished` must follow the pass of every key.
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
        """Set, and replaced by another, whenever a call has ended."""

    async def until_free(self, lane: Lane) -> None:
        """Returns when there is a slot, or when waiting for one would take long: some call under way is slow."""
        while (patience := self._patience(lane)) > 0:
            freed = self._freed
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await freed.wait()

    def _patience(self, lane: Lane) -> float:
        """Seconds until a call under way counts as slow; 0 if there is a slot, or none to wait for."""
        state = self._lanes.get(lane)
        if state is None or self._is_slow(state) or self._has_room(lane, state):
            return 0.0
        oldest = min((at for each in self._lanes.values() for at in each.started.values()), default=None)
        return 0.0 if oldest is None else max(0.0, oldest + SLOW_SECONDS - self._real())

    @contextmanager
    def held(self, lane: Lane, key: Key) -> Iterator[None]:
        """Holds a slot for one call; `NoSlotError` if there is none."""
        state = self._lanes.setdefault(lane, _State())
        state.invited.discard(key)
        if not self._has_room(lane, state):
            state.waiting.setdefault(key)
            raise NoSlotError(lane, slow=self._is_slow(state))
        state.waiting.pop(key, None)
        call, started = next(self._serial), self._real()
        state.started[call] = started
        try:
            yield
        finally:
            del state.started[call]
            state.slow = self._real() - started > SLOW_SECONDS
            self._invite()
            self._freed.set()
            self._freed = asyncio.Event()

    def finished(self, key: Key, *, waits: bool = False) -> None:
        """The pass of a key is over; unless it `waits` for a slot, it needs none any more."""
        if not self._lanes:
            return
        for state in self._lanes.values():
            state.invited.discard(key)
            if not waits:
                state.waiting.pop(key, None)
        self._invite()

    def _has_room(self, lane: Lane, state: _State) -> bool:
        if state.taken >= (self._slow if self._is_slow(state) else self._usual):
            return False
        if lane.verb == CREATE and self._taken(CREATE) >= self._most_created:
            return False
        return self._taken() < self._most

    def _taken(self, verb: str | None = None) -> int:
        return sum(state.taken for lane, state in self._lanes.items() if verb in (None, lane.verb))

    def _is_slow(self, state: _State) -> bool:
        oldest = next(iter(state.started.values()), None)
        return state.slow or (oldest is not None and self._real() - oldest > SLOW_SECONDS)

    def _invite(self) -> None:
        for lane, state in list(self._lanes.items()):
            while state.waiting and self._has_room(lane, state):
                key = next(iter(state.waiting))
                del state.waiting[key]
                state.invited.add(key)
                self._wake(key)
            if state.idle:
                del self._lanes[lane]
