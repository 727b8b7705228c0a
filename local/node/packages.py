"""What the machine itself must bring for a node: Linux, root, and Debian packages, which are installed if missing."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from local import apt
from local.command import Tool
from local.errors import LocalError, NoNodeError
from local.progress import Progress

PLUGINS: Final = Path("/usr/lib/cni")
PROVIDES: Final[Mapping[str, str]] = {
    "runc": "runc",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ethtool": "ethtool",
    "socat": "socat",
    "ip": "iproute2",
    str(PLUGINS / "bridge"): "containernetworking-plugins",
}
"""Which package brings each program."""


def require_machine() -> None:
    """Raises LocalError with one sentence where no node can run."""
    if sys.platform != "linux":
        raise NoNodeError(f"a node needs Linux, and this is {sys.platform}: run it in a virtual machine.")
    if os.geteuid() != 0:
        raise NoNodeError("a node needs root, to make a bridge, mounts and cgroups: run it as root, such as with sudo.")


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> None:
    """Installs the packages whose programs are missing."""
    packages = missing(environ)
    if not packages:
        return
    tool = apt.find(environ, Path("/"))
    if tool is None:
        raise NoNodeError(f"a node needs {', '.join(packages)}: install them, as this machine has no apt-get to do it.")
    progress.say(f"installing Debian packages that a node needs: {', '.join(packages)}")
    with progress.step("installing Debian packages"):
        _install(tool, packages)


def _install(tool: Tool, packages: Sequence[str]) -> None:
    try:
        apt.install(tool, packages)
    except LocalError as error:
        raise NoNodeError(f"a node needs {', '.join(packages)}, and they cannot be installed: {error}") from error


def missing(environ: Mapping[str, str]) -> list[str]:
    """The packages of which a program is not there."""
    path = environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return sorted(package for program, package in PROVIDES.items() if shutil.which(program, path=path) is None)
