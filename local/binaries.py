"""The control plane's programs and data: taken from KUBEBUILDER_ASSETS or the user's cache, else built there once.

`ensure` is called by everything that starts servers; `python -m local.binaries` does the same ahead of time.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self

from local import loopback
from local.build import STAGE_FILES, build, flags
from local.entry import Entry, fingerprint
from local.errors import LocalError
from local.pins import GOMOD
from local.progress import Progress

ASSETS_VARIABLE: Final = "KUBEBUILDER_ASSETS"
FAILED: Final = 1
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Assets:
    """Where each program is, and the two folders of manifests that come with them."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path
    capi_core: Path
    kwok: Path
    capi_crds: Path
    kwok_stages: Path

    @classmethod
    def under(cls, folder: Path) -> Self:
        """The assets as they are called in one folder: `kube-apiserver`, `capi-crds` and so on."""
        return cls(**{part.name: folder / part.name.replace("_", "-") for part in fields(cls)})

    def missing(self) -> list[str]:
        """The names of those that are missing or unusable."""
        programs = (
            self.etcd,
            self.kube_apiserver,
            self.kube_controller_manager,
            self.kubectl,
            self.capi_core,
            self.kwok,
        )
        lacking = [program.name for program in programs if not os.access(program, os.X_OK) or program.is_dir()]
        if not any(self.capi_crds.glob("*.yaml")):
            lacking.append(self.capi_crds.name)
        if not all((self.kwok_stages / Path(name).name).is_file() for name in STAGE_FILES):
            lacking.append(self.kwok_stages.name)
        return lacking


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> Assets:
    """Usable assets, built first if needed. Raises LocalError, with a sentence for the user, if that fails."""
    return _given(environ, progress) or Assets.under(_entry().ensure(environ, progress))


def key() -> str:
    """Names a build by everything that decides its outcome: pinned versions, flags, our change and platform."""
    return fingerprint(GOMOD, (*flags(), loopback.WEBHOOK.meant))


def _given(environ: Mapping[str, str], progress: Progress) -> Assets | None:
    folder = environ.get(ASSETS_VARIABLE)
    if not folder:
        return None
    assets = Assets.under(Path(folder).absolute())
    lacking = assets.missing()
    if not lacking:
        return assets
    progress.say(f"{ASSETS_VARIABLE}={folder} lacks {', '.join(lacking)}: using 5spot's own build instead.")
    return None


def _entry() -> Entry:
    title, takes = "the local control plane", "the first time takes several minutes"
    return Entry(key(), title, takes, build, lambda folder: Assets.under(folder).missing())


def announced(program: str, description: str, ensured: Callable[[], Path], argv: Sequence[str] | None) -> int:
    """A command that provides something and prints where it is, or why it cannot."""
    argparse.ArgumentParser(prog=program, description=description).parse_args(argv)
    try:
        sys.stdout.write(f"{ensured()}\n")
    except LocalError as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Builds what is missing and prints where everything is."""
    return announced(
        "python -m local.binaries",
        "Builds the local control plane's programs unless they are there already, "
        "and prints their folder. Set KUBEBUILDER_ASSETS to use programs of your own.",
        lambda: ensure(Progress()).etcd.parent,
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
