import io
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import binaries, pins
from local.binaries import Assets, ensure, key
from local.entry import cache_folder
from local.errors import LocalError
from local.progress import Progress
from tests.local.fake_go import PROGRAMS, PYTHON, FakeGo, executable

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    fake = FakeGo(tmp_path)
    fake.install()
    return fake


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def progress(said: io.StringIO) -> Progress:
    return Progress(said)


def complete(folder: Path) -> Assets:
    assets = Assets.under(folder)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "capi-core", "kwok"):
        executable(folder / name, "#!/bin/sh\n")
    assets.capi_crds.mkdir()
    (assets.capi_crds / "machines.yaml").touch()
    assets.kwok_stages.mkdir()
    for name in ("node-initialize", "node-heartbeat-with-lease", "pod-ready", "pod-complete", "pod-delete"):
        (assets.kwok_stages / f"{name}.yaml").touch()
    return assets


def test_complete_assets_of_the_user_are_taken_and_nothing_is_built(go, progress, said, tmp_path):
    mine = complete(tmp_path / "mine")

    assert ensure(progress, go.environ(KUBEBUILDER_ASSETS=str(tmp_path / "mine"))) == mine
    assert go.builds() == 0
    assert said.getvalue() == ""


def test_incomplete_assets_of_the_user_are_named_once_and_left_alone(go, progress, said, tmp_path):
    mine = complete(tmp_path / "mine")
    mine.kwok.unlink()
    mine.capi_core.chmod(0o644)
    (mine.kwok_stages / "pod-ready.yaml").unlink()

    assets = ensure(progress, go.environ(KUBEBUILDER_ASSETS=str(tmp_path / "mine")))

    assert assets == Assets.under(go.cache / key())
    assert said.getvalue().count("lacks capi-core, kwok, kwok-stages: using 5spot's own build instead") == 1


def test_a_build_leaves_programs_and_data_under_our_names_and_nothing_else(go, progress):
    assets = ensure(progress, go.environ())

    assert assets.missing() == []
    assert (assets.capi_crds / "machines.yaml").read_text() == "# machines.yaml\n"
    assert {path.name for path in assets.etcd.parent.iterdir()} == {
        "etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "capi-core", "kwok", "capi-crds", "kwok-stages",
    }  # fmt: skip
    assert {path.name for path in go.cache.iterdir()} == {key(), f"{key()}.lock"}


def test_the_second_time_comes_from_the_cache_in_silence(go, progress):
    ensure(progress, go.environ())
    later = io.StringIO()
    ensure(Progress(later), go.environ())

    assert go.builds() == 1
    assert later.getvalue() == ""


def test_a_damaged_cache_entry_is_built_again(go, progress):
    ensure(progress, go.environ()).kube_apiserver.unlink()

    assert ensure(progress, go.environ()).missing() == []
    assert go.builds() == 2


def test_a_build_says_what_it_does(go, progress, said):
    ensure(progress, go.environ())

    assert "building the local control plane into" in said.getvalue()
    assert "fetching the sources of etcd, Kubernetes, Cluster API and kwok ..." in said.getvalue()
    assert "building etcd, Kubernetes, Cluster API and kwok: done in 0 s" in said.getvalue()


def test_the_users_module_proxy_is_respected_and_flags_that_change_the_outcome_are_not(go, progress):
    ensure(progress, go.environ(GOPROXY="http://proxy.example", GOFLAGS="-mod=mod -race"))

    last = go.log.with_name("go.log.environ").read_text().splitlines()[-1]
    assert "GOPROXY=http://proxy.example GOFLAGS=-mod=readonly" in last


def test_go_caches_that_cannot_be_written_are_replaced_by_ours(go, progress, tmp_path):
    (tmp_path / "file").touch()
    go.install(module_cache=tmp_path / "file" / "mod")
    ensure(progress, go.environ())

    assert f"GOMODCACHE={go.cache}/gomodcache" in go.log.with_name("go.log.environ").read_text().splitlines()[-1]


def test_a_failed_build_names_the_command_and_shows_its_last_lines_and_leaves_nothing(go, progress):
    go.install(before_build="for n in $(seq 40); do echo line $n; done; echo undefined: Foo >&2; exit 3")

    with pytest.raises(LocalError) as caught:
        ensure(progress, go.environ())

    message = str(caught.value)
    assert f"failed with exit code 3:\n  {go.bin}/go build -v" in message
    assert message.endswith("line 40\n    undefined: Foo")
    assert "line 25\n" not in message
    assert [path.name for path in go.cache.iterdir()] == [f"{key()}.lock"]


