"""Server processes: waited for, explained when they fail, and gone with their owner in every case."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import keeper
from local.errors import LocalError
from local.processes import Keeper, Server, StartFailed
from tests.local.ended import ended

OWNER = """
import signal
from local.binaries import ensure
from local.cluster import LocalCluster
from local.processes import Keeper
from local.progress import Progress
with Keeper() as keeper, LocalCluster("doomed", ensure(Progress()), keeper) as cluster:
    print(keeper.directory, keeper.group, *(server.pid for server in cluster.servers), flush=True)
    signal.pause()
"""
SLEEPER = (sys.executable, "-c", "import signal; print('awake', flush=True); signal.pause()")


@pytest.fixture
def home() -> Iterator[Keeper]:
    with Keeper() as made:
        yield made


def sleeper(home: Keeper) -> Server:
    server = Server("sleeper", SLEEPER, home, lambda: "awake" in server.last_lines())
    return server


def test_servers_die_and_their_files_go_when_the_owner_is_killed_outright() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory, *pids = owner.stdout.readline().split()
        assert len(pids) == 4
        assert Path(directory, "doomed", "apiserver.key").exists()

        owner.kill()

        assert [ended(int(pid)) for pid in pids] == [True] * 4
    assert not Path(directory).exists()


def test_a_server_that_was_frozen_dies_with_its_owner_too(home: Keeper) -> None:
    server = sleeper(home).started()
    pid = server.pid
    assert pid is not None
    server.pause()

    home.close()

    assert ended(pid)
    server.kill()  # collects it


def test_closing_removes_the_directory_and_the_files_that_go_along(tmp_path: Path) -> None:
    along = tmp_path / "kubeconfig"
    along.touch()
    with Keeper([along, tmp_path / "never-written"]) as made:
        (made.directory / "file").touch()
    assert not made.directory.exists()
    assert not along.exists()


def test_files_elsewhere_are_removed_too_except_one_that_was_changed_since(tmp_path: Path) -> None:
    files = {tmp_path / name: f"for {name}" for name in ("gone-already", "changed", "untouched")}
    with Keeper() as made:
        made.takes_back(files)
        (tmp_path / "changed").write_text("for changed, and a context of my own")
        (tmp_path / "untouched").write_text("for untouched")
    assert [path.name for path in tmp_path.iterdir()] == ["changed"]
    assert not made.directory.exists()


def test_a_note_that_was_not_finished_keeps_nothing_else_from_going() -> None:
    with Keeper() as made:
        (made.directory / keeper.ELSEWHERE).write_text('{"')
    assert not made.directory.exists()


def test_a_file_that_a_later_owner_has_locked_is_left_to_it(tmp_path: Path) -> None:
    along = tmp_path / "state"
    with along.open("w") as later:
        fcntl.flock(later, fcntl.LOCK_EX)
        Keeper([along]).close()
        assert along.exists()


def test_no_room_for_temporary_files_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "__file__", "/dev/null")  # a keeper that ends without a word
    with pytest.raises(LocalError, match="set TMPDIR to a folder with room"):
        Keeper()


def test_signals_to_the_terminal_s_process_group_do_not_reach_the_servers(home: Keeper) -> None:
    server = sleeper(home).started()
    assert server.pid is not None
    assert os.getpgid(server.pid) == home.group != os.getpgrp()
    server.stop()


def test_a_server_that_dies_at_start_is_explained_by_its_last_words(home: Keeper) -> None:
    script = "print('one'); print('cannot open the database'); raise SystemExit(7)"
    with pytest.raises(StartFailed) as failed:
        Server("db", [sys.executable, "-c", script], home, lambda: False).started()
    assert str(failed.value) == (
        "db died at start (exit code 7); its last log lines:\n  one\n  cannot open the database"
    )


PANIC = """
print('failed to create the log: no space left on device')
print('panic: failed to create the log')
print()
print('goroutine 1 gp=0x38b1 m=0 mp=0x1c [running]:')
for number in range(20):
    print(f'main.main({number})')
raise SystemExit(2)
"""


def test_the_reason_of_a_panic_is_shown_rather_than_its_stack(home: Keeper) -> None:
    with pytest.raises(StartFailed) as failed:
        Server("etcd", [sys.executable, "-c", PANIC], home, lambda: False).started()
    assert "failed to create the log: no space left on device\n" in str(failed.value)
    assert "main.main" not in str(failed.value)
    assert str(failed.value).endswith("set TMPDIR to a folder with room.")


def test_a_disk_that_is_full_is_named_also_when_the_server_does_not_say_so(
    home: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(home.directory)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4096))
    with pytest.raises(StartFailed, match=r"awaiting etcd\nThere is no room for temporary files: set TMPDIR"):
        Server("api", [sys.executable, "-c", "raise SystemExit('awaiting etcd')"], home, lambda: False).started()


def test_a_server_that_never_gets_ready_is_not_waited_for_for_ever(home: Keeper) -> None:
    server = Server("slow", SLEEPER, home, lambda: False)
    server.start()
    with pytest.raises(StartFailed, match="slow was not ready after 0 s"):
        server.wait_ready(timeout=0.2)
    server.kill()


def test_a_server_that_ignores_the_request_to_end_is_killed(home: Keeper) -> None:
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('awake', flush=True)\n"
    stubborn = Server("stubborn", [sys.executable, "-c", f"{script}while True: signal.pause()"], home, lambda: False)
    stubborn.probe = lambda: "awake" in stubborn.last_lines()
    stubborn.started().stop(grace=0.2)
    assert stubborn.pid is None


def test_a_frozen_server_can_be_stopped(home: Keeper) -> None:
    server = sleeper(home).started()
    server.pause()
    server.stop(grace=5.0)
    assert server.pid is None


def test_all_lives_of_a_server_are_in_one_log(home: Keeper) -> None:
    server = Server("brief", [sys.executable, "-c", "print('lived')"], home, lambda: server.pid is None)
    server.started()
    server.restart()
    assert server.last_lines() == ["lived", "lived"]


def test_the_keeper_outlives_the_thread_that_started_it() -> None:
    made: list[Keeper] = []
    thread = threading.Thread(target=lambda: made.append(Keeper()))
    thread.start()
    thread.join()
    assert made[0].directory.is_dir()
    assert not ended(made[0].group, within=0.2)
    made[0].close()


def test_the_keeper_ignores_the_signals_of_a_closing_terminal(home: Keeper) -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        os.kill(home.group, number)
    assert not ended(home.group, within=0.2)
