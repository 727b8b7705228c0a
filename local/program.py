"""One program that tests use: taken from KUBEBUILDER_ASSETS or the user's cache, else built there once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.binaries import ASSETS_VARIABLE
from local.build import Workshop, compiled, go_module
from local.entry import Entry, fingerprint
from local.progress import Progress


@dataclass(frozen=True, slots=True)
class Program:
    """A program with a Go module of its own in `pinned`, whose `tool` line names it; `takes` warns of its build."""

    name: str
    pinned: Path
    flags: tuple[str, ...]
    takes: str

    def ensure(self, progress: Progress, environ: Mapping[str, str]) -> Path:
        """Where it is, built first if need be. Raises LocalError with a sentence if that cannot be."""
        given = environ.get(ASSETS_VARIABLE)
        if given and _usable(Path(given).absolute() / self.name):
            return Path(given).absolute() / self.name
        return self.entry().ensure(environ, progress) / self.name

    def entry(self) -> Entry:
        """The build in the cache."""
        name = f"{self.name}-{fingerprint(self.pinned, self.flags)}"
        return Entry(name, self.name, f"the first time takes about {self.takes}", self._make, self._missing)

    def _make(self, workshop: Workshop, progress: Progress) -> None:
        with go_module(workshop, self.pinned, progress) as go:
            compiled(go, workshop.target, self.name, self.flags, progress)

    def _missing(self, folder: Path) -> list[str]:
        return [] if _usable(folder / self.name) else [self.name]


def _usable(program: Path) -> bool:
    return os.access(program, os.X_OK) and not program.is_dir()
