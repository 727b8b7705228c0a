"""What can happen at a write."""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """One fault; its value is what tables and selections call it."""

    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"
    CRASH_STALE = "crash-stale"
    KILL_BEFORE = "kill-before"
    KILL_AFTER = "kill-after"
    CONFLICT = "409"
    THROTTLED = "429"
    FAILED = "500"
    CUT = "cut"
    SILENT = "timeout"
    WATCH_DROPPED = "watch-dropped"
    STALE_LIST = "stale-list"
    EXPIRED = "410"

    @property
    def meaning(self) -> str:
        return MEANINGS[self]

    @property
    def is_death(self) -> bool:
        """Whether the operator must be started again."""
        return self in DEATHS

    @property
    def is_real(self) -> bool:
        """Whether the operator is a process of its own, ended by SIGKILL."""
        return self in REAL

    @property
    def reaches_server(self) -> bool:
        """Whether the API server carries the write out."""
        return self not in NOT_SENT


MEANINGS = {
    Fault.CRASH_BEFORE: "the operator dies just before it sends the write",
    Fault.CRASH_AFTER: "the operator dies when the write is stored, before it gets the answer",
    Fault.CRASH_STALE: "as before, and the next operator first gets lists from before the write",
    Fault.KILL_BEFORE: "`5spot run` gets SIGKILL just before the write is stored",
    Fault.KILL_AFTER: "`5spot run` gets SIGKILL when the write is stored, before it gets the answer",
    Fault.CONFLICT: "the answer is 409 Conflict",
    Fault.THROTTLED: "the answer is 429 with Retry-After",
    Fault.FAILED: "the answer is 500",
    Fault.CUT: "the write is stored, and the connection is cut before the answer",
    Fault.SILENT: "the write is stored, and no answer ever comes",
    Fault.WATCH_DROPPED: "all watches are cut as the write is stored",
    Fault.STALE_LIST: "all watches expire, and the next lists are from before the write",
    Fault.EXPIRED: "all watches end with 410 Gone as the write is stored",
}
REAL = frozenset({Fault.KILL_BEFORE, Fault.KILL_AFTER})
DEATHS = REAL | {Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_STALE}
NOT_SENT = frozenset({Fault.CRASH_BEFORE, Fault.KILL_BEFORE, Fault.CONFLICT, Fault.THROTTLED, Fault.FAILED})


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """The n-th write with a certain label, from 1."""

    label: str
    nth: int

    def __str__(self) -> str:
        return f"{self.label} #{self.nth}"


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault at a moment."""

    fault: Fault
    moment: Moment
