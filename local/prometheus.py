"""Debian's Prometheus, which tests start: the one on PATH, else unpacked once in the user's cache.

Unpacked rather than installed: the package would start a server that listens on every address.
"""

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from local import apt
from local.build import Workshop
from local.command import Tool, explained
from local.entry import Entry
from local.errors import LocalError
from local.progress import Progress

PACKAGE: Final = "prometheus"
PROGRAMS: Final = ("prometheus", "promtool")


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with both programs. Raises LocalError, with a sentence for the user, where they cannot be had."""
    found = shutil.which(PACKAGE, path=environ.get("PATH"))
    if found and not _missing(Path(found).parent):
        return Path(found).parent
    return entry().ensure(environ, progress) / "usr" / "bin"


def entry() -> Entry:
    """The package in the cache."""
    name = f"{PACKAGE}-{platform.machine()}"
    return Entry(name, "Debian's Prometheus", "it takes some seconds", _make, lambda made: _missing(made / "usr/bin"))


def _make(workshop: Workshop, progress: Progress) -> None:
    with explained(f"preparing {workshop.target}"):
        workshop.target.mkdir()
    tool, unpack = apt.find(workshop.environ, workshop.target), _unpacker(workshop)
    if tool is None:
        raise _no("apt-get")
    with progress.step("unpacking Debian's Prometheus"):
        _download(tool)
        (package,) = workshop.target.glob("*.deb")
        unpack.run("-x", package.name, ".")
        package.unlink()


def _download(tool: Tool) -> None:
    """The lists of packages may be missing or out of date: only root can fetch them."""
    try:
        apt.run(tool, "download", PACKAGE)
    except LocalError:
        if os.geteuid() != 0:
            raise
        apt.run(tool, "update")
        apt.run(tool, "download", PACKAGE)


def _unpacker(workshop: Workshop) -> Tool:
    found = shutil.which("dpkg-deb", path=workshop.environ.get("PATH"))
    if found is None:
        raise _no("dpkg-deb")
    return Tool(Path(found), workshop.environ, workshop.target)


def _no(program: str) -> LocalError:
    return LocalError(f"Prometheus comes from Debian packages, and this machine has no {program}: install Prometheus.")


def _missing(folder: Path) -> list[str]:
    return [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
