from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.examine import Examiner, Match, climbs, in_pod, namespace_depths
from agent.patterns import Patterns
from agent.proc import ProcTable
from tests.agent.nodes import NODES, POD_CONMON, Process, plant
from tests.agent.proctree import add

NOW = datetime(2026, 11, 16, 22, 0, tzinfo=UTC)
IDEA = Patterns(("idea",))


def examiner(root: Path, *, own: int = 500, match_pods: bool = False) -> Examiner:
    (root / "self").symlink_to(str(own))
    return Examiner(ProcTable(str(root)), match_pods=match_pods, now=lambda: NOW)


def test_a_process_of_the_owner_matches(tmp_path: Path):
    add(tmp_path, 7, "idea", "/opt/idea", "--token=secret", started=4711)
    found = examiner(tmp_path).examine(7, IDEA)
    assert found == Match(7, 4711, "idea", 'process "idea" (pid 7) matched "idea" by its name', NOW)


def test_the_command_line_is_never_quoted(tmp_path: Path):
    add(tmp_path, 7, "java", "java", "idea", "--token=secret")
    found = examiner(tmp_path).examine(7, IDEA)
    assert found is not None
    assert "secret" not in repr(found)


def test_others_do_not_match(tmp_path: Path):
    add(tmp_path, 7, "bash", "bash")
    watcher = examiner(tmp_path)
    assert watcher.examine(7, IDEA) is None
    assert watcher.examine(8, IDEA) is None


def test_the_agent_and_its_descendants_never_match(tmp_path: Path):
    add(tmp_path, 500, "idea", "idea")
    add(tmp_path, 501, "idea", "idea", parent=500)
    add(tmp_path, 502, "idea", "idea", parent=501)
    add(tmp_path, 503, "idea", "idea", parent=1)
    watcher = examiner(tmp_path, own=500)
    assert [pid for pid in (500, 501, 502, 503) if watcher.examine(pid, IDEA)] == [503]


def test_kernel_threads_and_zombies_never_match(tmp_path: Path):
    add(tmp_path, 7, "idea", flags=0x208040, parent=2)
    add(tmp_path, 8, "idea", state="Z")
    watcher = examiner(tmp_path)
    assert watcher.examine(7, IDEA) is None
    assert watcher.examine(8, IDEA) is None


@pytest.mark.parametrize(
    "cgroup",
    [
        pytest.param("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-ab.scope\n", id="systemd"),
        pytest.param("0::/kubepods/besteffort/pod1/ab\n", id="cgroupfs"),
        pytest.param("0::/kubelet.slice/kubelet-kubepods.slice/x.scope\n", id="nested"),
        pytest.param("11:memory:/kubepods/pod1/ab\n1:name=systemd:/\n0::/\n", id="version 1"),
    ],
)
def test_processes_of_pods_match_only_if_that_is_asked_for(tmp_path: Path, cgroup: str):
    add(tmp_path, 1, "systemd", cgroup="0::/init.scope\n")
    add(tmp_path, 7, "idea", cgroup=cgroup)
    assert examiner(tmp_path).examine(7, IDEA) is None
    (tmp_path / "self").unlink()
    assert examiner(tmp_path, match_pods=True).examine(7, IDEA) is not None


@pytest.mark.parametrize(
    ("cgroup", "matches"),
    [
        pytest.param("0::/../../podB/y\n", False, id="pod of the same class"),
        pytest.param("0::/../../../burstable/podC/z\n", False, id="pod of another class"),
        pytest.param("0::/\n", False, id="the agent's own container"),
        pytest.param("0::/../other\n", False, id="another container of the agent's pod"),
        pytest.param("0::/../../../../user.slice/user-1000.slice\n", True, id="the owner's session"),
        pytest.param("0::/../../../..\n", True, id="the root"),
        pytest.param("0::/../../../../kubepods.slice/podD\n", False, id="a second tree of pods"),
    ],
)
def test_pods_are_known_from_inside_a_container_too_where_paths_are_relative(
    tmp_path: Path, cgroup: str, matches: bool
):
    # Recorded with the agent's stand-in in a cgroup namespace of /kubepods/besteffort/podA/x.
    add(tmp_path, 1, "systemd", cgroup="0::/../../../../init.scope\n")
    add(tmp_path, 7, "idea", cgroup=cgroup)
    assert (examiner(tmp_path).examine(7, IDEA) is not None) is matches


def test_what_the_kubelet_runs_for_a_pod_matches_no_more_than_the_pod_does(tmp_path: Path):
    volume = "/var/lib/kubelet/pods/1234/volumes/kubernetes.io~secret/idea"
    add(tmp_path, 30, "kubelet", "/usr/bin/kubelet", cgroup="0::/system.slice/kubelet.service\n")
    add(tmp_path, 31, "mount", "mount", "-t", "tmpfs", "tmpfs", volume, parent=30, cgroup="0::/system.slice/x.scope\n")
    add(tmp_path, 32, "mount.nfs", "/sbin/mount.nfs", "server:/idea", volume, parent=31)
    add(tmp_path, 33, "mount", "mount", "-t", "tmpfs", "tmpfs", "/home/me/idea")
    watcher = examiner(tmp_path)
    assert [pid for pid in (30, 31, 32, 33) if watcher.examine(pid, IDEA)] == [33]
    (tmp_path / "self").unlink()
    assert examiner(tmp_path, match_pods=True).examine(31, IDEA) is not None


@pytest.mark.parametrize("runtime", NODES)
def test_what_a_runtime_does_for_a_pod_ejects_no_node_and_what_the_owner_runs_does(tmp_path: Path, runtime: str):
    plant(tmp_path, *NODES[runtime])
    watcher = examiner(tmp_path)
    assert [each.pid for each in NODES[runtime] if watcher.examine(each.pid, IDEA)] == [
        each.pid for each in NODES[runtime] if each.matches
    ]


def test_a_pod_cannot_pass_its_monitor_off_as_podmans(tmp_path: Path):
    forged = POD_CONMON.replace("default_idea", "default_idea--exit-dir./libpod/")
    plant(tmp_path, Process(22, "conmon", forged, cgroup="/system.slice/crio-conmon-1.scope"))
    assert examiner(tmp_path).examine(22, IDEA) is None


def test_a_process_of_unknown_cgroup_does_not_count_as_the_owners(tmp_path: Path):
    (add(tmp_path, 7, "idea") / "cgroup").unlink()
    assert examiner(tmp_path).examine(7, IDEA) is None


def test_each_hierarchy_is_judged_by_its_own_depth():
    depths = namespace_depths({"4": "/", "0": "/../../init.scope"})
    assert depths == {"4": 0, "0": 2}
    assert not in_pod({"4": "/user.slice", "0": "/../../user.slice"}, depths)
    assert in_pod({"4": "/user.slice", "0": "/../pod"}, depths)


@pytest.mark.parametrize(
    ("path", "levels"), [("/", 0), ("/a/..b", 0), ("/..", 1), ("/../../init.scope", 2), ("/../a/..", 1)]
)
def test_climbing_is_counted_from_the_front(path: str, levels: int):
    assert climbs(path) == levels


def test_a_process_that_changes_between_two_reads_is_judged_by_the_last(tmp_path: Path):
    folder = add(tmp_path, 7, "idea")

    class Changing(ProcTable):
        def cmdline(self, pid: int) -> bytes:
            (folder / "comm").write_bytes(b"bash\n")
            return super().cmdline(pid)

    assert Examiner(Changing(str(tmp_path)), now=lambda: NOW).examine(7, IDEA) is None
