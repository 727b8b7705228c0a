"""Cluster API's kubeadm bootstrap provider. `python -m local.kubeadm` builds it ahead of time."""

import sys
from collections.abc import Sequence
from typing import Final

from local.binaries import announced
from local.pins import GOMOD
from local.progress import Progress
from local.providers import ProviderBuild

BUILD: Final = ProviderBuild(
    name="capi-kubeadm-bootstrap",
    title="kubeadm bootstrap provider",
    pinned=GOMOD / "kubeadm",
    # kubeadm itself and the kubeadm control plane provider go by the same name.
    built="kubeadm",
    module="sigs.k8s.io/cluster-api",
    config="bootstrap/kubeadm/config",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the provider if it is missing and prints where it is."""
    return announced(
        "python -m local.kubeadm",
        "Makes sure that Cluster API's kubeadm bootstrap provider, which tests use, is there, building it if need be, "
        "and prints its path.",
        lambda: BUILD.ensure(Progress()).program,
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
