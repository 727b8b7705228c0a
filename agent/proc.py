"""Reads the host's process table. Processes come and go while being read: an absent one is None, never an error."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

COMM_BYTES = 4096
CHUNK_BYTES = 16 * 1024
CMDLINE_BYTES = 2 * 1024 * 1024  # as much as a process can be given with the usual limits
KERNEL_THREAD = 0x00200000
MAX_ANCESTORS = 64


@dataclass(frozen=True, slots=True)
class Stat:
    """The few fields of `/proc/<pid>/stat` that the agent uses."""

    state: str
    parent: int
    flags: int
    started: int

    @property
    def runs_user_code(self) -> bool:
        """Whether this is neither a kernel thread nor a process that has already ended."""
        return not self.flags & KERNEL_THREAD and self.state not in "ZXx"


class ProcTable:
    """The process table under `root`, normally `/proc`."""

    def __init__(self, root: str = "/proc") -> None:
        self.root = root

    def identities(self) -> Iterator[tuple[int, int]]:
        """Every pid with its directory's inode, which differs once a pid is used again."""
        with os.scandir(self.root) as entries:
            for entry in entries:
                if entry.name.isdigit() and entry.name.isascii():
                    yield int(entry.name), entry.inode()

    def pids(self) -> list[int]:
        """Every pid there is now."""
        return [pid for pid, _ in self.identities()]

    def own_pid(self) -> int:
        """The agent's own pid as this table counts; in another pid namespace `os.getpid` would say something else."""
        try:
            return int(os.readlink(f"{self.root}/self"))  # noqa: PTH115 - pathlib is not worth its cost here
        except (OSError, ValueError):
            return os.getpid()

    def comm(self, pid: int) -> bytes | None:
        """The process's name, as the kernel holds it (15 bytes for most)."""
        return _name(_read(f"{self.root}/{pid}/comm", COMM_BYTES))

    def cmdline(self, pid: int) -> bytes:
        """The arguments joined by spaces; empty for kernel threads and for processes that are gone."""
        return _spaced(_read(f"{self.root}/{pid}/cmdline", CMDLINE_BYTES))

    def stat(self, pid: int) -> Stat | None:
        """State, parent, flags and start of a process."""
        return parse_stat(_read(f"{self.root}/{pid}/stat", COMM_BYTES))

    def cgroups(self, pid: int) -> dict[str, str]:
        """The process's cgroup path in each hierarchy."""
        return parse_cgroups(_read(f"{self.root}/{pid}/cgroup", CHUNK_BYTES))

    def ancestors(self, pid: int) -> Iterator[int]:
        """The pid's parent, grandparent and so on."""
        for _ in range(MAX_ANCESTORS):
            stat = self.stat(pid)
            if stat is None or stat.parent <= 0:
                return
            yield stat.parent
            pid = stat.parent

    def hold(self, pid: int) -> "Held | None":
        """An open handle to this process: a later one with the same pid cannot be read through it."""
        try:
            return Held(os.open(f"{self.root}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError:
            return None


class Held:
    """One process, read through its open directory."""

    def __init__(self, directory: int) -> None:
        self._directory = directory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._directory)

    def comm(self) -> bytes | None:
        """The process's name."""
        return _name(_read("comm", COMM_BYTES, self._directory))

    def cmdline(self) -> bytes:
        """The arguments joined by spaces."""
        return _spaced(_read("cmdline", CMDLINE_BYTES, self._directory))

    def stat(self) -> Stat | None:
        """State, parent, flags and start."""
        return parse_stat(_read("stat", COMM_BYTES, self._directory))

    def cgroups(self) -> dict[str, str]:
        """The cgroup path in each hierarchy."""
        return parse_cgroups(_read("cgroup", CHUNK_BYTES, self._directory))


def parse_stat(raw: bytes | None) -> Stat | None:
    """`pid (comm) state ppid …`, where comm may itself hold spaces and parentheses."""
    if not raw:
        return None
    fields = raw[raw.rfind(b")") + 1 :].split()
    try:
        return Stat(fields[0].decode("ascii"), int(fields[1]), int(fields[6]), int(fields[19]))
    except (IndexError, ValueError):
        return None


def parse_cgroups(raw: bytes | None) -> dict[str, str]:
    """Path by hierarchy, of lines such as `0::/user.slice/session.scope` or `4:memory:/`."""
    lines = (raw or b"").decode("utf-8", "replace").split("\n")
    fields = (line.split(":", 2) for line in lines if line.count(":") >= 2)
    return {hierarchy: path for hierarchy, _, path in fields}


def _name(raw: bytes | None) -> bytes | None:
    return None if raw is None else raw.removesuffix(b"\n")


def _spaced(raw: bytes | None) -> bytes:
    return (raw or b"").rstrip(b"\0").replace(b"\0", b" ")


def _read(path: str, limit: int, directory: int | None = None) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    try:
        return _read_fd(fd, limit)
    except OSError:
        return None
    finally:
        os.close(fd)


def _read_fd(fd: int, limit: int) -> bytes:
    # One small read does for nearly every process; only a long command line needs more.
    first = os.read(fd, min(4096, limit))
    if len(first) < min(4096, limit):
        return first
    parts, size = [first], len(first)
    while size < limit and (part := os.read(fd, min(CHUNK_BYTES, limit - size))):
        parts.append(part)
        size += len(part)
    return b"".join(parts)
