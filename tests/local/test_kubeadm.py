import io
from pathlib import Path

import pytest

from local import binaries, kubeadm, loopback
from local.errors import LocalError
from local.kubeadm import KubeadmProvider, ensure, entry
from local.progress import Progress
from tests.local.fake_go import FakeGo, executable

MANIFESTS = Path(kubeadm.MODULE)


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    fake = FakeGo(tmp_path)
    fake.install(programs=("kubeadm",), before_build=f"cp controller-runtime/{loopback.FILE} {tmp_path}/built.go")
    fake.module_file(MANIFESTS / kubeadm.CRDS / "kubeadmconfigs.yaml")
    fake.module_file(MANIFESTS / kubeadm.WEBHOOKS)
    return fake


@pytest.fixture
def progress() -> Progress:
    return Progress(io.StringIO())


def test_it_is_built_once_beside_the_control_plane_with_its_manifests(go: FakeGo, progress: Progress) -> None:
    made = ensure(progress, go.environ())

    assert ensure(progress, go.environ()) == made == KubeadmProvider.under(go.cache / entry().name)
    assert go.builds() == 1
    assert made.missing() == []
    assert (made.crds / "kubeadmconfigs.yaml").read_text() == "# kubeadmconfigs.yaml\n"
    assert {path.name for path in made.program.parent.iterdir()} == {
        "capi-kubeadm-bootstrap",
        "capi-kubeadm-bootstrap-crds",
        "capi-kubeadm-bootstrap-webhooks.yaml",
    }


def test_its_webhook_listens_on_loopback_alone(go: FakeGo, progress: Progress) -> None:
    ensure(progress, go.environ())
    assert (go.root / "built.go").read_text() == loopback.MEANT


def test_one_of_the_users_is_taken_whole_or_not_at_all(go: FakeGo, progress: Progress, tmp_path: Path) -> None:
    mine = KubeadmProvider.under(tmp_path / "mine")
    executable(mine.program, "#!/bin/sh\n")
    given = go.environ(KUBEBUILDER_ASSETS=str(tmp_path / "mine"))
    assert ensure(progress, given).program.parent.parent == go.cache

    mine.crds.mkdir()
    (mine.crds / "kubeadmconfigs.yaml").touch()
    mine.webhooks.touch()
    assert ensure(progress, given) == mine


def test_a_module_without_the_crds_is_not_kept(go: FakeGo, progress: Progress) -> None:
    (go.root / "modules" / MANIFESTS / kubeadm.CRDS / "kubeadmconfigs.yaml").unlink()
    with pytest.raises(LocalError, match="made no capi-kubeadm-bootstrap-crds"):
        ensure(progress, go.environ())
    assert not (go.cache / entry().name).exists()


def test_its_pins_are_not_the_control_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = binaries.key()
    monkeypatch.setattr(kubeadm, "PINNED", Path("/nowhere"))
    assert binaries.key() == before
