"""What a node changes on a machine, and what has to be as before when it is gone."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from local.node import warden
from local.node.ground import Ground

PATIENCE = 300.0
"""Another checkout may be testing on the one node that a machine can have."""

OTHERS = (str(warden.REMEMBERED), str(warden.LOCK), "/opt/containerd", "/opt/cni", "/etc/cni/net.d/10-5spot.conflist")


@dataclass(frozen=True)
class Traces:
    """What a node changes on a machine."""

    links: str
    tables: str
    sysctls: tuple[tuple[str, str], ...]
    cgroups: tuple[str, ...]
    mounts: str
    folders: tuple[str, ...]
    sleepers: str

    @classmethod
    def without_node(cls) -> "Traces":
        """Of this machine before a node: what an earlier one left is taken back, and the end of another is awaited."""
        with Ground(PATIENCE):
            pass
        return cls.found()

    @classmethod
    def found(cls) -> "Traces":
        return cls(
            links=said("ls", "/sys/class/net"),
            tables=said("nft", "list", "tables"),
            sysctls=tuple(warden.read_sysctls().items()),
            cgroups=tuple(map(str, warden.groups())),
            mounts=Path("/proc/self/mountinfo").read_text(encoding="utf-8"),
            folders=tuple(folder for folder in (*warden.MASKED, *OTHERS) if Path(folder).exists()),
            sleepers=said("pgrep", "-f", "^sleep 100[012]$"),
        )


def said(*words: str) -> str:
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout
