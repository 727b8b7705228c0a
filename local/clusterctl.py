"""Cluster API's clusterctl, with which tests move a Cluster to another management cluster.

`python -m local.clusterctl` makes it ahead of time.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from local.binaries import announced
from local.build import PLAIN_FLAGS
from local.pins import GOMOD
from local.program import Program
from local.progress import Progress

CLUSTERCTL: Final = Program("clusterctl", GOMOD / "clusterctl", (*PLAIN_FLAGS, "-ldflags=-s -w"), "two minutes")


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """Where clusterctl is, built first if needed. Raises LocalError, with a sentence for the user, if that fails."""
    return CLUSTERCTL.ensure(progress, environ)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds clusterctl if it is missing and prints where it is."""
    return announced(
        "python -m local.clusterctl",
        "Makes sure that the clusterctl which tests use is there, building it if need be, and prints its path.",
        lambda: ensure(Progress()),
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
