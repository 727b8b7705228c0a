"""Makes what a node needs of the machine's kernel, and takes all of it back, however its owner ends.

Started by `local.node.ground` as a script of its own, with nothing but the standard library. What it makes has fixed
names, one node a machine: the next start removes what a warden that was itself killed could not.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

BRIDGE = "5spot0"
CGROUP = "5spot-node"
SYSTEM = "system"
"""The cgroup below ours for the programs of the node itself; the kubelet makes those of pods beside it."""
CGROUPS = Path("/sys/fs/cgroup")
TABLES = (("ip", "kube-proxy"), ("ip6", "kube-proxy"))
REMEMBERED = Path("/run/5spot-node.json")
LOCK = Path("/run/5spot-node.lock")
"""Held by the owner and by us: the next node can start when this one is gone."""
SETTINGS = Path("/proc/sys")
SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/*/forwarding",
    "net/ipv4/conf/all/accept_redirects",
    "net/ipv4/conf/all/route_localnet",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_tcp_be_liberal",
    "net/netfilter/nf_conntrack_tcp_timeout_established",
    "net/netfilter/nf_conntrack_tcp_timeout_close_wait",
)
"""What the kubelet, kube-proxy and the network plugins set, and with `ip_forward` the kernel.

They are put back in this order: the kernel changes those below `ip_forward` along with it.
"""
MASKED = (
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/pods",
    "/var/log/containers",
    "/usr/libexec/kubernetes",
)
"""Folders that these programs write to whatever they are configured to: the node sees empty ones of its own."""

SHARES = {"cpu.shares": 1024, "cpu.weight": 100}
"""The weight of one process among others, as version 1 and version 2 of cgroups call it."""
PROCESSES = 32

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
Remembered = dict[str, dict[str, str] | list[str]]


def main() -> int:
    """Performs a task.

    `hold ADDRESS` makes the node's surroundings, `enter PID COMMAND …` runs a command within those of a warden, `clean`
    takes back what a warden made that was killed.
    """
    task, first, *command = sys.argv[1:]
    if task == "enter":
        enter(int(first), command)
    if task == "clean":
        clean_up()
        LOCK.unlink(missing_ok=True)
        return 0
    return hold(first)


def enter(warden: int, command: list[str]) -> None:
    """Does not return: the command takes the place of this process, in the warden's mounts and cgroups."""
    for hierarchy in hierarchies():
        procs = hierarchy / CGROUP / SYSTEM / "cgroup.procs"
        procs.write_text(str(os.getpid()), encoding="ascii")
    folder = Path.cwd()
    enter_mounts(os.open(f"/proc/{warden}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))
    os.chdir(folder)
    os.execvp(command[0], command)  # noqa: S606 -- what the owner asks for


def hold(address: str) -> int:
    """Prepares the machine, says so on stdout, waits for the owner to go, and leaves nothing behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    owner = os.getppid()
    clean_up()
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        prepare(address)
        say("ready")
        wait_for_end(owner)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"error: {described(error)}")
        return 1
    finally:
        with contextlib.suppress(OSError):  # where mounts are not allowed, this is still outside
            enter_mounts(outside)  # inside, the folders to remove are in use
        clean_up()
        LOCK.unlink(missing_ok=True)
    return 0


def described(error: OSError | subprocess.CalledProcessError) -> str:
    """What went wrong, with what the program said."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"{' '.join(error.cmd)}: {error.stderr.decode(errors='replace').strip()}"
    return str(error)


def say(line: str) -> None:
    """Reports the result to the owner."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def wait_for_end(owner: int) -> None:
    """Returns when the owner closed our stdin or died."""
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    with contextlib.suppress(OSError):
        poll.register(os.pidfd_open(owner), select.POLLIN)
    if os.getppid() == owner:
        poll.poll()


def prepare(address: str) -> None:
    """A bridge with that address, cgroups, and a mount namespace with folders of our own."""
    created = [folder for folder in MASKED if not Path(folder).exists()]
    remember({"sysctls": read_sysctls(), "folders": created})
    make_cgroups()
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "address", "add", address, "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    write_sysctl("net/ipv4/ip_forward", "1")
    mask_folders()


def remember(what: Remembered) -> None:
    """Stores how the machine was, for us or for the next warden."""
    REMEMBERED.write_text(json.dumps(what), encoding="utf-8")


def mask_folders() -> None:
    """Enters a mount namespace of our own, in which the folders are empty."""
    checked(LIBC.unshare(CLONE_NEWNS), "unshare")
    checked(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
    for folder in MASKED:
        Path(folder).mkdir(parents=True, exist_ok=True)
        checked(LIBC.mount(b"5spot", folder.encode(), b"tmpfs", 0, b"mode=0755"), f"mount {folder}")


def enter_mounts(namespace: int) -> None:
    """Moves this process into the mount namespace behind a file descriptor."""
    checked(LIBC.setns(namespace, CLONE_NEWNS), "setns")


def checked(result: int, doing: str) -> None:
    """Raises what a call of the C library failed with."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{doing}: {os.strerror(number)}")


def make_cgroups() -> None:
    """Ours, below every hierarchy, with a group for the node's own programs."""
    for hierarchy in hierarchies():
        for folder in (hierarchy / CGROUP, hierarchy / CGROUP / SYSTEM):
            folder.mkdir(exist_ok=True)
            inherit_cpuset(folder)
        claim_processors(hierarchy / CGROUP)


def inherit_cpuset(folder: Path) -> None:
    """In version 1 a new group has no processors, and no process can enter it before it has some."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        with contextlib.suppress(OSError):
            if not (folder / name).read_text(encoding="ascii").strip():
                (folder / name).write_text((folder.parent / name).read_text(encoding="ascii"), encoding="ascii")


def claim_processors(folder: Path) -> None:
    """Gives the node the weight of so many processes: to the scheduler all its pods together are as one process."""
    for name, one in SHARES.items():
        with contextlib.suppress(OSError):
            if (folder / name).exists():
                (folder / name).write_text(str(one * PROCESSES), encoding="ascii")


def hierarchies() -> list[Path]:
    """The root of each cgroup hierarchy: one with version 2, one for each controller with version 1."""
    if (CGROUPS / "cgroup.procs").exists():
        return [CGROUPS]
    return sorted(path for path in CGROUPS.iterdir() if not path.is_symlink() and (path / "cgroup.procs").exists())


def clean_up() -> None:
    """Takes everything back that a warden made; nothing of it need be there."""
    kill_all()
    remove_cgroups()
    for family, table in TABLES:
        run("nft", "delete", "table", family, table, check=False)
    for link in (*ports(), BRIDGE):
        run("ip", "link", "delete", link, check=False)
    restore()


def ports() -> list[str]:
    """The machine's ends of the pods' links; the kernel removes them too, but in its own time."""
    with contextlib.suppress(OSError):
        return [port.name for port in Path("/sys/class/net", BRIDGE, "brif").iterdir()]
    return []


def kill_all() -> None:
    """Kills every process in our cgroups until none is left."""
    while pids := set(members()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        select.select([], [], [], 0.05)


def members() -> Iterator[int]:
    """The processes in our cgroups."""
    for group in groups():
        with contextlib.suppress(OSError):
            yield from map(int, (group / "cgroup.procs").read_text(encoding="ascii").split())


def groups() -> Iterable[Path]:
    """Our cgroups, each before those that it is in."""
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
            yield Path(folder)


def remove_cgroups() -> None:
    """Removes our cgroups; the kernel lets go of a killed process's group a moment later."""
    for _ in range(100):
        for group in groups():
            with contextlib.suppress(OSError):
                group.rmdir()
        if not any((hierarchy / CGROUP).exists() for hierarchy in hierarchies()):
            return
        select.select([], [], [], 0.05)


def read_sysctls() -> dict[str, str]:
    """The values of those that this kernel has."""
    values = {}
    for path in (path for name in SYSCTLS for path in sorted(SETTINGS.glob(name))):
        with contextlib.suppress(OSError):
            values[str(path.relative_to(SETTINGS))] = path.read_text(encoding="ascii").strip()
    return values


def write_sysctl(name: str, value: str) -> None:
    """Sets one."""
    (SETTINGS / name).write_text(value, encoding="ascii")


def restore() -> None:
    """Puts sysctls back and removes the folders that we made to mount on."""
    try:
        was = json.loads(REMEMBERED.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for name, value in was["sysctls"].items():
        with contextlib.suppress(OSError):
            write_sysctl(name, value)
    for folder in was["folders"]:
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    REMEMBERED.unlink(missing_ok=True)


def run(*words: str, check: bool = True) -> None:
    """Runs a program to its end."""
    subprocess.run(words, check=check, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603 -- our own words


if __name__ == "__main__":
    sys.exit(main())
