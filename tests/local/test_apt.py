from pathlib import Path

import pytest

from local import apt
from local.command import Tool
from local.errors import LocalError

SCRIPT = """\
#!/bin/sh
echo "$*" >> said
if [ -e free ]; then exit 0; fi
echo "{answer}"
if [ "$(wc -l < said)" -ge 3 ]; then touch free; fi
exit 100
"""
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 12 (apt-get)"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(apt, "AGAIN_AFTER", 0.0)


def machine(folder: Path, answer: str) -> Tool:
    """Its apt-get fails three times with that answer."""
    program = folder / "apt-get"
    program.write_text(SCRIPT.format(answer=answer))
    program.chmod(0o755)
    found = apt.find({"PATH": f"{folder}:/usr/bin:/bin"}, folder)
    assert found is not None
    return found


def test_lists_are_updated_before_packages_are_installed_and_a_lock_of_others_is_waited_for(tmp_path):
    apt.install(machine(tmp_path, LOCKED), ["runc", "socat"])

    options = "-q -o DPkg::Lock::Timeout=300"
    said = (tmp_path / "said").read_text().splitlines()
    assert said == [f"update {options}"] * 4 + [f"install -y --no-install-recommends runc socat {options}"]


def test_another_failure_ends_it_at_once_with_what_apt_get_said(tmp_path):
    with pytest.raises(LocalError, match="Unable to locate package"):
        apt.run(machine(tmp_path, "E: Unable to locate package"), "install", "runc")

    assert len((tmp_path / "said").read_text().splitlines()) == 1


def test_a_lock_that_is_never_released_ends_it_too(tmp_path, monkeypatch):
    monkeypatch.setattr(apt, "PATIENCE", -1.0)
    with pytest.raises(LocalError, match="Could not get lock"):
        apt.run(machine(tmp_path, LOCKED), "update")


def test_a_machine_without_apt_get_has_none(tmp_path):
    assert apt.find({"PATH": str(tmp_path)}, tmp_path) is None
