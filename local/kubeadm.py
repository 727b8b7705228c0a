"""Cluster API's kubeadm bootstrap provider: taken from KUBEBUILDER_ASSETS or the user's cache, else built there once.

A build of its own: the demo does without this provider, and only tests that ask for it start it. `python -m
local.kubeadm` builds it ahead of time.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from local import loopback
from local.binaries import ASSETS_VARIABLE, announced
from local.build import PLAIN_FLAGS, Workshop, compiled, go_module, module_folder
from local.command import explained
from local.entry import Entry, fingerprint
from local.pins import GOMOD
from local.progress import Progress

PINNED: Final = GOMOD / "kubeadm"
BUILT: Final = "kubeadm"
"""What `go build` calls the program; kubeadm itself and the kubeadm control plane provider go by the same name."""
FLAGS: Final = (*PLAIN_FLAGS, "-ldflags=-s -w")
MODULE: Final = "sigs.k8s.io/cluster-api"
CRDS: Final = "bootstrap/kubeadm/config/crd/bases"
WEBHOOKS: Final = "bootstrap/kubeadm/config/webhook/manifests.yaml"


@dataclass(frozen=True, slots=True)
class KubeadmProvider:
    """Where the program is, the folder with its CRDs, and the file with its webhook configurations."""

    program: Path
    crds: Path
    webhooks: Path

    @classmethod
    def under(cls, folder: Path) -> Self:
        """The provider as its parts are called in one folder."""
        name = "capi-kubeadm-bootstrap"
        return cls(folder / name, folder / f"{name}-crds", folder / f"{name}-webhooks.yaml")

    def missing(self) -> list[str]:
        """The names of the parts that are not there, or not usable."""
        usable = {
            self.program.name: os.access(self.program, os.X_OK) and not self.program.is_dir(),
            self.crds.name: any(self.crds.glob("*.yaml")),
            self.webhooks.name: self.webhooks.is_file(),
        }
        return [name for name, there in usable.items() if not there]


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> KubeadmProvider:
    """Where the provider is, built first if needed. Raises LocalError, with a sentence for the user, if that fails."""
    given = environ.get(ASSETS_VARIABLE)
    if given and not KubeadmProvider.under(Path(given).absolute()).missing():
        return KubeadmProvider.under(Path(given).absolute())
    return KubeadmProvider.under(entry().ensure(environ, progress))


def entry() -> Entry:
    """The build in the cache."""
    return Entry(
        f"kubeadm-{fingerprint(PINNED, (*FLAGS, loopback.MEANT))}",
        "Cluster API's kubeadm bootstrap provider",
        "the first time takes about three minutes",
        _make,
        lambda folder: KubeadmProvider.under(folder).missing(),
    )


def _make(workshop: Workshop, progress: Progress) -> None:
    made = KubeadmProvider.under(workshop.target)
    with go_module(workshop, PINNED, progress) as go:
        loopback.keep_to(go)
        compiled(go, workshop.target, "the kubeadm bootstrap provider", FLAGS, progress)
        source = module_folder(go, MODULE)
        with explained(f"copying the provider's manifests into {workshop.target}"):
            (workshop.target / BUILT).rename(made.program)
            made.crds.mkdir()
            for file in sorted((source / CRDS).glob("*.yaml")):
                shutil.copyfile(file, made.crds / file.name)
            shutil.copyfile(source / WEBHOOKS, made.webhooks)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the provider if it is missing and prints where it is."""
    return announced(
        "python -m local.kubeadm",
        "Makes sure that Cluster API's kubeadm bootstrap provider, which tests use, is there, building it if need be, "
        "and prints its path.",
        lambda: ensure(Progress()).program,
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
