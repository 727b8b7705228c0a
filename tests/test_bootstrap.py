"""`.ci/get-uv` and the Makefile: what a newcomer's machine meets first."""

import ast
import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[1]
GET_UV = CHECKOUT / ".ci" / "get-uv"
PLATFORMS = ".".join(
    f"{prefix}_{os.uname().machine}" for prefix in ("manylinux_2_17", "musllinux_1_1", "macosx_10_12", "macosx_11_0")
)
PIP = """\
import pathlib, sys
words = sys.argv
made = pathlib.Path(words[words.index("--target") + 1]) / "bin" / "uv"
made.parent.mkdir()
made.write_text("#!/bin/sh\\necho " + pathlib.Path(words[words.index("-r") + 1]).read_text())
made.chmod(0o755)
"""
WHEEL = f"uv-9.9.9-py3-none-{PLATFORMS}.whl"


@dataclass(frozen=True)
class Clone:
    """As much of a checkout as get-uv looks at, on a machine with nothing else."""

    root: Path
    address: str

    def lock(self, *, wheel: str = WHEEL, digest: str | None = None) -> None:
        digest = digest or hashlib.sha256((self.root / "served" / WHEEL).read_bytes()).hexdigest()
        (self.root / "uv.lock").write_text(
            '[[package]]\nname = "other"\nversion = "1.0"\n\n[[package]]\nname = "uv"\nversion = "9.9.9"\nwheels = [\n'
            f'    {{ url = "{self.address}/{wheel}", hash = "sha256:{digest}" }},\n]\n'
        )

    def uv_on_path(self, version: str) -> Path:
        return program(self.root / "bin" / "uv", f"#!/bin/sh\necho uv {version}\n")

    def get_uv(self, prelude: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        words = [str(self.root / ".ci" / "get-uv")]
        if prelude:
            words = ["-c", f"import runpy, sys; {prelude}; runpy.run_path({words[0]!r}, run_name='__main__')"]
        given = {"PATH": str(self.root / "bin"), "HOME": str(self.root / "home"), "PIP_NO_INDEX": "1"} | environ
        return subprocess.run([sys.executable, *words], env=given, text=True, capture_output=True, check=False)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "served").mkdir()
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nothing: a test's output is for failures."""


@pytest.fixture
def clone(tmp_path: Path, address: str) -> Clone:
    (tmp_path / ".ci").mkdir()
    shutil.copy(GET_UV, tmp_path / ".ci")
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    with zipfile.ZipFile(tmp_path / "served" / WHEEL, "w") as wheel:
        wheel.writestr("uv-9.9.9.data/scripts/uv", "#!/bin/sh\necho uv 9.9.9\n")
    made = Clone(tmp_path, address)
    made.lock()
    return made


def test_it_parses_on_old_pythons():
    ast.parse(GET_UV.read_text(), feature_version=(3, 6))


def test_an_old_python_is_refused_in_one_sentence(clone):
    done = clone.get_uv("sys.version_info = (3, 8, 1)")

    assert done.returncode == 1
    assert done.stderr.startswith("error: 5spot needs Python 3.11 or newer")
    assert "make PYTHON3=" in done.stderr


def test_an_old_python_hands_over_to_a_newer_one_on_path(clone):
    program(clone.root / "bin" / "python3.12", f'#!/bin/sh\n[ "$1" = -c ] && exit 0\nexec {sys.executable} "$@"\n')
    program(clone.root / "bin" / "python3.14", "#!/bin/sh\nexit 127\n")
    script = str(clone.root / ".ci" / "get-uv")
    clone.uv_on_path("99.0")

    assert clone.get_uv(f"sys.version_info = (3, 8, 1); sys.argv = [{script!r}]").stdout == f"{clone.root}/bin/uv\n"


def test_a_uv_on_path_is_taken_if_new_enough(clone):
    clone.uv_on_path("99.0")
    assert clone.get_uv().stdout == f"{clone.root}/bin/uv\n"


def test_an_old_uv_on_path_is_passed_over(clone):
    clone.uv_on_path("0.1.44")
    assert clone.get_uv().stdout == f"{clone.root}/.tools/uv-9.9.9/uv\n"


