"""Builds programs from the Go module proxy: the control plane's, with the data that their modules carry, and others."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local import loopback
from local.command import Tool, explained
from local.errors import LocalError
from local.pins import GOMOD, kubernetes
from local.progress import Progress, Update
from local.toolchain import find_go

PLAIN_FLAGS: Final = ("-trimpath", "-buildvcs=false")
VERSION_PACKAGES: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

# Programs whose names say too little: what `go build` calls them, and what we call them.
RENAMED: Final = {"server": "etcd", "core": "capi-core"}
CRDS: Final = ("sigs.k8s.io/cluster-api", "core/config/crd/bases")
STAGES: Final = ("sigs.k8s.io/kwok", "kustomize/stage")
STAGE_FILES: Final = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


def flags() -> tuple[str, ...]:
    """The flags of `go build`; part of a build's identity."""
    version = kubernetes()
    major, minor, _ = version.removeprefix("v").split(".")
    # Unstamped, the servers call themselves v0.0.0-master and Cluster API refuses to start.
    stamps = " ".join(
        f"-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        for package in VERSION_PACKAGES
    )
    return (*PLAIN_FLAGS, f"-ldflags=-s -w {stamps}")


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where a build happens: our cache, the folder being filled, and the lock that Go's processes keep holding."""

    cache: Path
    target: Path
    lock: int
    environ: Mapping[str, str]


def build(workshop: Workshop, progress: Progress) -> None:
    """Fills the target folder with all programs of the control plane and their data."""
    with go_module(workshop, GOMOD, progress) as go:
        loopback.keep_to(go)
        compiled(go, workshop.target, "etcd, Kubernetes, Cluster API and kwok", flags(), progress)
        with explained(f"naming the programs in {workshop.target}"):
            for built, ours in RENAMED.items():
                (workshop.target / built).rename(workshop.target / ours)
        _copy_data(go, workshop.target)


@contextmanager
def go_module(workshop: Workshop, gomod: Path, progress: Progress) -> Iterator[Tool]:
    """Go in a copy of the module whose `tool` lines name what to build; the copy is gone after the block."""
    with go_folder(workshop, progress) as go:
        with explained(f"preparing {workshop.target}"):
            for name in ("go.mod", "go.sum"):
                shutil.copyfile(gomod / name, go.folder / name)
        yield go


@contextmanager
def go_folder(workshop: Workshop, progress: Progress) -> Iterator[Tool]:
    """Go in an empty folder, which is gone after the block."""
    go = find_go(workshop.cache, workshop.environ, progress)
    source = workshop.target / "source"
    with explained(f"preparing {workshop.target}"):
        (source / "tmp").mkdir(parents=True)
    yield Tool(go, _environ(go, workshop, source), source, keep_open=(workshop.lock,))
    with explained(f"clearing {source}"):
        shutil.rmtree(source)


def _environ(go: Path, workshop: Workshop, source: Path) -> dict[str, str]:
    """The user's own settings, including GOPROXY, without those that would change the outcome."""
    environ = {name: value for name, value in workshop.environ.items() if name not in {"GOOS", "GOARCH", "GOROOT"}}
    environ |= {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    # A machine's /tmp is often small; linking needs hundreds of megabytes.
    environ.setdefault("GOTMPDIR", str(source / "tmp"))
    return environ | _caches(Tool(go, environ, source), workshop.cache)


def _caches(go: Tool, ours: Path) -> dict[str, str]:
    """Puts Go's caches beside ours where its own choice cannot be written, as with a read-only home."""
    home = {**go.environ, "HOME": go.environ.get("HOME") or str(ours)}
    chosen = zip(
        ("GOMODCACHE", "GOCACHE"), Tool(go.path, home, go.folder).run("env", "GOMODCACHE", "GOCACHE"), strict=True
    )
    return {name: path if _writable(Path(path)) else str(ours / name.lower()) for name, path in chosen}


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def compiled(go: Tool, target: Path, what: str, flags: Sequence[str], progress: Progress) -> None:
    """Puts the module's programs into the target folder."""
    with progress.step(f"fetching the sources of {what}") as update:
        packages = _packages(go, update)
    with progress.step(f"building {what}") as update:
        go.run("build", "-v", *flags, "-o", str(target) + os.sep, "tool", on_line=_counter(update, packages))


def _packages(go: Tool, update: Update) -> int:
    """How many packages the programs consist of; asking makes Go download them."""
    lines = go.run("list", "-deps", "-f", "{{.ImportPath}}", "tool", on_line=_downloads(update))
    return sum(not line.startswith("go: ") for line in lines)


def _downloads(update: Update) -> Callable[[str], None]:
    def show(line: str) -> None:
        if line.startswith("go: downloading "):
            update(line.removeprefix("go: downloading "))

    return show


def _counter(update: Update, packages: int) -> Callable[[str], None]:
    """Go names a package when it starts on it, and only those that its cache does not have."""
    done = 0

    def show(line: str) -> None:
        nonlocal done
        done += 1
        update(f"package {done} of at most {packages}, {line}")

    return show


def _copy_data(go: Tool, target: Path) -> None:
    crds = sorted((module_folder(go, CRDS[0]) / CRDS[1]).glob("*.yaml"))
    stages = [module_folder(go, STAGES[0]) / STAGES[1] / name for name in STAGE_FILES]
    if not crds:
        raise LocalError(f"the module {CRDS[0]} has no {CRDS[1]}/*.yaml; its version in go.mod is not supported.")
    for folder, files in (("capi-crds", crds), ("kwok-stages", stages)):
        with explained(f"copying {folder} into {target}"):
            (target / folder).mkdir()
            for file in files:
                shutil.copyfile(file, target / folder / file.name)


def module_folder(go: Tool, path: str) -> Path:
    """Where Go keeps the source of a module."""
    return Path(go.run("list", "-m", "-f", "{{.Dir}}", path)[-1])
