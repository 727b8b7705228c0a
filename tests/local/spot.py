"""The command `5spot` in an environment of its own, for tests that call it as a user would."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from local.binaries import ASSETS_VARIABLE, Assets

COMMAND = (sys.executable, "-c", "import sys; from service.cli import main; sys.exit(main())")
PATIENCE = 400


@dataclass(frozen=True, slots=True)
class Spot:
    """Calls with a cache and a folder for temporary files that no other test uses."""

    environment: dict[str, str]

    @classmethod
    def at(cls, folder: Path, assets: Assets) -> "Spot":
        # Not below `folder`: sockets are made in it, and test runners nest too deeply for them.
        temporary = tempfile.mkdtemp(prefix="spot")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        mine = {"XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": temporary}
        return cls({**os.environ, ASSETS_VARIABLE: str(assets.etcd.parent), **mine})

    def __call__(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *words], env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    @property
    def files(self) -> list[Path]:
        """What it has left on disk."""
        folders = (Path(self.environment[name]) for name in ("XDG_CACHE_HOME", "TMPDIR"))
        return [path for folder in folders for path in folder.rglob("*") if path.is_file()]
