"""What a node needs of the machine is gone after the node, also when its owner, or the warden beside it, is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.node import warden
from local.node.ground import Ground
from local.node.image import run_apart
from tests.cluster.site import eventually
from tests.cluster.traces import Traces
from tests.local.ended import ended

OWNER = """
import subprocess, sys
from local.node import warden
from local.node.ground import Ground
with Ground(300) as ground:
    child = subprocess.Popen(ground.on_node(["sh", "-c", sys.argv[1]]), stdout=subprocess.PIPE)
    child.stdout.readline()
    print(ground.warden, child.pid, flush=True)
    sys.stdin.readline()
"""
LIKE_A_NODE = """
set -e
nft add table ip kube-proxy
nft add table ip6 kube-proxy
echo 1 > /proc/sys/vm/overcommit_memory
echo 77 > /proc/sys/kernel/panic
ip link add 5spot-test type veth peer name 5spot-peer
ip link set 5spot-test master 5spot0
mount -t tmpfs volume /var/lib/kubelet
for group in $(find /sys/fs/cgroup -name 5spot-node -type d); do mkdir -p $group/pods/one; done
setsid sleep 1000 &
setsid unshare --net sh -c 'sleep 1001' &
echo ready
exec sleep 1002
"""
"""Leaves behind on purpose what kubelet, kube-proxy and pods leave."""


@dataclass(frozen=True)
class Node:
    """The processes of a node that is only surroundings."""

    owner: "subprocess.Popen[str]"
    warden: int
    program: int


@contextmanager
def node() -> Iterator[Node]:
    argv = [sys.executable, "-c", OWNER, LIKE_A_NODE]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        first = owner.stdout.readline()
        try:
            yield Node(owner, *map(int, first.split()))
        finally:
            owner.kill()


@pytest.fixture
def before() -> Traces:
    return Traces.without_node()


def test_nothing_is_left_when_the_owner_is_killed(before: Traces):
    with node() as doomed:
        assert Traces.found() != before
        doomed.owner.kill()
        assert ended(doomed.warden)
        assert ended(doomed.program)
    assert Traces.found() == before


def test_nothing_is_left_when_the_warden_is_killed_and_the_owner_ends(before: Traces):
    with node() as doomed:
        os.kill(doomed.warden, signal.SIGKILL)
        doomed.owner.communicate("")
        assert doomed.owner.returncode == 0
    assert Traces.found() == before


def test_the_next_node_takes_back_what_is_left_when_both_are_killed(before: Traces):
    with node() as doomed:
        for pid in (doomed.warden, doomed.owner.pid):
            os.kill(pid, signal.SIGKILL)
        assert ended(doomed.warden)
    assert Traces.found() != before
    with Ground():
        pass
    eventually(lambda: Traces.found() == before, within=5)


def test_nothing_is_left_where_the_machine_allows_no_bridge(before: Traces):
    bare = ["setpriv", "--bounding-set=-net_admin,-sys_admin", "--inh-caps=-net_admin,-sys_admin"]
    done = subprocess.run([*bare, sys.executable, "-c", OWNER, ""], text=True, capture_output=True, check=False)
    assert "this machine cannot hold a node: ip link add 5spot0 type bridge" in done.stderr
    assert Traces.found() == before


def test_settings_that_the_kernel_changes_along_with_others_are_put_back(before: Traces):
    forwarding, redirects = "net/ipv4/ip_forward", "net/ipv4/conf/all/accept_redirects"
    found = dict(before.sysctls)
    try:
        for name in (forwarding, redirects):  # as on a machine that is no router
            warden.write_sysctl(name, "0")
        with Ground():
            assert warden.read_sysctls()[forwarding] == "1"
        assert {warden.read_sysctls()[name] for name in (forwarding, redirects)} == {"0"}
    finally:
        for name, value in found.items():
            with suppress(OSError):
                warden.write_sysctl(name, value)


def test_what_a_build_of_the_image_mounts_is_gone_with_its_process(tmp_path: Path):
    run_apart(os.environ, tmp_path, "mount", "-t", "tmpfs", "volume", str(tmp_path))
    assert not tmp_path.is_mount()
