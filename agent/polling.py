"""The source of last resort: looks through the process table a few times a second, reading as little as it can."""

from dataclasses import dataclass

from agent.proc import ProcTable

YOUNG_SECONDS = 10.0
FULL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Seen:
    """When a process was first seen; the inode distinguishes it from a later one with the same pid."""

    inode: int
    since: float


class PollingSource:
    """Names the processes that are worth reading at this moment."""

    name = "polling"

    def __init__(self, table: ProcTable, interval: float) -> None:
        self.table = table
        self.interval = interval
        self._seen: dict[int, Seen] = {}
        self._next = 0.0
        self._next_full = 0.0

    def open(self) -> None:
        """Start over: the next scan includes every process."""
        self._seen = {}
        self._next = 0.0
        self._next_full = 0.0

    def close(self) -> None:
        """Does nothing: no descriptor is open."""

    def fileno(self) -> int | None:
        """No descriptor: the caller waits for `delay` only."""
        return None

    def wait(self, now: float) -> float | None:
        """Seconds until the next scan."""
        return max(0.0, self._next - now)

    def candidates(self, now: float) -> list[int]:
        """New pids and young ones (they may fork first and exec later); every few seconds all of them."""
        if now < self._next:
            return []
        self._next = now + self.interval
        self._remember(now)
        if now >= self._next_full:
            self._next_full = now + FULL_SECONDS
            return list(self._seen)
        return [pid for pid, seen in self._seen.items() if now - seen.since < YOUNG_SECONDS]

    def _remember(self, now: float) -> None:
        before = self._seen
        self._seen = {}
        for pid, inode in self.table.identities():
            known = before.get(pid)
            self._seen[pid] = known if known is not None and known.inode == inode else Seen(inode, now)
