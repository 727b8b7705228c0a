"""The user's one control plane that `5spot local` started: a file which its owner keeps locked while it lives."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from local.command import explained
from local.entry import cache_folder
from local.errors import LocalError


@dataclass(frozen=True, slots=True)
class LocalState:
    """What other commands need to know of a running control plane."""

    owner: int
    started: str
    ready: bool = False
    kubeconfig: str = ""
    workload_kubeconfig: str = ""
    kubectl: str = ""
    logs: str = ""
    clusters: dict[str, str] = field(default_factory=dict)
    # Where the operator listens, and `clock` if that is simulated; empty without one.
    operator: dict[str, str] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)


class StateLock:
    """Held by the owner; no other process can register until it is released or the owner is dead."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path = path
        self._file = file

    def record(self, state: LocalState) -> None:
        """Replaces what other commands see."""
        self._file.seek(0)
        self._file.truncate()
        json.dump(to_dict(state), self._file)
        self._file.flush()


def path() -> Path:
    """Where the state is kept."""
    return cache_folder() / "local.json"


@contextmanager
def register(where: Path) -> Iterator[StateLock]:
    """Makes this process the owner; fails with a sentence if there is one."""
    with explained(f"registering in {where}"):
        where.parent.mkdir(parents=True, exist_ok=True)
        opened = _open_locked(where)
    with opened as file:
        try:
            yield StateLock(where, file)
        finally:
            where.unlink(missing_ok=True)  # still locked, so it is ours


def running(where: Path) -> LocalState | None:
    """The control plane that runs, if one does; what a dead owner left is nothing."""
    try:
        with where.open(encoding="utf-8") as file:
            return None if _lock(file, fcntl.LOCK_SH) else _parse(file.read())
    except FileNotFoundError:
        return None


def already(found: LocalState | None) -> str:
    """The message for a user who starts a second one."""
    by = f" (process {found.owner}, since {found.started})" if found and found.owner else ""
    return f"a control plane is running already{by}; `5spot local status` shows it, `5spot local down` stops it"


def to_dict(state: LocalState) -> dict[str, Any]:
    """As plain data, `State(**data)` is the way back."""
    return asdict(state)


def _open_locked(where: Path) -> IO[str]:
    while True:
        file = where.open("a+", encoding="utf-8")
        if not _lock(file, fcntl.LOCK_EX):
            file.close()
            raise LocalError(already(running(where)))
        # An owner that has just ended may have removed the file that we locked: then try the new one.
        if where.exists() and os.fstat(file.fileno()).st_ino == where.stat().st_ino:
            return file
        file.close()


def _lock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(text: str) -> LocalState:
    try:
        found: dict[str, Any] = json.loads(text)
        return LocalState(**found)
    except (ValueError, TypeError):  # the owner is writing it this very moment
        return LocalState(owner=0, started="just now")