def test_the_locked_uv_is_fetched_once(clone):
    first = clone.get_uv()
    (clone.root / "served" / WHEEL).unlink()
    second = clone.get_uv()

    assert first.stdout == second.stdout == f"{clone.root}/.tools/uv-9.9.9/uv\n"
    assert "fetching uv 9.9.9" in first.stderr
    assert second.stderr == ""
    assert subprocess.check_output([first.stdout.strip()], text=True) == "uv 9.9.9\n"


def test_what_the_lock_does_not_vouch_for_is_refused(clone):
    clone.lock(digest="0" * 64)
    done = clone.get_uv()

    assert done.returncode == 1
    assert "its hash differs" in done.stderr
    assert not (clone.root / ".tools" / "uv-9.9.9" / "uv").exists()


def test_a_failed_download_ends_in_a_sentence_with_a_way_out(clone):
    clone.lock(wheel="gone-" + WHEEL)
    done = clone.get_uv()

    assert done.returncode == 1
    assert "cannot be fetched: File not found; trying pip" in done.stderr
    assert "Install uv 9.9.9 yourself and put it on PATH." in done.stderr
    assert "Traceback" not in done.stderr


def test_pip_steps_in_with_the_hashes_of_the_lock_when_the_download_fails(clone):
    clone.lock(wheel="gone-" + WHEEL, digest="a" * 64)
    program(clone.root / "site" / "pip" / "__main__.py", PIP)
    done = clone.get_uv(PYTHONPATH=str(clone.root / "site"))

    assert done.stdout == f"{clone.root}/.tools/uv-9.9.9/uv\n"
    assert subprocess.check_output([done.stdout.strip()], text=True) == f"uv==9.9.9 --hash=sha256:{'a' * 64}\n"


def test_a_platform_without_a_wheel_is_named(clone):
    clone.lock(wheel="uv-9.9.9-py3-none-win_arm64.whl")
    assert "uv.lock has no uv for " in clone.get_uv().stderr


def test_a_home_that_cannot_be_written_is_a_sentence(clone):
    (clone.root / "home").write_text("a file where a folder should be")
    done = clone.get_uv()

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: the cache folder {clone.root}/home/.cache cannot be written to.")
    assert "XDG_CACHE_HOME=" in done.stderr
    assert clone.get_uv(XDG_CACHE_HOME=str(clone.root / "elsewhere")).returncode == 0


def test_a_checkout_that_cannot_be_written_is_a_sentence(clone):
    (clone.root / ".tools").write_text("a file where a folder should be")
    done = clone.get_uv()

    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "uv-9.9.9 cannot be filled" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_real_lock_has_a_uv_for_this_machine():
    script: dict[str, Any] = {"__name__": "get_uv", "__file__": str(GET_UV)}
    exec(compile(GET_UV.read_text(), str(GET_UV), "exec"), script)
    assert any(script["fits"](url) for url, _ in script["Lock"]().wheels)


def test_make_alone_lists_the_targets():
    listed = subprocess.check_output(["make", "--no-print-directory", "-C", str(CHECKOUT)], text=True)
    for target in ("demo", "test", "lint", "bench", "help", "clean"):
        assert f"make {target} " in listed


def test_a_failed_setup_stops_make_with_the_sentence(clone):
    shutil.copy(CHECKOUT / "Makefile", clone.root)
    (clone.root / "home").write_text("a file where a folder should be")
    done = subprocess.run(
        ["make", "-C", str(clone.root), "test", f"PYTHON3={sys.executable}"],
        env={"PATH": os.environ["PATH"], "HOME": str(clone.root / "home")},
        text=True, capture_output=True, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert "error: the cache folder" in done.stderr
    assert not (clone.root / ".venv").exists()


@pytest.mark.parametrize(("words", "asked"), [([], ""), ([f"PYTHON3={sys.executable}"], sys.executable)])
def test_the_python_that_was_asked_for_is_the_one_that_is_installed_into(clone, words, asked):
    shutil.copy(CHECKOUT / "Makefile", clone.root)
    uv = '#!/bin/sh\n[ "$1" = --version ] && echo uv 99.0 && exit\nmkdir -p .venv && echo "$UV_PYTHON" > .venv/python\n'
    program(clone.root / "bin" / "uv", uv)
    paths = f"{clone.root / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = {"PATH": paths, "HOME": str(clone.root / "home")}
    subprocess.run(["make", "-C", str(clone.root), "setup", *words], env=environ, capture_output=True, check=True)

    assert (clone.root / ".venv" / "python").read_text().strip() == asked
