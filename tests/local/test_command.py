import os
from pathlib import Path

import pytest

from local.command import Tool, explained
from local.errors import LocalError


def tool(path: str, folder: Path) -> Tool:
    return Tool(Path(path), os.environ, folder)


def test_lines_are_answered_and_passed_on_as_they_come(tmp_path):
    seen: list[str] = []
    lines = tool("/bin/sh", tmp_path).run("-c", "echo one; echo two >&2", on_line=seen.append)

    assert lines == seen == ["one", "two"]


def test_a_command_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(LocalError, match=r"/no/such/go cannot be run: No such file or directory\."):
        tool("/no/such/go", tmp_path).run("build")


def test_a_reader_that_fails_ends_the_command(tmp_path):
    def fail(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tool("/bin/sh", tmp_path).run("-c", "echo one; exec sleep 600", on_line=fail)


def test_a_full_disk_is_recognised_among_other_errors():
    with pytest.raises(LocalError, match="the disk is full: copying failed"), explained("copying"):
        Path("/dev/full").write_text("x")


def test_other_refusals_name_the_file_and_the_reason(tmp_path):
    with pytest.raises(LocalError, match=rf"copying failed: {tmp_path}: Is a directory"), explained("copying"):
        tmp_path.write_text("x")
