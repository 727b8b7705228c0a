"""What `make release` leaves in dist/."""

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from release.__main__ import main
from release.contents import CHECKSUMS, INSTALL, INSTALL_AGENT, NOTES, SBOM, Release, ReleaseError
from service import __version__
from tests.charts.helm import CHART, Helm
from tests.release.conftest import REPOSITORY, SOURCE

CHARTS = f"5spot-{__version__}.tgz"
WHEEL = f"fivespot-{__version__}-py3-none-any.whl"


def test_everything_is_there_but_the_image(published: Path):
    expected = {CHARTS, WHEEL, SBOM, INSTALL, INSTALL_AGENT, NOTES, CHECKSUMS}
    assert {path.name for path in published.iterdir()} == expected


def test_sha256sum_confirms_every_file(published: Path):
    done = subprocess.run(
        ["sha256sum", "--check", CHECKSUMS], cwd=published, text=True, capture_output=True, check=True
    )
    assert len(done.stdout.splitlines()) == len(list(published.iterdir())) - 1


def test_the_same_sources_make_the_same_files_in_another_zone_and_under_another_mask(published: Path, tmp_path: Path):
    words = ["-m", "release", "--no-image", "--repository", REPOSITORY, "--source", SOURCE, "--out", str(tmp_path)]
    script = f'umask 077; TZ=Asia/Tokyo PYTHONHASHSEED=7 exec "{sys.executable}" "$@"'
    subprocess.run(["sh", "-c", script, "sh", *words], cwd=CHART.parents[1], capture_output=True, check=True)
    assert (tmp_path / CHECKSUMS).read_text() == (published / CHECKSUMS).read_text()


@dataclass(frozen=True)
class Local:
    """A release that is published nowhere, made over an older one on a machine that cannot build the image."""

    out: Path
    printed: str
    said: str


