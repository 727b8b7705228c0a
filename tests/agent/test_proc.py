import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.proc import CMDLINE_BYTES, ProcTable, Stat, parse_cgroups, parse_stat
from tests.agent.proctree import add


def test_only_pids_are_listed(tmp_path: Path):
    for name in ("self", "sys", "12a", "٣"):
        (tmp_path / name).mkdir()
    add(tmp_path, 7, "a")
    add(tmp_path, 12, "b")
    assert sorted(ProcTable(str(tmp_path)).pids()) == [7, 12]


def test_arguments_are_joined_by_spaces(tmp_path: Path):
    add(tmp_path, 7, "java", "java", "-cp", "/opt/my ide", "Main")
    assert ProcTable(str(tmp_path)).cmdline(7) == b"java -cp /opt/my ide Main"


@pytest.mark.parametrize("comm", [b"", b"a b", b"tab\tend", b"new\nline", b"\xff\xfe", b") R 1 ("])
def test_names_are_taken_as_they_are(tmp_path: Path, comm: bytes):
    add(tmp_path, 7, comm, parent=3)
    table = ProcTable(str(tmp_path))
    assert table.comm(7) == comm
    assert table.stat(7) == Stat(state="S", parent=3, flags=0x400000, started=100)


def test_a_huge_binary_command_line_is_read_up_to_a_bound(tmp_path: Path):
    add(tmp_path, 7, "big", b"\xff" * 100_000, b"needle", b"\x01" * 3_000_000)
    line = ProcTable(str(tmp_path)).cmdline(7)
    assert len(line) == CMDLINE_BYTES
    assert b" needle " in line


def test_the_longest_command_line_that_a_process_usually_can_have_is_read_to_its_end():
    many, pipe = ["x" * 100_000] * 19, subprocess.PIPE
    with subprocess.Popen(["sh", "-c", "echo ready; read line", *many, "needle"], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert ProcTable().cmdline(process.pid).endswith(b" needle")


def test_a_process_that_is_gone_or_unreadable_reads_as_absent(tmp_path: Path):
    table = ProcTable(str(tmp_path))
    (tmp_path / "9" / "comm").mkdir(parents=True)
    for pid in (8, 9):
        assert table.comm(pid) is None
        assert table.cmdline(pid) == b""
        assert table.stat(pid) is None
        assert table.cgroups(pid) == {}
    assert table.hold(8) is None


def test_a_grip_on_a_process_does_not_reach_a_later_one_of_the_same_pid():
    process = subprocess.Popen(["sleep", "60"])
    held = ProcTable().hold(process.pid)
    assert held is not None
    with held:
        assert held.comm() is not None
        process.kill()
        process.wait()
        assert held.comm() is None
        assert held.stat() is None
        assert held.cmdline() == b""


def test_this_process_is_read_right():
    table = ProcTable()
    me = os.getpid()
    assert table.own_pid() == me
    stat = table.stat(me)
    assert stat is not None
    assert stat.parent == os.getppid()
    assert stat.runs_user_code
    assert next(table.ancestors(me)) == os.getppid()
    assert table.cmdline(me).startswith(os.fsencode(sys.orig_argv[0]))


@pytest.mark.parametrize(
    ("state", "flags", "runs"), [("S", 0, True), ("Z", 0, False), ("X", 0, False), ("I", 0x208040, False)]
)
def test_zombies_and_kernel_threads_run_no_code_of_a_user(state: str, flags: int, runs: bool):
    assert Stat(state, 1, flags, 0).runs_user_code is runs


@pytest.mark.parametrize("raw", [None, b"", b"7 (a) S", b"7 (a) S x y z", b"garbage"])
def test_a_stat_line_that_makes_no_sense_is_no_process(raw: bytes | None):
    assert parse_stat(raw) is None


def test_cgroup_lines_of_both_versions_are_understood():
    raw = b"9:name=systemd:/\n4:cpu,cpuacct:/a:b\n0::/user.slice\nnonsense\n"
    assert parse_cgroups(raw) == {"9": "/", "4": "/a:b", "0": "/user.slice"}


def test_a_loop_of_parents_ends(tmp_path: Path):
    add(tmp_path, 7, "a", parent=8)
    add(tmp_path, 8, "b", parent=7)
    assert set(ProcTable(str(tmp_path)).ancestors(7)) == {7, 8}
