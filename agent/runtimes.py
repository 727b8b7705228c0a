"""Which host processes work for pods: node agents, and the monitors that container runtimes start for pods.

They run outside the pods' cgroups, and their command lines and those of their children hold names that a tenant chose:
of pods, containers and volumes. The same runtimes also run the owner's own containers, whose processes do match, so a
monitor is judged by its arguments. Tenants cannot forge these: names in Kubernetes hold no white space and do not begin
with a dash.
"""

import re
from typing import Final

NODE_AGENTS: Final = frozenset({b"kubelet", b"k3s", b"k3s-server", b"k3s-agent", b"k0s", b"kubelite", b"crio"})
"""The kubelet, the programs that contain one (k3s, MicroK8s) or run it with its runtime (k0s), and CRI-O."""
SHIM: Final = b"containerd-shim"
"""The 15 bytes that the kernel keeps of containerd-shim-runc-v2 and its siblings for kata, gVisor and others."""
POD_NAMESPACE: Final = b"k8s.io"
"""containerd's own namespace for what the kubelet asks for; Docker uses moby, nerdctl default."""
CONMON: Final = b"conmon"
CONMONRS: Final = b"conmonrs"
"""CRI-O's monitor of a whole pod; Podman does not use it."""
PODMAN_EXITS: Final = b"/libpod/"
POD_VOLUME: Final = re.compile(rb"/pods/[0-9a-f-]{36}/volumes/")
"""Where the kubelet mounts the volumes of a pod. A mount that goes on in the background has lost its parent."""


def works_for_pods(comm: bytes | None, cmdline: bytes) -> bool:
    """Whether a process with this name and command line works for pods, and so does everything that it starts."""
    if comm in NODE_AGENTS or comm == CONMONRS or POD_VOLUME.search(cmdline):
        return True
    if comm == CONMON:
        # Podman's own, for the owner's containers, leave their exit codes in a directory of libpod.
        return PODMAN_EXITS not in _argument(cmdline, b"--exit-dir")
    return comm is not None and comm.startswith(SHIM) and _argument(cmdline, b"-namespace") == POD_NAMESPACE


def _argument(cmdline: bytes, name: bytes) -> bytes:
    """The value of an argument; empty without it."""
    words = cmdline.split(b" ")
    after = words.index(name) + 1 if name in words else len(words)
    return words[after] if after < len(words) else b""