@pytest.fixture(scope="module")
def local(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Local:
    out = tmp_path_factory.mktemp("local") / "dist"
    (out / ".making-killed").mkdir(parents=True)
    (out / CHECKSUMS).write_text(f"{'0' * 64}  5spot-0.0.1.tgz\n{'0' * 64}  ../precious\n")
    for name in ("5spot-0.0.1.tgz", "mine.txt", "../precious"):
        (out / name).write_text("old")
    printed, said = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(said):
        patch.setattr("release.image.obstacle", lambda: "buildah needs root")
        assert main([f"--out={out}"]) == 0
    return Local(out, printed.getvalue(), said.getvalue())


def test_a_second_release_takes_the_place_of_the_first_and_leaves_other_files_alone(local: Local):
    assert str(local.out / INSTALL) in local.printed.splitlines()
    assert not (local.out / "5spot-0.0.1.tgz").exists()
    assert not list(local.out.glob(".making-*"))
    assert {(local.out / name).read_text() for name in ("mine.txt", "../precious")} == {"old"}


def test_where_no_image_can_be_built_it_says_so_and_how(local: Local):
    assert "There is no archive of the image: buildah needs root." in local.said
    assert f"docker build --tag localhost/5spot:{__version__} ." in local.said


@pytest.mark.parametrize(
    "repository", ["5spot", "REGISTRY/5spot", "example.com/5spot:1", "example.com/5spot;rm", "a/b c"]
)
def test_a_repository_that_no_registry_has_is_refused(repository: str):
    with pytest.raises(ReleaseError, match="is no repository of images"):
        Release(repository=repository)


def test_a_released_chart_needs_no_value_and_one_without_a_registry_still_asks_for_it(
    published: Path, local: Local, helm: Helm
):
    rendered = subprocess.check_output([helm.program, "template", "5spot", published / CHARTS], text=True)
    assert f"image: {REPOSITORY}:{__version__}" in rendered
    words = [str(helm.program), "template", "5spot", str(local.out / CHARTS)]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    assert "REGISTRY/5spot is a placeholder" in done.stderr


def test_without_a_registry_the_manifests_name_the_image_as_its_archive_does(local: Local):
    text = (local.out / INSTALL).read_text()
    assert f"image: localhost/5spot:{__version__}" in text
    assert "import its archive on every node" in text


def test_the_charts_page_says_how_to_install_this_chart_and_where_the_docs_are(published: Path, helm: Helm):
    page = helm.run("show", "readme", str(published / CHARTS))
    assert (
        f"helm install 5spot oci://registry.example.com/team/charts/5spot --version {__version__} --namespace" in page
    )
    assert f"{SOURCE}/blob/v{__version__}/docs/install.md" in page
    assert f'| image.repository | string | `"{REPOSITORY}"` |' in page


def test_a_released_charts_alerts_lead_to_sections_that_exist(published: Path, helm: Helm):
    words = ["--set=prometheusRule.enabled=true"]
    rendered = subprocess.check_output([helm.program, "template", "5spot", published / CHARTS, *words], text=True)
    links = re.findall(r"runbook_url: (\S+)#(\S+)", rendered)
    page = (CHART.parents[1] / "docs" / "monitoring.md").read_text()
    headings = {line.removeprefix("### ").lower() for line in page.splitlines() if line.startswith("### ")}
    assert {url for url, _ in links} == {f"{SOURCE}/blob/v{__version__}/docs/monitoring.md"}
    assert {anchor for _, anchor in links} == headings


def test_artifact_hub_learns_of_every_kind_with_an_example_and_of_the_image(published: Path, helm: Helm):
    chart = yaml.safe_load(helm.run("show", "chart", str(published / CHARTS)))
    said = {name: yaml.safe_load(text) for name, text in chart["annotations"].items() if name.startswith("artifacthub")}
    documents = helm.template()
    kinds = {each["spec"]["names"]["kind"] for each in documents if each["kind"] == "CustomResourceDefinition"}

    assert {each["kind"] for each in said["artifacthub.io/crds"]} == kinds
    assert all(
        each.keys() == {"kind", "version", "name", "displayName", "description"} for each in said["artifacthub.io/crds"]
    )
    assert {each["kind"] for each in said["artifacthub.io/crdsExamples"]} <= kinds
    assert said["artifacthub.io/images"] == [{"name": "5spot", "image": f"{REPOSITORY}:{__version__}"}]
    assert said["artifacthub.io/operator"] is True
    assert len(said["artifacthub.io/changes"]) > 10
    assert (chart["home"], chart["sources"]) == (SOURCE, [SOURCE])


def test_without_helm_the_same_objects_come_as_with_it(published: Path, helm: Helm):
    def identities(documents):
        return sorted(
            (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in documents
        )

    charted = [each for each in helm.template() if each["kind"] != "Pod"]  # that of `helm test`
    plain = list(yaml.safe_load_all((published / INSTALL).read_text()))
    assert identities(plain) == sorted([("Namespace", "", "5spot-system"), *identities(charted)])
    assert "helm.sh/" not in (published / INSTALL).read_text() + (published / INSTALL_AGENT).read_text()
    assert "managed-by: Helm" not in (published / INSTALL).read_text()


def test_the_notes_say_what_is_new_and_what_each_file_is(published: Path):
    notes = (published / NOTES).read_text()
    assert notes.startswith(f"# 5-Spot {__version__}\n")
    assert "### Added" in notes
    listed = {path.name for path in published.iterdir()} - {NOTES, CHECKSUMS}
    assert [name for name in listed if f"| `{name}` |" not in notes] == []


def test_the_list_of_contents_is_of_this_version(published: Path):
    assert json.loads((published / SBOM).read_text())["metadata"]["component"]["version"] == __version__


def test_a_chart_that_is_refused_ends_the_release_with_what_helm_said(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr("release.__main__._run", lambda script, target: None)
    monkeypatch.setattr("release.manifests.AGENT_ONLY", {"shards": "many"})
    assert main(["--no-image", f"--out={tmp_path}"]) == 1
    assert "`helm template` failed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
