import io
from pathlib import Path

import pytest

from local import binaries, devmachine, kubeadm
from local.errors import LocalError
from local.loopback import WEBHOOK
from local.progress import Progress
from local.providers import ProviderBuild
from tests.local.fake_go import FakeGo, executable

BUILDS = {build.name: build for build in (kubeadm.BUILD, devmachine.BUILD)}
CRD = "crd/bases/kinds.yaml"


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest) -> ProviderBuild:
    return BUILDS[request.param]


@pytest.fixture
def go(tmp_path: Path, build: ProviderBuild) -> FakeGo:
    fake = FakeGo(tmp_path)
    copies = [f"cp {Path(each.module).name}/{each.file} {tmp_path}/changed.go" for each in build.changes]
    copies.append(f"cp controller-runtime/{WEBHOOK.file} {tmp_path}/built.go")
    fake.install(programs=(build.built,), before_build="; ".join(copies))
    fake.module_file(Path(build.module, build.config, CRD))
    fake.module_file(Path(build.module, build.config, "webhook/manifests.yaml"))
    for file in {Path(change.module, change.file) for change in build.changes}:
        fake.module_file(file, "\n".join(change.written for change in build.changes for _ in range(change.times)))
    return fake


@pytest.fixture
def progress() -> Progress:
    return Progress(io.StringIO())


def test_it_is_built_once_beside_the_control_plane_with_its_manifests(
    go: FakeGo, progress: Progress, build: ProviderBuild
) -> None:
    made = build.ensure(progress, go.environ())

    assert build.ensure(progress, go.environ()) == made == build.under(go.cache / build.entry().name)
    assert go.builds() == 1
    assert made.missing() == []
    assert (made.crds / "kinds.yaml").read_text() == "# kinds.yaml\n"
    assert {path.name for path in made.program.parent.iterdir()} == {
        build.name,
        f"{build.name}-crds",
        f"{build.name}-webhooks.yaml",
    }


def test_everything_that_it_serves_is_on_loopback_alone(go: FakeGo, progress: Progress, build: ProviderBuild) -> None:
    build.ensure(progress, go.environ())
    assert (go.root / "built.go").read_text() == WEBHOOK.meant
    for change in build.changes:
        assert (go.root / "changed.go").read_text().count(change.meant) == change.times


def test_one_of_the_users_is_taken_whole_or_not_at_all(
    go: FakeGo, progress: Progress, build: ProviderBuild, tmp_path: Path
) -> None:
    mine = build.under(tmp_path / "mine")
    executable(mine.program, "#!/bin/sh\n")
    given = go.environ(KUBEBUILDER_ASSETS=str(tmp_path / "mine"))
    assert build.ensure(progress, given).program.parent.parent == go.cache

    mine.crds.mkdir()
    (mine.crds / "kinds.yaml").touch()
    mine.webhooks.touch()
    assert build.ensure(progress, given) == mine


def test_a_module_without_the_crds_is_not_kept(go: FakeGo, progress: Progress, build: ProviderBuild) -> None:
    (go.root / "modules" / build.module / build.config / CRD).unlink()
    with pytest.raises(LocalError, match=f"made no {build.name}-crds"):
        build.ensure(progress, go.environ())
    assert not (go.cache / build.entry().name).exists()


def test_a_program_that_opens_a_port_otherwise_is_not_built(go: FakeGo, progress: Progress) -> None:
    build = devmachine.BUILD
    go.module_file(Path(build.module, devmachine.PORTS), "package server")
    go.module_file(Path(build.module, build.config, "webhook/manifests.yaml"))
    with pytest.raises(LocalError, match="opens its port in a new way"):
        build.ensure(progress, go.environ())


def test_a_providers_pins_are_not_the_control_planes(build: ProviderBuild) -> None:
    assert build.entry().name.partition("-")[2] != binaries.key()
