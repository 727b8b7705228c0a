import io
import re
from pathlib import Path

import pytest

from local import binaries, helm, pins
from local.errors import LocalError
from local.progress import Progress
from tests.local.fake_go import FakeGo, executable


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    fake = FakeGo(tmp_path)
    fake.install(programs=("helm",))
    return fake


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


def test_it_is_built_once_beside_the_control_plane_and_says_so(go, said):
    first = helm.ensure(Progress(said), go.environ(GOPROXY="http://proxy.example"))
    again = helm.ensure(Progress(said), go.environ())

    assert first == again == go.cache / helm.program().entry().name / "helm"
    assert go.builds() == 1
    assert said.getvalue().count("building helm into") == 1
    assert "building helm: done in" in said.getvalue()
    assert "GOPROXY=http://proxy.example GOFLAGS=-mod=readonly" in go.log.with_name("go.log.environ").read_text()


def test_one_of_the_users_is_taken_and_nothing_is_built(go, said, tmp_path):
    mine = executable(tmp_path / "mine" / "helm", "#!/bin/sh\n")

    assert helm.ensure(Progress(said), go.environ(KUBEBUILDER_ASSETS=str(mine.parent))) == mine
    assert go.builds() == 0


def test_assets_without_a_helm_lead_to_our_own(go, said, tmp_path):
    assert helm.ensure(Progress(said), go.environ(KUBEBUILDER_ASSETS=str(tmp_path))).parent.parent == go.cache


def test_a_build_that_makes_no_helm_is_not_kept(go, said):
    go.install(programs=("tiller",))
    with pytest.raises(LocalError, match="made no helm"):
        helm.ensure(Progress(said), go.environ())
    assert [path.name for path in go.cache.iterdir()] == [f"{helm.program().entry().name}.lock"]


def test_its_pins_are_not_the_control_planes(monkeypatch):
    before = binaries.key()
    monkeypatch.setattr(helm, "PINNED", Path("/nowhere"))
    assert binaries.key() == before


def test_it_knows_its_own_version_and_the_one_of_kubernetes_that_it_was_made_for():
    stamps = helm.flags()[-1]
    assert f"version.version={pins.helm()} " in stamps
    client = re.fullmatch(r"v0\.(\d+)\.\d+", pins.helm_client())
    assert client is not None
    assert stamps.count(f"k8sVersionMinor={client[1]}") == 2
