"""What `5spot local up` refuses, and what with `--detach` it passes on to the process that holds the control plane."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.errors import LocalError
from local.operator import ClockPace
from local.ports import PortRange
from local.up import UpRequest, hear, refuse_to_overwrite

FAILING = """
from local import up
def hold(*_):
    raise ExceptionGroup("all", [ValueError("one"), OSError(28, "No space left on device")])
up.hold = hold
up.main([up.UpRequest().packed()])
"""


@pytest.mark.parametrize(
    "request_",
    [
        UpRequest(),
        UpRequest(operator=None),
        UpRequest(
            Path("/a b/config"), None, PortRange(20000, 20100), ClockPace(datetime(2026, 3, 6, 9, tzinfo=UTC), 720.0)
        ),
    ],
)
def test_a_request_survives_the_way_to_another_process(request_: UpRequest) -> None:
    assert UpRequest.unpacked(request_.packed()) == request_


@pytest.mark.parametrize(
    ("pace", "flags", "words"),
    [
        (ClockPace(), ["--speed=1.0"], "started at the real time"),
        (ClockPace(speed=60.0), ["--speed=60.0"], "started at the real time, runs 60 times as fast"),
        (
            ClockPace(datetime(2026, 3, 6, 9, tzinfo=UTC)),
            ["--at=2026-03-06T09:00:00+00:00", "--speed=1.0"],
            "started at 2026-03-06 09:00+00:00",
        ),
    ],
)
def test_a_pace_as_flags_and_in_words(pace: ClockPace, flags: list[str], words: str) -> None:
    assert (pace.flags, pace.described()) == (flags, words)


def test_an_empty_file_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "made-by-mktemp").touch()
    refuse_to_overwrite([tmp_path / "made-by-mktemp", tmp_path / "not-there"])


def test_what_holds_something_or_is_no_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("precious")
    for path in (tmp_path / "config", tmp_path):
        with pytest.raises(LocalError, match=f"{path} exists already and is left alone"):
            refuse_to_overwrite([path])


def test_one_file_is_not_enough_for_two_clusters(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="cannot hold the kubeconfigs of both clusters: name two files"):
        refuse_to_overwrite([tmp_path / "config", tmp_path / "config"])


def test_a_folder_that_is_not_writable_is_reported_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # a superuser may write everywhere
    with pytest.raises(LocalError, match=f"the folder {tmp_path} may not be written to"):
        refuse_to_overwrite([tmp_path / "config"])


@pytest.mark.parametrize(("code", "said"), [(0, "stopped before it was ready"), (3, "ended with code 3")])
def test_an_owner_that_ends_without_output_is_reported(code: int, said: str) -> None:
    with subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"], stdout=subprocess.PIPE) as owner:
        assert said in hear(owner)["error"]


def test_unexpected_errors_reach_the_waiting_process_as_sentences() -> None:
    said = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, check=False).stdout
    assert json.loads(said) == {"error": "one; No space left on device"}
