"""What a soak is asked for, and what came of it."""

from collections import Counter
from dataclasses import dataclass, field

from bench._bars import quantile
from service.runtime.cache import REMEMBER_SECONDS

WARM_UP = 30.0
FULL = REMEMBER_SECONDS
"""Until then memory grows by design: so long it is remembered which objects were deleted."""


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
    """Nobody may be in the wrong state for longer: a lease, five seconds, and what a busy machine adds."""


@dataclass
class Result:
    """What happened, and what should not have."""

    violations: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    late: list[float] = field(default_factory=list)
    """Seconds in the wrong state; counted anew when the replica that had to mend it was killed."""
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and MB of the replica that is never killed."""

    @property
    def slope(self) -> float | None:
        """MB an hour by least squares; of a long run its later part, when all that has a limit has reached it.

        None if there is too little to tell.
        """
        lasted = self.memory[-1][0] if self.memory else 0.0
        points = [(at, size) for at, size in self.memory if at >= (FULL if lasted >= 2 * FULL else WARM_UP)]
        if len(points) < 6:
            return None
        mean_at, mean = sum(at for at, _ in points) / len(points), sum(size for _, size in points) / len(points)
        spread = sum((at - mean_at) ** 2 for at, _ in points)
        return 3600 * sum((at - mean_at) * (size - mean) for at, size in points) / spread

    def described(self) -> str:
        told = ", ".join(f"{count} {what}" for what, count in sorted(self.happened.items()))
        if self.late:
            half, most = quantile(self.late, 0.5), quantile(self.late, 0.99)
            late = f"{half:.1f} s p50, {most:.1f} s p99, {max(self.late):.1f} s at most"
            told += f"\nin the wrong state after a boundary, an edit or a kill: {late}"
        if self.slope is not None:
            first, last = self.memory[0][1], self.memory[-1][1]
            told += (
                f"\nmemory of the replica that was never killed: {first:.0f} MB at first, {last:.0f} MB at the end, "
            )
            told += f"{self.slope:.1f} MB an hour"
        return told
