"""How long to wait after a failure: longer each time, and with jitter, so that not all retry at the same moment."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from service.runtime.key import Key


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles from `base` to `cap` seconds; `jitter` is the part of it that is random."""

    base: float = 30.0
    cap: float = 300.0
    jitter: float = 0.2

    def seconds(self, failures: int, chance: float) -> float:
        """The pause after so many failures in a row; `chance` in [0, 1) picks the point within the jitter."""
        full = min(self.cap, self.base * 2.0 ** min(failures - 1, 32))
        return full * (1 - self.jitter * chance)


@dataclass(slots=True)
class Failures:
    """Counts the failures in a row of each key."""

    backoff: Backoff = field(default_factory=Backoff)
    # Spreads load; nothing secret depends on it.
    chance: Callable[[], float] = random.random
    _counts: dict[Key, int] = field(default_factory=dict)

    def failed(self, key: Key) -> float:
        """Counts a failure; returns the seconds to wait."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return self.backoff.seconds(count, self.chance())

    def succeeded(self, key: Key) -> None:
        """Resets the count of a key."""
        self._counts.pop(key, None)

    def failing(self) -> tuple[Key, ...]:
        """The keys that failed and have not succeeded since."""
        return tuple(self._counts)
