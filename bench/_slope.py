"""Whether memory grows: a robust slope with bounds, and a verdict only where the bounds allow one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import median

BLOCKS = 20
"""Samples that follow each other are much alike; the medians of so many stretches are taken as independent."""
ONE_SIDED_95 = 1.645
HOUR = 3600.0

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Growth:
    """MB an hour: the median of all slopes between two stretches, and between which bounds it lies, 19 to 1 each."""

    slope: float
    low: float
    high: float

    def verdict(self, bar: float) -> str:
        """`grows`, `flat`, or that the bounds are too wide to decide."""
        if self.low > bar:
            return "grows"
        return "flat" if self.high <= bar else "cannot judge"

    def described(self, bar: float) -> str:
        bounds = f"{self.slope:.1f} MB an hour ({self.low:.1f} to {self.high:.1f})"
        return f"{bounds}: {self.verdict(bar)}, the bar is {bar:g}"


def growth(points: Points, since: float) -> Growth | None:
    """Of seconds and MB after the warm-up, by Sen's method; None if there are too few samples."""
    kept = [(at, size) for at, size in points if at >= since]
    if len(kept) < 2 * BLOCKS:
        return None
    stretches = [_middle(kept[len(kept) * n // BLOCKS : len(kept) * (n + 1) // BLOCKS]) for n in range(BLOCKS)]
    slopes = sorted(HOUR * (b - a) / (later - at) for (at, a), (later, b) in combinations(stretches, 2))
    spread = ONE_SIDED_95 * sqrt(BLOCKS * (BLOCKS - 1) * (2 * BLOCKS + 5) / 18)
    low, high = int((len(slopes) - spread) / 2), int((len(slopes) + spread) / 2)
    return Growth(median(slopes), slopes[max(low, 0)], slopes[min(high, len(slopes) - 1)])


def _middle(points: Points) -> tuple[float, float]:
    return median(at for at, _ in points), median(size for _, size in points)
