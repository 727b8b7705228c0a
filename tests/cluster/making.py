"""A release that is made beside other tests: most of their time is waiting, and the image takes a minute or more."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.charts.helm import ROOT


class Making:
    """`python -m release`, from its start on."""

    def __init__(self, out: Path) -> None:
        self._out = out
        argv = [sys.executable, "-m", "release", f"--out={out}"]
        self._process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def files(self) -> Path:
        """The folder, as soon as all files are in it."""
        said, _ = self._process.communicate()
        assert self._process.returncode == 0, said
        return self._out

    def end(self) -> None:
        """Waits for its end if no test has, as a build that is killed leaves half an image in the cache.

        The files go: pytest would keep those of the last three runs, with an image each.
        """
        if self._process.poll() is None:
            self._process.communicate()
        shutil.rmtree(self._out)
