"""The wheel ships the operator with its data, and nothing of what only developers need."""

import configparser
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = {"service", "webhooks", "crds", "certs", "agent", "local"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    target = tmp_path_factory.mktemp("wheel")
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(target), str(CHECKOUT)], check=True)
    (file,) = target.glob("*.whl")
    with zipfile.ZipFile(file) as opened:
        yield opened


def shipped(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_it_holds_the_six_packages_and_no_other(wheel):
    assert {name.partition("/")[0] for name in shipped(wheel)} == PACKAGES


def test_everything_kept_in_a_package_is_shipped(wheel):
    tracked = subprocess.check_output(["git", "ls-files", *PACKAGES], cwd=CHECKOUT, text=True).split("\n")
    assert {name for name in tracked if name and (CHECKOUT / name).exists()} <= shipped(wheel)


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "toolchain.txt"])
def test_the_pinned_versions_of_the_local_control_plane_are_shipped(wheel, name):
    assert f"local/gomod/{name}" in shipped(wheel)


def test_it_installs_the_command(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    scripts = configparser.ConfigParser()
    scripts.read_string(wheel.read(name).decode())
    assert scripts["console_scripts"]["5spot"] == "service.cli:main"


def test_it_carries_the_licence(wheel):
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
