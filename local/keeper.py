"""Cleans up after an owner, however that ends: kills the servers it started and removes their directory.

Started by `local.processes` as a script of its own, with nothing but the standard library, so that it is up at once.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
from pathlib import Path

PREFIX = "5spot-local-"
ELSEWHERE = "elsewhere.json"
"""Where the owner notes, in the directory, what it wrote outside of it: the digest of each file by its path."""


def main() -> int:
    """Makes a directory, prints its name, waits for the owner to end, and leaves nothing behind.

    The arguments name further files of the owner's that make no sense without it.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    owner = os.getppid()
    try:
        directory = tempfile.mkdtemp(prefix=PREFIX)
    except OSError as error:
        say(str(error))
        return 1
    try:
        say(directory)
        wait_for_end(owner)
        kill_group()
    finally:
        take_back(Path(directory, ELSEWHERE))
        remove(Path(directory))
        for name in sys.argv[1:]:
            remove_unless_locked(Path(name))
    return 0


def say(line: str) -> None:
    """Writes to the owner where the directory is (an absolute path), or why there is none."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def wait_for_end(owner: int) -> None:
    """Returns when the owner closed our stdin or died.

    A child that the owner forked holds a copy of the pipe until it has joined our group and started its program, so
    the end of the pipe means that every server is in the group. Watching the owner itself is the second line: some
    other child of it may hold the pipe open.
    """
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    with contextlib.suppress(OSError):
        poll.register(os.pidfd_open(owner), select.POLLIN)
    if os.getppid() != owner:
        return
    poll.poll()


def kill_group() -> None:
    """Kills everything in our process group but ourselves, until nothing is left."""
    kill_members(os.getpgrp())


def kill_members(group: int) -> None:
    """Kills everything in a process group but ourselves, until nothing is left."""
    while others := members(group):
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        select.select([], [], [], 0.01)


def members(group: int) -> list[int]:
    """The living processes of a process group, without ourselves."""
    mine = os.getpid()
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())  # noqa: PTH208 -- /proc changes as we read
    return [pid for pid in pids if pid != mine and group_of(pid) == group]


def group_of(pid: int) -> int | None:
    """The process group of a living process; None for one that is gone, or dead and not collected by its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold spaces: count from behind it.
    state, _, group = stat.rpartition(")")[2].split()[:3]
    return None if state in "ZX" else int(group)


def remove(directory: Path) -> None:
    """Removes the directory; twice, as a dying server may just have written a last file."""
    for _ in range(2):
        shutil.rmtree(directory, ignore_errors=True)


def take_back(note: Path) -> None:
    """Removes what the owner wrote elsewhere, if it wrote anything."""
    with contextlib.suppress(OSError, ValueError):
        for name, written in json.loads(note.read_bytes()).items():
            remove_unless_changed(Path(name), written)


def remove_unless_changed(path: Path, written: str) -> None:
    """Removes a file that still is what the owner wrote; one that was changed since stays."""
    with contextlib.suppress(OSError):
        if digest(path.read_bytes()) == written:
            path.unlink()


def digest(content: bytes) -> str:
    """The digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


def remove_unless_locked(path: Path) -> None:
    """Removes a file; one that is locked has a living owner, who came after ours."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


if __name__ == "__main__":
    sys.exit(main())
