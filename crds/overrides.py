"""Overrides as the decision takes them: for a time, they decide about a machine instead of its schedule."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class OverrideState(StrEnum):
    """What an override makes of a machine while it is in force."""

    OPEN = "Open"
    CLOSED = "Closed"
    SCHEDULED = "Scheduled"
    """What the schedule says, in spite of older overrides."""


@dataclass(frozen=True, slots=True)
class Override:
    """A ScheduleOverride that the controller accepted and that names or selects a machine."""

    name: str
    state: OverrideState
    begins: datetime
    """`spec.from`, else `metadata.creationTimestamp`."""
    ends: datetime
    created: datetime
    requested_by: str = ""
    reason: str = ""

    def in_force(self, moment: datetime) -> bool:
        """Whether it decides at a moment, if no newer one does."""
        return self.begins <= moment < self.ends

    @property
    def rank(self) -> tuple[datetime, str]:
        """Of several in force the one with the highest rank decides: the newest, then the last by name."""
        return self.created, self.name


class OverrideSource(Protocol):
    """The accepted overrides of all namespaces."""

    def about(self, namespace: str, name: str, labels: Mapping[str, str]) -> tuple[Override, ...]:
        """Those that name or select a machine and have not ended, or ended within a day, in any order."""
        ...


class NoOverrides:
    """For a reader that has none."""

    def about(self, namespace: str, name: str, labels: Mapping[str, str]) -> tuple[Override, ...]:  # noqa: ARG002
        """None."""
        return ()


def deciding(overrides: Iterable[Override], moment: datetime) -> Override | None:
    """The one that decides at a moment: the newest in force."""
    return max((each for each in overrides if each.in_force(moment)), key=lambda each: each.rank, default=None)
