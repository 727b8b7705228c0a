"""The node's programs: taken from the user's cache, else built there once.

Two builds, as containerd's libraries are others than Kubernetes'. `python -m local.node.programs` makes them ahead of
time.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.binaries import announced
from local.build import PLAIN_FLAGS, Workshop, compiled, flags, go_module
from local.entry import Entry, fingerprint
from local.pins import GOMOD
from local.progress import Progress

KUBERNETES: Final = ("kubelet", "kube-proxy", "kube-scheduler")
CONTAINERD: Final = ("containerd", "containerd-shim-runc-v2", "ctr")


@dataclass(frozen=True, slots=True)
class NodePrograms:
    """Where each program is; containerd finds its shim beside itself."""

    kubelet: Path
    kube_proxy: Path
    kube_scheduler: Path
    containerd: Path
    ctr: Path


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> NodePrograms:
    """Where the programs are, built first if necessary. Raises LocalError with a sentence if that cannot be."""
    node, runtime = (entry.ensure(environ, progress) for entry in entries())
    return NodePrograms(
        kubelet=node / "kubelet",
        kube_proxy=node / "kube-proxy",
        kube_scheduler=node / "kube-scheduler",
        containerd=runtime / "containerd",
        ctr=runtime / "ctr",
    )


def entries() -> tuple[Entry, Entry]:
    """The two builds in the cache."""
    return (
        _entry("node", "kubelet, kube-proxy and kube-scheduler", KUBERNETES, flags()),
        _entry("containerd", "containerd", CONTAINERD, (*PLAIN_FLAGS, "-ldflags=-s -w")),
    )


def _entry(name: str, title: str, programs: Sequence[str], options: tuple[str, ...]) -> Entry:
    pinned = GOMOD / name

    def make(workshop: Workshop, progress: Progress) -> None:
        with go_module(workshop, pinned, progress) as go:
            compiled(go, workshop.target, title, options, progress)

    def missing(folder: Path) -> list[str]:
        return [program for program in programs if not os.access(folder / program, os.X_OK)]

    takes = "the first time takes about five minutes"
    return Entry(f"{name}-{fingerprint(pinned, options)}", title, takes, make, missing)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the programs if they are missing and prints where they are."""
    return announced(
        "python -m local.node.programs",
        "Makes sure that the programs of a real node are there, building them if need be, and prints their folder.",
        lambda: ensure(Progress()).kubelet.parent,
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
