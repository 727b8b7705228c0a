"""Process trees of nodes with the runtimes that people use, as `ps` and `systemctl status` show them there.

In each of them a pod is called idea: the tenant's attempt to have the node ejected.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.agent.proctree import add

POD_UID: Final = "5ed8a4f6-db4e-4b7e-a87c-67da390d031d"
CONTAINER: Final = "c50666e24d9091a348a831015800cd8c603e3fb9ca23958b249f74e17487f21d"
STORAGE: Final = f"/run/containers/storage/overlay-containers/{CONTAINER}/userdata"
VOLUME: Final = f"/var/lib/kubelet/pods/{POD_UID}/volumes/kubernetes.io~nfs/idea"


@dataclass(frozen=True)
class Process:
    """One line of a tree; `matches` if it is the owner's and called idea."""

    pid: int
    comm: str
    cmdline: str
    parent: int = 1
    cgroup: str = "/user.slice/user-1000.slice/session-2.scope"
    matches: bool = False


def plant(root: Path, *processes: Process) -> None:
    """The process table of a node."""
    add(root, 1, "systemd", "/sbin/init", parent=0, cgroup="0::/init.scope\n")
    for each in processes:
        add(root, each.pid, each.comm, *each.cmdline.split(" "), parent=each.parent, cgroup=f"0::{each.cgroup}\n")


def _conmon(exits: str, sockets: str, log: str, name: str) -> str:
    return (
        f"/usr/bin/conmon -b {STORAGE} -c {CONTAINER} --exit-dir {exits} -l {log} --log-level info -n {name} "
        f"-P {STORAGE}/conmon-pidfile -p {STORAGE}/pidfile -r /usr/bin/runc --runtime-arg --root=/run/runc "
        f"--socket-dir-path {sockets} --syslog -u {CONTAINER} -s"
    )


POD_LOG: Final = f"/var/log/pods/default_idea_{POD_UID}/idea/9.log"
POD_CONMON: Final = _conmon("/var/run/crio/exits", "/var/run/crio", POD_LOG, f"k8s_idea_idea_default_{POD_UID}_9")
OWN_CONMON: Final = _conmon("/run/user/1000/libpod/tmp/exits", "/run/user/1000/libpod", "k8s-file", "idea")
CRIO: Final = (
    Process(20, "crio", "/usr/bin/crio", cgroup="/system.slice/crio.service"),
    Process(
        21, "kubelet", "/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf", cgroup="/system.slice/kubelet.service"
    ),
    Process(22, "conmon", POD_CONMON, cgroup=f"/system.slice/crio-conmon-{CONTAINER}.scope"),
    Process(23, "runc", f"/usr/bin/runc exec --process /tmp/idea {CONTAINER}", 22, "/system.slice/crio.service"),
    Process(24, "mount", f"mount -t nfs server:/idea {VOLUME}", 21, "/system.slice/run-r1.scope"),
    Process(25, "mount.nfs", f"/sbin/mount.nfs server:/idea {VOLUME}", 24, "/system.slice/run-r1.scope"),
    Process(26, "conmonrs", f"/usr/bin/conmonrs --log-driver systemd --runtime-dir /run/crio/{POD_UID}/idea"),
    Process(27, "nft", "nft -f /run/cni/idea.nft", 20, "/system.slice/crio.service"),
    Process(30, "conmon", OWN_CONMON, cgroup="/user.slice/user-1000.slice/libpod-conmon-1.scope", matches=True),
    Process(31, "idea", "/opt/idea", 30, "/user.slice/user-1000.slice/libpod-1.scope", matches=True),
)
SHIM: Final = "/usr/bin/containerd-shim-runc-v2 -namespace {} -id 1234 -address /run/containerd/containerd.sock"
CONTAINERD: Final = (
    Process(20, "containerd", "/usr/bin/containerd", cgroup="/system.slice/containerd.service"),
    Process(
        21, "kubelet", "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml", cgroup="/system.slice/kubelet.service"
    ),
    Process(22, "containerd-shim", SHIM.format("k8s.io"), cgroup="/system.slice/containerd.service"),
    Process(
        23,
        "runc",
        "runc --root /run/containerd/runc/k8s.io exec --process /tmp/idea 1234",
        22,
        "/system.slice/containerd.service",
    ),
    Process(24, "virtiofsd", f"/usr/libexec/virtiofsd --shared-dir {VOLUME}", 22, "/system.slice/containerd.service"),
    Process(25, "umount", f"umount {VOLUME}", 21, "/system.slice/kubelet.service"),
    Process(27, "mount.nfs", f"/sbin/mount.nfs server:/idea {VOLUME} -o rw,bg", 1, "/system.slice/run-r2.scope"),
    Process(26, "idea", "/idea", 22, f"/kubepods.slice/kubepods-pod{POD_UID}.slice/cri-containerd-1234.scope"),
    Process(30, "containerd-shim", SHIM.format("moby"), cgroup="/system.slice/docker.service"),
    Process(31, "idea", "/opt/idea", 30, "/system.slice/docker-1234.scope", matches=True),
)
K3S_SHIM: Final = (
    "/var/lib/rancher/k3s/data/0f1a/bin/containerd-shim-runc-v2 -namespace k8s.io -id 80c6 "
    "-address /run/k3s/containerd/containerd.sock"
)
K3S: Final = (
    Process(20, "k3s-server", "/usr/local/bin/k3s server", cgroup="/system.slice/k3s.service"),
    Process(
        21,
        "containerd",
        "containerd -c /var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        20,
        "/system.slice/k3s.service",
    ),
    Process(22, "containerd-shim", K3S_SHIM, cgroup="/system.slice/k3s.service"),
    Process(23, "mount", f"mount -t tmpfs tmpfs {VOLUME}", 20, "/system.slice/k3s.service"),
    Process(24, "portmap", "/var/lib/rancher/k3s/data/0f1a/bin/portmap idea", 21, "/system.slice/k3s.service"),
    Process(25, "sh", "sh -c idea", 22, "/system.slice/k3s.service"),
    Process(26, "k3s-agent", "/usr/local/bin/k3s agent", cgroup="/system.slice/k3s-agent.service"),
    Process(27, "nsenter", f"nsenter -t 1 -m mount {VOLUME}", 26, "/system.slice/k3s-agent.service"),
    Process(30, "idea", "/opt/idea", matches=True),
)
K0S: Final = (
    Process(
        20, "k0s", "/usr/local/bin/k0s worker --token-file=/etc/k0s/token", cgroup="/system.slice/k0sworker.service"
    ),
    Process(
        21,
        "containerd",
        "/var/lib/k0s/bin/containerd --root=/var/lib/k0s/containerd",
        20,
        "/system.slice/k0sworker.service",
    ),
    Process(
        22, "kubelet", "/var/lib/k0s/bin/kubelet --root-dir=/var/lib/k0s/kubelet", 20, "/system.slice/k0sworker.service"
    ),
    Process(23, "mount", f"mount -t nfs server:/idea {VOLUME}", 22, "/system.slice/k0sworker.service"),
    Process(24, "loopback", "/opt/cni/bin/loopback idea", 21, "/system.slice/k0sworker.service"),
    Process(30, "idea", "/opt/idea", matches=True),
)
NODES: Final = {"cri-o": CRIO, "containerd": CONTAINERD, "k3s": K3S, "k0s": K0S}
