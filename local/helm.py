"""The helm that the chart is tested with: taken from KUBEBUILDER_ASSETS or the user's cache, else built there once.

A build of its own, as its libraries are newer than those of the control plane. `python -m local.helm` makes it ahead
of time.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from local.binaries import ASSETS_VARIABLE, announced
from local.build import PLAIN_FLAGS, Workshop, compiled, go_module
from local.entry import Entry, fingerprint
from local.pins import GOMOD, helm, helm_client
from local.progress import Progress

PINNED: Final = GOMOD / "helm"
PROGRAM: Final = "helm"
KUBERNETES_PACKAGES: Final = ("helm.sh/helm/v3/pkg/lint/rules", "helm.sh/helm/v3/pkg/chartutil")


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """Where helm is, built first if need be. Raises LocalError with a sentence if that cannot be."""
    given = environ.get(ASSETS_VARIABLE)
    if given and _usable(Path(given).absolute() / PROGRAM):
        return Path(given).absolute() / PROGRAM
    return entry().ensure(environ, progress) / PROGRAM


def entry() -> Entry:
    """The build in the cache."""
    return Entry(
        f"helm-{fingerprint(PINNED, flags())}", PROGRAM, "the first time takes about two minutes", _make, _missing
    )


def flags() -> tuple[str, ...]:
    """What `go build` is told. Stamped as helm's own releases are: charts ask it for these versions."""
    minor = helm_client().split(".")[1]
    kubernetes = " ".join(
        f"-X {package}.k8sVersionMajor=1 -X {package}.k8sVersionMinor={minor}" for package in KUBERNETES_PACKAGES
    )
    return (*PLAIN_FLAGS, f"-ldflags=-s -w -X helm.sh/helm/v3/internal/version.version={helm()} {kubernetes}")


def _make(workshop: Workshop, progress: Progress) -> None:
    with go_module(workshop, PINNED, progress) as go:
        compiled(go, workshop.target, PROGRAM, flags(), progress)


def _missing(folder: Path) -> list[str]:
    return [] if _usable(folder / PROGRAM) else [PROGRAM]


def _usable(program: Path) -> bool:
    return os.access(program, os.X_OK) and not program.is_dir()


def main(argv: Sequence[str] | None = None) -> int:
    """Builds helm if it is missing and prints where it is."""
    return announced(
        "python -m local.helm",
        "Makes sure that the helm which tests use is there, building it if need be, and prints its path.",
        lambda: ensure(Progress()),
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
