"""The helm that the chart is tested with: taken from KUBEBUILDER_ASSETS or the user's cache, else built there once.

A build of its own, as its libraries are newer than those of the control plane. `python -m local.helm` makes it ahead
of time.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from local.binaries import announced
from local.build import PLAIN_FLAGS
from local.pins import GOMOD, helm, helm_client
from local.program import Program
from local.progress import Progress

PINNED: Final = GOMOD / "helm"
KUBERNETES_PACKAGES: Final = ("helm.sh/helm/v3/pkg/lint/rules", "helm.sh/helm/v3/pkg/chartutil")


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """Where helm is, built first if needed. Raises LocalError, with a sentence for the user, if that fails."""
    return program().ensure(progress, environ)


def program() -> Program:
    """Helm as we build it."""
    return Program("helm", PINNED, flags(), "two minutes")


def flags() -> tuple[str, ...]:
    """The flags of `go build`. Stamped as helm's own releases are: charts ask for these versions."""
    minor = helm_client().split(".")[1]
    kubernetes = " ".join(
        f"-X {package}.k8sVersionMajor=1 -X {package}.k8sVersionMinor={minor}" for package in KUBERNETES_PACKAGES
    )
    return (*PLAIN_FLAGS, f"-ldflags=-s -w -X helm.sh/helm/v3/internal/version.version={helm()} {kubernetes}")


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
