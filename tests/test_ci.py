"""What runs before a change is merged: the git hook on a contributor's machine, and the workflow of a public CI."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.contents import CHECKSUMS, NOTES, SBOM, Release

CHECKOUT = Path(__file__).parents[1]
WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yaml"))
ACTION = re.compile(r"(actions/[a-z-]+|sigstore/cosign-installer)@[0-9a-f]{40}")
PUBLISHING = {"contents": "write", "id-token": "write", "attestations": "write"}
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh repository with our Makefile."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(CHECKOUT / ".ci" / "pre-commit", tmp_path / ".ci")
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    run(tmp_path, "git", "init", "--quiet")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(words, cwd=folder, env={**clean, **GIT}, text=True, capture_output=True, check=False)


def commit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    return run(folder, "git", *who, "commit", "--allow-empty", "-m", "x", *words)


def test_after_make_hooks_a_commit_needs_a_passing_lint(clone: Path) -> None:
    assert commit(clone).returncode == 0

    assert run(clone, "make", "hooks").returncode == 0
    (clone / "Makefile").write_text("lint:\n\t@echo 'lint said no' >&2; exit 1\n")
    refused = commit(clone)

    assert refused.returncode != 0
    assert "lint said no" in refused.stderr
    assert commit(clone, "--no-verify").returncode == 0


MAKEFILE = f"""
TESTS ?= tests
lint docs newer soak cluster-test:
\t@echo $@
test:
\t@{sys.executable} -m pytest -q $(TESTS)
"""
UNSTEADY = """
from pathlib import Path
def test_unsteady():
    before = Path("before")
    known = before.exists()
    before.touch()
    assert known
def test_broken():
    assert {works}
"""


@pytest.mark.parametrize("works", [True, False])
def test_what_fails_is_run_once_more_and_named_and_what_fails_again_has_failed(tmp_path: Path, works: bool) -> None:
    for name, text in ((".ci/run", (CHECKOUT / ".ci/run").read_text()), ("Makefile", MAKEFILE)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(UNSTEADY.format(works=works))

    done = run(tmp_path, "bash", ".ci/run")

    assert (done.returncode == 0) == works
    assert ("soak" in done.stdout) == works
    assert "== make test: once more what failed" in done.stdout
    assert ("passed when they were run again" in done.stdout) == works
    assert not works or "test_unsteady" in done.stdout.rpartition("when they were run again")[2]


def test_make_hooks_can_be_repeated_and_leaves_another_hook_alone(clone: Path) -> None:
    assert [run(clone, "make", "hooks").returncode for _ in range(2)] == [0, 0]
    hook = clone / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\n")

    refused = run(clone, "make", "hooks")

    assert refused.returncode != 0
    assert "add 'make lint' to it yourself" in refused.stderr
    assert hook.read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_pins_every_action_by_commit(path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]

    assert workflow["permissions"] == {"contents": "read"}
    more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert more == ({"publish": PUBLISHING} if path.name == "release.yaml" else {})
    assert [action for action in used if not ACTION.fullmatch(action)] == []


def test_the_release_is_published_from_what_make_release_makes() -> None:
    workflow: dict[str, Any] = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "release.yaml").read_text())
    script = "\n".join(step.get("run", "") for step in workflow["jobs"]["publish"]["steps"])
    release = Release(repository="registry.example.com/team/5spot")
    assert release.image_file("amd64").startswith(f"5spot-{release.version}-image-")
    assert release.chart_file == f"5spot-{release.version}.tgz"
    for name in (CHECKSUMS, SBOM, NOTES):
        assert f"dist/{name}" in script
    assert script.index("sha256sum --check") < script.index("skopeo copy") < script.index("cosign sign")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_public_ci_runs_what_has_to_pass() -> None:
    workflow: dict[str, Any] = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "ci.yaml").read_text())
    assert ".ci/run" in [step.get("run") for step in workflow["jobs"]["run"]["steps"]]


def test_the_public_ci_has_the_oldest_python_and_that_of_the_image() -> None:
    text = (CHECKOUT / ".github" / "workflows" / "ci.yaml").read_text()
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (CHECKOUT / "pyproject.toml").read_text())
    image = re.search(r"^ARG PYTHON=python:(\d+\.\d+)", (CHECKOUT / "Dockerfile").read_text(), re.MULTILINE)
    assert oldest is not None
    assert image is not None
    assert f"PYTHON3: python{oldest[1]}" in text
    assert re.search(rf"python-version: \|\s+{re.escape(image[1])}\s+{re.escape(oldest[1])}\s", text)
