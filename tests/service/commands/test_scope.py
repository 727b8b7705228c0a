"""Which cluster, namespace and clock the arguments of a command ask for."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crds import names
from local.access import Access
from service.clock import SimulatedClock, SystemClock
from service.commands import fleet
from service.commands.options import ClusterChoice
from service.commands.table import UsageError

AT = datetime(2026, 3, 6, 9, tzinfo=UTC)
TOKENS = {"admin": "secret"}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Those of a local control plane whose operator runs on a fast clock, as KUBECONFIG lists them."""
    clock = {names.CLOCK_EXTENSION: SimulatedClock.starting(AT, 60).to_json()}
    for name, extensions in (("management", clock), ("workload", {})):
        (tmp_path / name).write_text(Access(name, "https://127.0.0.1:1", b"", TOKENS).kubeconfig(extensions=extensions))
    return Path(f"{tmp_path / 'management'}{os.pathsep}{tmp_path / 'workload'}")


@pytest.mark.parametrize("all_namespaces", [False, True])
def test_on_a_local_control_plane_commands_follow_the_clock_of_its_operator(
    kubeconfig: Path, *, all_namespaces: bool
) -> None:
    found = fleet.scope(ClusterChoice(kubeconfig, None), None, [], all_namespaces=all_namespaces)
    assert abs(found.clock.now() - AT) < timedelta(minutes=5)
    assert found.clock.real_seconds(timedelta(hours=1)) == 60


def test_elsewhere_they_follow_the_real_clock(kubeconfig: Path) -> None:
    assert isinstance(fleet.scope(ClusterChoice(kubeconfig, "workload"), None, []).clock, SystemClock)


@pytest.mark.parametrize("content", [b"a: [", b"\x7fELF\xff"])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(UsageError, match="config: the file is not a kubeconfig"):
        fleet.scope(ClusterChoice(tmp_path / "config", None), None, [])
