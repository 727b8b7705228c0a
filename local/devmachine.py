"""Cluster API's infrastructure provider for development, whose DevMachines can live in its memory.

`python -m local.devmachine` builds it ahead of time.
"""

import sys
from collections.abc import Sequence
from typing import Final

from local.binaries import announced
from local.loopback import SourceChange
from local.pins import GOMOD
from local.ports import LOOPBACK
from local.progress import Progress
from local.providers import ProviderBuild

MODULE: Final = "sigs.k8s.io/cluster-api/test"
PORTS: Final = "infrastructure/inmemory/pkg/server/mux.go"
BUILD: Final = ProviderBuild(
    name="capi-devmachine",
    title="in-memory infrastructure provider",
    pinned=GOMOD / "devmachine",
    built="docker",
    module=MODULE,
    config="infrastructure/docker/config",
    changes=(
        # Its port for debugging is always the same: two providers could not run side by side.
        SourceChange(MODULE, PORTS, 'fmt.Sprintf(":%d", options.DebugPort)', f'"{LOOPBACK}:0"'),
        SourceChange(
            MODULE,
            PORTS,
            'net.Listen("tcp", fmt.Sprintf(":%d", wcl.Port()))',
            f'net.Listen("tcp", fmt.Sprintf("{LOOPBACK}:%d", wcl.Port()))',
            times=2,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the provider if it is missing and prints where it is."""
    return announced(
        "python -m local.devmachine",
        "Makes sure that Cluster API's in-memory infrastructure provider, which tests use, is there, building it if "
        "need be, and prints its path.",
        lambda: BUILD.ensure(Progress()).program,
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
