"""The domain's clock: wall time for schedules, grace and drain, real or simulated.

Leases, back-off and HTTP time-outs run on real time and never ask this module.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time that schedules live in."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...

    def real_seconds(self, span: timedelta) -> float:
        """How many real seconds pass while this clock advances by `span`."""
        ...

    def shown_at(self, real: datetime) -> datetime:
        """What this clock showed at an instant of real time, such as an API server's time stamp."""
        ...


class SystemClock:
    """The host's wall clock."""

    def now(self) -> datetime:
        """The current instant."""
        return datetime.now(UTC)

    def real_seconds(self, span: timedelta) -> float:
        """Wall time is real time."""
        return span.total_seconds()

    def shown_at(self, real: datetime) -> datetime:
        """The same instant."""
        return real


@dataclass(frozen=True, slots=True)
class SimulatedClock:
    """Starts at `at` and runs `speed` times as fast as real time; for demo, tests and benchmarks."""

    at: datetime
    speed: float
    started: float

    @classmethod
    def starting(cls, at: datetime, speed: float = 1.0) -> "SimulatedClock":
        """A clock that shows `at` now."""
        if speed <= 0:
            raise ValueError(f"speed must be more than 0, not {speed}")
        return cls(at=at.astimezone(UTC), speed=speed, started=time.monotonic())

    def now(self) -> datetime:
        """The simulated instant."""
        return self.at + timedelta(seconds=(time.monotonic() - self.started) * self.speed)

    def real_seconds(self, span: timedelta) -> float:
        """A fast clock needs fewer real seconds."""
        return span.total_seconds() / self.speed

    def shown_at(self, real: datetime) -> datetime:
        """As far back from now as it is in real time, at this clock's speed."""
        return self.now() - (datetime.now(UTC) - real) * self.speed


@dataclass(slots=True)
class ManualClock:
    """Stands still until a test moves it."""

    at: datetime

    def now(self) -> datetime:
        """The instant last set."""
        return self.at

    def real_seconds(self, span: timedelta) -> float:
        """Nothing passes by itself; due at once or not at all."""
        return 0.0 if span <= timedelta(0) else float("inf")

    def shown_at(self, real: datetime) -> datetime:  # noqa: ARG002 - it has no past
        """The instant last set: nothing else is known."""
        return self.at

    def advance(self, span: timedelta) -> None:
        """Moves time forward (or back)."""
        self.at += span
