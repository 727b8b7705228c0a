"""Decides whether one process is the owner's and matches: the rules about pods, kernel threads and the agent itself."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.patterns import Patterns, reason
from agent.proc import Held, ProcTable, Stat
from agent.runtimes import works_for_pods

POD_CGROUP = "kubepods"
UP = ".."


@dataclass(frozen=True, slots=True)
class Match:
    """A process of the owner that matched a pattern."""

    pid: int
    started: int
    pattern: str
    reason: str
    seen_at: datetime


def wall_clock() -> datetime:
    """The host's time."""
    return datetime.now(UTC)


class Examiner:
    """Examines single processes of one process table."""

    def __init__(self, table: ProcTable, *, match_pods: bool = False, now: Callable[[], datetime] = wall_clock) -> None:
        self.table = table
        self.match_pods = match_pods
        self.now = now
        self.own_pid = table.own_pid()
        self._depths = namespace_depths(table.cgroups(1))

    def examine(self, pid: int, patterns: Patterns) -> Match | None:
        """The match that this process is, if it is one."""
        comm = self.table.comm(pid)
        if comm is None or patterns.match(comm, self.table.cmdline(pid)) is None:
            return None
        return self._confirm(pid, patterns)

    def _confirm(self, pid: int, patterns: Patterns) -> Match | None:
        # Read once more through an open directory: the first reads may have been of two processes that shared a pid.
        held = self.table.hold(pid)
        if held is None:
            return None
        with held:
            comm, stat = held.comm(), held.stat()
            if comm is None or stat is None:
                return None
            hit = patterns.match(comm, held.cmdline())
            if hit is None or self._exempt(pid, held, stat):
                return None
            return Match(pid, stat.started, hit.pattern, reason(hit, comm, pid), self.now())

    def _exempt(self, pid: int, held: Held, stat: Stat) -> bool:
        line = (pid, *self.table.ancestors(pid))
        return not stat.runs_user_code or self.own_pid in line or (not self.match_pods and self._for_pods(held, line))

    def _for_pods(self, held: Held, line: Iterable[int]) -> bool:
        cgroups = held.cgroups()
        if not cgroups or in_pod(cgroups, self._depths):
            return True  # where that is unknown, it does not count as the owner's
        # The kubelet mounts a pod's volumes by mount(8), whose command line holds names that a tenant chose.
        return any(works_for_pods(self.table.comm(pid), self.table.cmdline(pid)) for pid in line)


def in_pod(cgroups: Mapping[str, str], depths: Mapping[str, int]) -> bool:
    """Whether a process is a pod's, by its cgroup paths as seen from a namespace so deep in each hierarchy.

    In a container, paths are shown relative to the container's own cgroup, and that hides the word `kubepods` of a
    neighbour (`/../../pod1234/5678`). One that does not climb all the way up shares an ancestor with the agent's own
    pod, so it is a pod's too.
    """
    return any(POD_CGROUP in path or climbs(path) < depths.get(hierarchy, 0) for hierarchy, path in cgroups.items())


def namespace_depths(init_cgroups: Mapping[str, str]) -> dict[str, int]:
    """How far below the host's root our view begins in each hierarchy: as far as pid 1's path has to climb."""
    return {hierarchy: climbs(path) for hierarchy, path in init_cgroups.items()}


def climbs(path: str) -> int:
    """How many levels a relative cgroup path goes up: `/../../init.scope` is 2."""
    count = 0
    for part in path.strip("/").split("/"):
        if part != UP:
            break
        count += 1
    return count
