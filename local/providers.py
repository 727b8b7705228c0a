"""Cluster API's own providers, which tests start: taken from KUBEBUILDER_ASSETS or the user's cache, else built once.

A build of its own for each: the demo does without them. `local.kubeadm` and `local.devmachine` say what they are.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from local import loopback
from local.binaries import ASSETS_VARIABLE
from local.build import PLAIN_FLAGS, Workshop, compiled, go_module, module_folder
from local.command import explained
from local.entry import Entry, fingerprint
from local.loopback import SourceChange
from local.progress import Progress

FLAGS: Final = (*PLAIN_FLAGS, "-ldflags=-s -w")


@dataclass(frozen=True, slots=True)
class ProviderFiles:
    """Where the program is, the folder with its CRDs, and the file with its webhook configurations."""

    program: Path
    crds: Path
    webhooks: Path

    @classmethod
    def under(cls, folder: Path, name: str) -> Self:
        """The provider as its parts are called in one folder."""
        return cls(folder / name, folder / f"{name}-crds", folder / f"{name}-webhooks.yaml")

    def missing(self) -> list[str]:
        """The names of the parts that are not there, or not usable."""
        usable = {
            self.program.name: os.access(self.program, os.X_OK) and not self.program.is_dir(),
            self.crds.name: any(self.crds.glob("*.yaml")),
            self.webhooks.name: self.webhooks.is_file(),
        }
        return [name for name, there in usable.items() if not there]


@dataclass(frozen=True, slots=True)
class ProviderBuild:
    """How a provider is built: pinned modules, what `go build` calls it, and where its manifests are."""

    name: str
    title: str
    pinned: Path
    built: str
    module: str
    config: str
    """The folder of its manifests in that module."""
    changes: tuple[SourceChange, ...] = ()

    def ensure(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> ProviderFiles:
        """Where the provider is, built first if needed. Raises LocalError, with a sentence for the user."""
        given = environ.get(ASSETS_VARIABLE)
        if given and not self.under(Path(given).absolute()).missing():
            return self.under(Path(given).absolute())
        return self.under(self.entry().ensure(environ, progress))

    def entry(self) -> Entry:
        """The build in the cache."""
        changed = (loopback.WEBHOOK.meant, *(change.meant for change in self.changes))
        return Entry(
            f"{self.pinned.name}-{fingerprint(self.pinned, (*FLAGS, *changed))}",
            f"Cluster API's {self.title}",
            "the first time takes about three minutes",
            self._make,
            lambda folder: self.under(folder).missing(),
        )

    def under(self, folder: Path) -> ProviderFiles:
        """The provider's parts in one folder."""
        return ProviderFiles.under(folder, self.name)

    def _make(self, workshop: Workshop, progress: Progress) -> None:
        made = self.under(workshop.target)
        with go_module(workshop, self.pinned, progress) as go:
            loopback.keep_to(go, *self.changes)
            compiled(go, workshop.target, f"the {self.title}", FLAGS, progress)
            manifests = module_folder(go, self.module) / self.config
            with explained(f"copying the provider's manifests into {workshop.target}"):
                (workshop.target / self.built).rename(made.program)
                made.crds.mkdir()
                for file in sorted((manifests / "crd" / "bases").glob("*.yaml")):
                    shutil.copyfile(file, made.crds / file.name)
                shutil.copyfile(manifests / "webhook" / "manifests.yaml", made.webhooks)
