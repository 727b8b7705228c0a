"""What a soak is asked for, and what came of it."""

from collections import Counter
from dataclasses import dataclass, field

from bench._bars import quantile
from bench._slope import Growth, growth
from service.runtime.cache import TOMBSTONE_SECONDS

MOST_SLOPE = 5.0
"""MB an hour that memory may grow by after the warm-up: the limit of the chart is weeks away then."""
FULL = TOMBSTONE_SECONDS
"""Until then memory grows by design: deleted objects are remembered for so long."""
MOST_EARLY_SLOPE = 120.0
"""MB an hour in a run that ends before that: twice as much as what fills up by design takes in its first minutes."""
STARTED = 60.0
"""Until then modules are loaded, and caches and connections come into being."""


@dataclass(frozen=True)
class Settings:
    """How much of everything."""

    seconds: float
    objects: int = 60
    replicas: int = 3
    shards: int = 2
    kill_every: float = 15.0
    edits_per_second: float = 2.0
    forgotten_after: float = 25.0
    """No object may be in the wrong state for longer: a lease, five seconds, and what a busy machine adds."""


@dataclass
class Result:
    """What happened, and what should not have."""

    violations: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    late: list[float] = field(default_factory=list)
    """Seconds in the wrong state; counted from zero again when the replica that had to act was killed."""
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and MB that the replica that is never killed has for itself."""

    @property
    def growth(self) -> Growth | None:
        """Of the later part of a run; None if it was too short for that."""
        return growth(self.memory, FULL if self._is_long else STARTED)

    @property
    def most_slope(self) -> float:
        """What can be asked of a run of this length: in a short one only a fast leak stands out."""
        return MOST_SLOPE if self._is_long else MOST_EARLY_SLOPE

    @property
    def leaks(self) -> bool:
        """Whether memory certainly grows by more than that."""
        return self.growth is not None and self.growth.verdict(self.most_slope) == "grows"

    @property
    def _is_long(self) -> bool:
        """Whether all that has a limit had reached it for half of the run."""
        return bool(self.memory) and self.memory[-1][0] >= 2 * FULL

    def described(self) -> str:
        lines = ", ".join(f"{count} {what}" for what, count in sorted(self.happened.items()))
        if self.late:
            half, most = quantile(self.late, 0.5), quantile(self.late, 0.99)
            late = f"{half:.1f} s p50, {most:.1f} s p99, {max(self.late):.1f} s at most"
            lines += f"\nin the wrong state after a boundary, an edit or a kill: {late}"
        if self.memory:
            (_, first), (lasted, last) = self.memory[0], self.memory[-1]
            lines += f"\nmemory of the replica never killed: {first:.0f} MB at first, {last:.0f} MB at the end, "
            cannot = f"which says nothing after {lasted / 60:.1f} minutes"
            lines += self.growth.described(self.most_slope) if self.growth else cannot
        return lines
