"""The clock of schedules, grace periods and drains: wall time, real or simulated.

Leases, back-off and HTTP timeouts run on real time and never use this module.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol


class Clock(Protocol):
    """The time by which schedules open and close."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...

    def real_seconds(self, span: timedelta) -> float:
        """How many real seconds pass while this clock advances by `span`."""
        ...

    def shown_at(self, real: datetime) -> datetime:
        """What this clock showed at an instant of real time, such as a timestamp of an API server."""
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
            raise ValueError(f"the speed of the clock must be more than 0, not {speed}")
        return cls(at=at.astimezone(UTC), speed=speed, started=time.monotonic())

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "SimulatedClock":
        """The clock that `to_json` described, perhaps in another process."""
        passed = datetime.now(UTC) - datetime.fromisoformat(found["real"])
        return cls.starting(datetime.fromisoformat(found["shown"]) + passed * found["speed"], found["speed"])

    def to_json(self) -> dict[str, Any]:
        """What it shows, at which real time, and how fast it runs."""
        return {"shown": self.now().isoformat(), "real": datetime.now(UTC).isoformat(), "speed": self.speed}

    def now(self) -> datetime:
        """The simulated instant."""
        return self.at + timedelta(seconds=(time.monotonic() - self.started) * self.speed)

    def real_seconds(self, span: timedelta) -> float:
        """A fast clock needs fewer real seconds."""
        return span.total_seconds() / self.speed

    def shown_at(self, real: datetime) -> datetime:
        """Now, less the real time that has passed since then at this clock's speed."""
        return self.now() - (datetime.now(UTC) - real) * self.speed


@dataclass(slots=True)
class ManualClock:
    """Stands still until a test moves it."""

    at: datetime

    def now(self) -> datetime:
        """The instant last set."""
        return self.at

    def real_seconds(self, span: timedelta) -> float:
        """Time does not pass by itself: no seconds for a span that is over, else infinitely many."""
        return 0.0 if span <= timedelta(0) else float("inf")

    def shown_at(self, real: datetime) -> datetime:  # noqa: ARG002 - it keeps no history
        """The instant last set; earlier ones are not kept."""
        return self.at

    def advance(self, span: timedelta) -> None:
        """Moves time forward (or back)."""
        self.at += span