def test_a_disk_that_fills_up_during_the_build_is_called_full(go, progress):
    go.install(before_build="echo 'write /x/y.a: no space left on device'; exit 1")

    with pytest.raises(
        LocalError, match=r"(?s)the disk is full: `go build`.*XDG_CACHE_HOME.*larger disk.*y\.a: no space"
    ):
        ensure(progress, go.environ())


def test_a_build_that_makes_too_little_is_not_kept(go, progress):
    go.install(programs=PROGRAMS[:-1])

    with pytest.raises(LocalError, match="made no kwok"):
        ensure(progress, go.environ())
    assert not (go.cache / key()).exists()


def test_a_cache_that_cannot_be_written_is_a_sentence(go, progress, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")

    with pytest.raises(
        LocalError, match=r"locking .*cache/5spot.*Set XDG_CACHE_HOME to a folder that you may write to"
    ):
        ensure(progress, go.environ())


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.cache/5spot"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/big"}, "/big/5spot"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "relative"}, "/home/ada/.cache/5spot"),
    ],
)
def test_the_cache_is_where_the_user_keeps_caches(environ, folder):
    assert cache_folder(environ) == Path(folder)


def test_without_a_home_the_user_is_asked_for_a_cache():
    with pytest.raises(LocalError, match="set XDG_CACHE_HOME or HOME"):
        cache_folder({})


def test_another_pinned_version_is_another_build(monkeypatch, tmp_path):
    before = key()
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_bytes((pins.GOMOD / name).read_bytes())
    monkeypatch.setattr(binaries, "GOMOD", tmp_path)
    assert key() == before

    (tmp_path / "go.sum").write_text("another")
    assert key() != before


def test_other_flags_are_another_build(monkeypatch):
    before = key()
    monkeypatch.setattr(binaries, "flags", lambda: ("-trimpath",))
    assert key() != before


class Builder:
    """`python -m local.binaries` as a process of its own, whose standard error is read as it comes."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [PYTHON, "-m", "local.binaries"],
            cwd=CHECKOUT, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def wait_until_it_says(self, words: str) -> None:
        assert self.process.stderr is not None
        assert any(words in line for line in self.process.stderr)

    def finish(self) -> tuple[int, str]:
        output, _ = self.process.communicate()
        return self.process.returncode, output.strip()


@pytest.fixture
def builders(go: FakeGo) -> Iterator[list[Builder]]:
    started: list[Builder] = []
    yield started
    for builder in started:
        if builder.process.poll() is None:
            builder.process.kill()
        builder.process.communicate()


@pytest.fixture
def gate(go: FakeGo) -> Path:
    """The fake compiler stops here until something is written."""
    path = go.root / "gate"
    os.mkfifo(path)
    go.install(before_build=f"read line < {path}")
    return path


def test_two_processes_at_once_build_once(go, gate, builders):
    builders += [Builder(go.environ())]
    builders[0].wait_until_it_says("building etcd")
    builders += [Builder(go.environ())]
    builders[1].wait_until_it_says("waiting for another process that is building the local control plane")
    gate.write_text("go on\n")

    assert [builder.finish() for builder in builders] == [(0, str(go.cache / key()))] * 2
    assert go.builds() == 1


def test_what_a_killed_builder_left_is_cleared_away_once_its_compiler_is_gone(go, gate, builders):
    builders += [Builder(go.environ())]
    builders[0].wait_until_it_says("building etcd")
    with gate.open("w") as compiler_waits_here:
        builders[0].process.send_signal(signal.SIGKILL)
        builders[0].finish()
        (go.cache / f"{key()}.building" / "half").touch()
        builders += [Builder(go.environ())]
        builders[1].wait_until_it_says("waiting for another process")
        compiler_waits_here.write("go on\n")
    builders[1].wait_until_it_says("building etcd")
    gate.write_text("go on\n")

    assert builders[1].finish() == (0, str(go.cache / key()))
    assert not (go.cache / key() / "half").exists()


def test_the_command_prints_a_sentence_and_no_traceback(go):
    go.install(before_build="exit 1")
    done = subprocess.run(
        [PYTHON, "-m", "local.binaries"], cwd=CHECKOUT, env=go.environ(), text=True, capture_output=True, check=False
    )

    assert done.returncode == 1
    assert "\nerror: this command failed with exit code 1:" in done.stderr
    assert "(it printed nothing)" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_the_command_has_help():
    done = subprocess.run(
        [PYTHON, "-m", "local.binaries", "--help"], cwd=CHECKOUT, text=True, capture_output=True, check=True
    )
    assert "KUBEBUILDER_ASSETS" in done.stdout
