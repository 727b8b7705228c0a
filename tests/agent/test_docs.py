"""The pages for operators and owners say what the code does."""

import re
import shlex
from pathlib import Path

import pytest

from agent.settings import parse
from tests.integration.agents import ROOT

OPERATORS = (ROOT / "docs" / "emergency-reclaim-agent.md").read_text()
OWNERS = (ROOT / "docs" / "emergency-reclaim-owner.md").read_text()


def test_every_flag_is_documented_and_every_documented_flag_exists(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"], {})
    flags = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    table = OPERATORS.split("## Settings")[1].split("## Its log")[0]
    assert set(re.findall(r"`(--[a-z-]+)`", table)) == flags


def test_every_log_event_is_documented_and_every_documented_event_exists():
    code = "\n".join(path.read_text() for path in (ROOT / "agent").glob("*.py"))
    logged = set(re.findall(r'log\("\w+", "([a-z-]+)"', code)) | set(re.findall(r'_failed\("([a-z-]+)"', code))
    table = OPERATORS.split("## Its log")[1].split("## When it does not fire")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)} == logged


@pytest.mark.parametrize("page", [OPERATORS, OWNERS], ids=["operators", "owners"])
def test_paths_and_patches_in_the_pages_are_real(page: str):
    for path in re.findall(r"`?((?:agent|tests|bench)/[\w./-]+)`?", page):
        assert (ROOT / path).exists(), path
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        assert all(shlex.split(line)[0] in ("kubectl", "5spot") for line in block.splitlines())
    for link in re.findall(r"\]\(([\w-]+\.md)\)", page):
        assert Path(ROOT / "docs" / link).exists()
