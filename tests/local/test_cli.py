"""`5spot local` as a user meets it: as a command."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.binaries import ASSETS_VARIABLE, Assets
from local.state import LocalState, running
from tests.local.ended import ended
from tests.local.spot import COMMAND, PATIENCE, Spot


@pytest.fixture
def spot(tmp_path: Path, assets: Assets) -> Spot:
    return Spot.at(tmp_path, assets)


def test_up_status_down_leave_nothing_behind_but_what_others_wrote(spot: Spot, tmp_path: Path, assets: Assets) -> None:
    config, extended = tmp_path / "management.kubeconfig", tmp_path / "workload.kubeconfig"
    files = ("--kubeconfig", str(config), "--workload-kubeconfig", str(extended))
    try:
        up = spot("local", "up", "--no-operator", "--detach", *files)
        assert up.returncode == 0, up.stderr
        assert f"kubeconfig {config}\n" in up.stdout
        assert f"kubeconfig {extended}\n" in up.stdout
        assert "operator    not started" in up.stdout
        assert 'eval "$(5spot local env)"\n  kubectl get clusters,machines' in up.stdout
        assert spot("local", "env").stdout.startswith(f"export KUBECONFIG={config}:")
        clusters = [str(assets.kubectl), f"--kubeconfig={config}", "get", "clusters", "demo", "-o=name"]
        assert "cluster.cluster.x-k8s.io/demo" in subprocess.check_output(clusters, text=True)
        gates = [str(assets.kubectl), f"--kubeconfig={config}", "get", "validatingwebhookconfigurations", "-o=name"]
        assert subprocess.check_output(gates, text=True) == ""

        second = spot("local", "up")
        assert second.returncode == 1
        assert "a control plane is running already (process" in second.stderr

        status = spot("local", "status")
        assert status.returncode == 0
        assert "management-capi" in status.stdout
        assert "DEAD" not in status.stdout
        assert "The operator" not in status.stdout

        kwok = recorded(spot).processes["workload-kwok"]
        os.kill(kwok, signal.SIGKILL)
        assert ended(kwok)
        assert [line.split()[0] for line in spot("local", "status").stdout.splitlines() if "DEAD" in line] == [
            "workload-kwok"
        ]
        mine = [str(assets.kubectl), f"--kubeconfig={extended}", "config", "set-context", "mine", "--user=me"]
        subprocess.check_call(mine, stdout=subprocess.DEVNULL)
    finally:
        down = spot("local", "down")
    left = f"stopped; these files stay because they were changed: {extended}\n"
    assert (down.returncode, down.stdout) == (0, left)
    assert "name: mine" in extended.read_text()
    assert spot.files == []
    assert not config.exists()
    assert spot("local", "status").returncode == 3


def recorded(spot: Spot) -> LocalState:
    found = running(Path(spot.environment["XDG_CACHE_HOME"], "5spot", "local.json"))
    assert found is not None
    return found


FRIDAY_MORNING = "2026-03-06T09:30:00Z"


def output_until_ready(owner: "subprocess.Popen[str]") -> str:
    """What `up` says when all is ready."""
    assert owner.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("Stop it with"):
        lines.append(owner.stdout.readline())
        assert lines[-1], "it ended"
    return "".join(lines)


def test_a_killed_owner_takes_even_the_operator_and_the_kubeconfigs_along(spot: Spot, tmp_path: Path) -> None:
    config = tmp_path / "workload.kubeconfig"
    with subprocess.Popen(
        [*COMMAND, "local", "up", "--workload-kubeconfig", config, "--at", FRIDAY_MORNING, "--speed", "2"],
        env=spot.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        up = output_until_ready(owner)
        assert "webhooks, called by the API server" in up
        assert "/ready, http://127.0.0.1:" in up
        assert "its clock started at 2026-03-06 09:30+00:00, runs 2 times as fast" in up
        assert f"apply -f {Path('local', 'examples', 'office-hours.yaml')}" in up
        assert "get sm -w" in up

        status = spot("local", "status")
        assert "DEAD" not in status.stdout
        assert "The operator's clock says Friday, 06 March 2026 09:3" in status.stdout

        found = recorded(spot)
        assert "operator" in found.processes
        keeper = os.getpgid(next(iter(found.processes.values())))
        owner.kill()
    assert [pid for pid in (keeper, *found.processes.values()) if not ended(pid)] == []
    assert spot.files == []
    assert not config.exists()


def test_a_kubeconfig_that_exists_is_left_alone(spot: Spot, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("precious")
    for detach in ((), ("--detach",)):
        refused = spot("local", "up", "--kubeconfig", str(config), *detach)
        assert refused.returncode == 1
        assert f"{config} exists already and is left alone" in refused.stderr
    assert config.read_text() == "precious"


def test_a_folder_that_is_not_there_is_said_before_anything_starts(spot: Spot, tmp_path: Path) -> None:
    refused = spot("local", "up", "--kubeconfig", str(tmp_path / "no" / "config"))
    assert (refused.returncode, "there is no folder" in refused.stderr) == (1, True)


def test_a_folder_too_deep_for_sockets_is_a_sentence(spot: Spot, tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 10) / ("deeper" * 8)
    deep.mkdir(parents=True)
    spot.environment["TMPDIR"] = str(deep)
    refused = spot("local", "up", "--no-operator")
    assert refused.returncode == 1
    assert "too deep for sockets; set TMPDIR" in refused.stderr
    assert spot.files == []


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_an_exhausted_range_of_ports_is_a_sentence(spot: Spot, taken: int) -> None:
    refused = spot("local", "up", "--ports", "1024-1024x")
    assert "is not a range of ports" in refused.stderr
    refused = spot("local", "up", "--ports", f"{taken}-{taken}")
    assert refused.returncode == 1
    assert f"no free port between {taken} and {taken}" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("detach", [(), ("--detach",)], ids=["", "detached"])
def test_a_server_that_dies_at_start_shows_its_last_words(
    spot: Spot, tmp_path: Path, assets: Assets, detach: tuple[str, ...]
) -> None:
    broken = tmp_path / "assets"
    broken.mkdir()
    for asset in assets.etcd.parent.iterdir():
        (broken / asset.name).symlink_to(asset)
    (broken / "etcd").unlink()
    (broken / "etcd").write_text("#!/bin/sh\necho disk on fire >&2\nexit 5\n")
    (broken / "etcd").chmod(0o755)
    spot.environment[ASSETS_VARIABLE] = str(broken)

    refused = spot("local", "up", *detach)

    assert refused.returncode == 1
    assert "etcd died at start (exit code 5); its last log lines:\n  disk on fire" in refused.stderr
    assert ": done in" not in refused.stderr
    assert "Traceback" not in refused.stderr
    assert spot.files == []


def test_a_folder_with_packages_called_like_ours_does_not_matter(spot: Spot, tmp_path: Path, taken: int) -> None:
    for name in ("local", "service", "certs"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    command = [str(Path(sys.executable).with_name("5spot")), "local", "up", "--detach", "--ports", f"{taken}-{taken}"]
    refused = subprocess.run(
        command, cwd=tmp_path, env=spot.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert f"no free port between {taken} and {taken}" in refused.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--at", "yesterday"), "'yesterday' is not a time with its zone, such as 2026-03-06T08:55:00Z"),
        (("--at", "2026-03-06T08:55:00"), "is not a time with its zone"),
        (("--speed", "0"), "'0' is not a number above 0 and up to 100000"),
        (("--no-operator", "--speed", "60"), "make no sense with --no-operator"),
    ],
)
def test_a_clock_that_makes_no_sense_is_refused_before_anything_starts(
    spot: Spot, words: tuple[str, ...], sentence: str
) -> None:
    refused = spot("local", "up", *words)
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert spot.files == []


def test_env_without_anything_running_prints_nothing_that_a_shell_would_take(spot: Spot) -> None:
    env = spot("local", "env")
    assert (env.returncode, env.stdout) == (1, "")
    assert "`5spot local up` starts one" in env.stderr


def test_down_without_anything_running_is_no_error(spot: Spot) -> None:
    down = spot("local", "down")
    assert (down.returncode, down.stdout) == (0, "no control plane is running\n")


@pytest.mark.parametrize("words", [(), ("up",), ("env",), ("status",), ("down",)])
def test_every_command_explains_itself(spot: Spot, words: tuple[str, ...]) -> None:
    assert f"Usage: {' '.join(('5spot', 'local', *words))} " in spot("local", *words, "--help").stdout
