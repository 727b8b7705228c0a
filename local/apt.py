"""Debian packages by apt-get: for the programs of a node, for Prometheus, and for the browser that tests start.

apt-get gives up at once where another process holds the lock of its lists: another worker of the same tests, or the
machine itself, which updates itself after its start.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from local.command import Tool
from local.errors import LocalError

LOCKED: Final = "Could not get lock"
PATIENCE: Final = 300.0
AGAIN_AFTER: Final = 2.0


def find(environ: Mapping[str, str], folder: Path) -> Tool | None:
    """apt-get, run in that folder; None on a machine without it."""
    found = shutil.which("apt-get", path=environ.get("PATH"))
    return Tool(Path(found), {**environ, "DEBIAN_FRONTEND": "noninteractive"}, folder) if found else None


def install(apt: Tool, packages: Sequence[str]) -> None:
    """Installs packages, with lists that are up to date: those of a new machine are missing or old."""
    run(apt, "update")
    run(apt, "install", "-y", "--no-install-recommends", *packages)


def run(apt: Tool, *words: str) -> None:
    """Runs apt-get, again while another process holds one of its locks."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            apt.run(*words, "-q", "-o", f"DPkg::Lock::Timeout={PATIENCE:.0f}")
        except LocalError as error:
            if LOCKED not in str(error) or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(AGAIN_AFTER)
