"""How often a caller may try to log in: a few times at once, then one by one. Pure but for its clock."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

CALLERS_MAX: Final = 1024
"""Callers that are remembered; the one whose last attempt is the oldest is forgotten first."""


@dataclass(slots=True)
class Bucket:
    """Holds `size` attempts, and gets a new one every `refill` seconds."""

    size: int
    refill: float
    left: float
    at: float

    def take(self, now: float) -> float:
        """0 if an attempt is allowed now; else the seconds until the next one is."""
        self.left = min(self.size, self.left + (now - self.at) / self.refill)
        self.at = now
        if self.left < 1:
            return (1 - self.left) * self.refill
        self.left -= 1
        return 0.0


@dataclass(slots=True)
class LoginLimit:
    """Limits attempts of each caller, and of all together; one that succeeds does not count."""

    each: tuple[int, float] = (10, 6.0)
    """Attempts at once, and seconds until there is another one."""
    together: tuple[int, float] = (100, 0.5)
    monotonic: Callable[[], float] = time.monotonic
    _all: Bucket = field(init=False)
    _callers: OrderedDict[str, Bucket] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        """Begins with full buckets."""
        self._all = self._full(*self.together)

    def wait(self, caller: str) -> float:
        """0 if the caller may try now, which counts as an attempt; else how many seconds it has to wait."""
        now = self.monotonic()
        own = self._callers.setdefault(caller, self._full(*self.each))
        self._callers.move_to_end(caller)
        while len(self._callers) > CALLERS_MAX:
            self._callers.popitem(last=False)
        return own.take(now) or self._all.take(now)

    def succeeded(self, caller: str) -> None:
        """The attempt that was just counted led to a session: it is given back."""
        for bucket in (self._all, self._callers.get(caller)):
            if bucket is not None:
                bucket.left = min(bucket.size, bucket.left + 1)

    def _full(self, size: int, refill: float) -> Bucket:
        return Bucket(size, refill, size, self.monotonic())
