"""The record of the user's one control plane: valid exactly as long as its owner lives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local import state
from local.errors import LocalError
from local.state import LocalState

OWNER = """
import signal, sys
from pathlib import Path
from local import state
with state.register(Path(sys.argv[1])) as registration:
    registration.record(state.LocalState(owner=4711, started="noon"))
    print("registered", flush=True)
    signal.pause()
"""


def test_nothing_runs_where_nothing_was_registered(tmp_path: Path) -> None:
    assert state.running(tmp_path / "local.json") is None


def test_what_the_owner_records_is_seen_by_others_until_it_ends(tmp_path: Path) -> None:
    where = tmp_path / "new" / "local.json"
    recorded = LocalState(owner=os.getpid(), started="noon", ready=True, clusters={"management": "https://x"})
    with state.register(where) as registration:
        registration.record(LocalState(owner=1, started="a much longer text than what comes next" * 9))
        registration.record(recorded)
        assert state.running(where) == recorded
    assert not where.exists()


def test_a_second_local_cluster_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    where = tmp_path / "local.json"
    with state.register(where) as registration:
        registration.record(LocalState(owner=4711, started="noon"))
        with pytest.raises(LocalError, match=r"running already \(process 4711, since noon\).*5spot local down"):
            state.register(where).__enter__()


def test_an_owner_that_has_not_yet_recorded_anything_counts(tmp_path: Path) -> None:
    where = tmp_path / "local.json"
    with state.register(where):
        found = state.running(where)
    assert found is not None
    assert not found.ready


def test_what_a_killed_owner_left_counts_for_nothing(tmp_path: Path) -> None:
    where = tmp_path / "local.json"
    with subprocess.Popen([sys.executable, "-c", OWNER, where], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "registered\n"
        assert state.running(where) == LocalState(owner=4711, started="noon")
        owner.kill()
    assert state.running(where) is None
    with state.register(where):
        pass


def test_a_folder_that_cannot_be_made_is_a_sentence_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalError, match=r"registering in .*file: .*Set XDG_CACHE_HOME"):
        state.register(tmp_path / "file" / "local.json").__enter__()
