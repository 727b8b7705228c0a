"""Builds in the user's cache: one process makes each build once, and moves it into place when it is complete."""

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from local.build import Workshop
from local.command import explained
from local.errors import LocalError
from local.progress import Progress


@dataclass(frozen=True, slots=True)
class Entry:
    """One build: its name in the cache, title and duration for people, how to make it, and what it lacks."""

    name: str
    title: str
    takes: str
    make: Callable[[Workshop, Progress], None]
    missing: Callable[[Path], list[str]]

    def ensure(self, environ: Mapping[str, str], progress: Progress) -> Path:
        """The complete folder, built first if necessary; raises LocalError if the build fails."""
        cache = cache_folder(environ)
        final = cache / self.name
        if not self.missing(final):
            return final
        with self._locked(cache / f"{self.name}.lock", progress) as lock:
            if self.missing(final):  # else another process has built it in the meantime
                self._build(Workshop(cache, cache / f"{self.name}.building", lock.fileno(), environ), final, progress)
        return final

    def _build(self, workshop: Workshop, final: Path, progress: Progress) -> None:
        progress.say(f"building {self.title} into {final}; {self.takes}")
        with explained(f"clearing {workshop.cache}"):
            _remove(workshop.target)  # left over from a build that was killed
            _remove(final)  # incomplete, or it would not be built again
        try:
            self.make(workshop, progress)
            self._check(workshop.target)
            with explained(f"moving the programs to {final}"):
                workshop.target.rename(final)
        finally:
            shutil.rmtree(workshop.target, ignore_errors=True)

    def _check(self, folder: Path) -> None:
        lacking = self.missing(folder)
        if lacking:
            raise LocalError(
                f"the build succeeded but made no {', '.join(lacking)}: go.mod does not name every program."
            )

    @contextmanager
    def _locked(self, path: Path, progress: Progress) -> Iterator[IO[bytes]]:
        """Holds the lock within the block.

        Go's processes inherit the lock: the next builder also waits for the compilers of one that was killed.
        """
        with explained(f"locking {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("ab")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with progress.step(f"waiting for another process that is building {self.title}"):
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`$XDG_CACHE_HOME/5spot`, by default in the user's home."""
    base, home = environ.get("XDG_CACHE_HOME"), environ.get("HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "5spot"
    if home and Path(home).is_absolute():
        return Path(home) / ".cache" / "5spot"
    raise LocalError("there is no cache folder for the control plane: set XDG_CACHE_HOME or HOME to an absolute path.")


def fingerprint(gomod: Path, flags: Iterable[str]) -> str:
    """A name made of everything that affects the build: pinned versions, flags and platform."""
    digest = hashlib.sha256()
    for part in ((gomod / "go.mod").read_bytes(), (gomod / "go.sum").read_bytes(), *map(str.encode, flags)):
        digest.update(len(part).to_bytes(8, "big") + part)
    digest.update(f"{sys.platform} {os.uname().machine}".encode())
    return digest.hexdigest()[:16]


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
