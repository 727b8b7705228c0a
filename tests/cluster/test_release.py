"""What `make release` makes, installed on a real node without Helm: the image's archive and install.yaml."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from release import archive
from release.contents import CHECKSUMS, INSTALL, SBOM, Release
from release.image import architecture
from tests.charts.helm import NAMESPACE
from tests.cluster.making import Making
from tests.cluster.site import Raw, Refused, Site, is_ready
from tests.e2e.manifests import machine

RELEASE = Release()
WRONG = machine("wrong", schedule={"hoursOfDay": ["25"]})


@pytest.fixture(scope="module")
def files(release_in_the_making: Making) -> Path:
    return release_in_the_making.files()


@pytest.fixture(scope="module")
def image(files: Path) -> Path:
    return files / RELEASE.image_file(architecture())


def test_the_image_is_among_the_files_and_sha256sum_confirms_it(files: Path, image: Path):
    done = subprocess.run(["sha256sum", "--check", CHECKSUMS], cwd=files, text=True, capture_output=True, check=True)
    assert f"{image.name}: OK" in done.stdout
    assert (files / SBOM).is_file()


def test_the_image_has_the_same_layers_as_the_one_that_was_built_for_the_node(image: Path, site: Site):
    assert released(image)["rootfs"] == on_node(site)["rootfs"]
    assert released(image)["config"]["User"] == "65532:65532"


def released(image: Path) -> Any:
    """The configuration of an image in OCI's layout, found by digests from its index."""
    (listed,) = json.loads(archive.read(image, "index.json"))["manifests"]
    manifest = json.loads(blob(image, listed["digest"]))
    return json.loads(blob(image, manifest["config"]["digest"]))


def blob(image: Path, digest: str) -> bytes:
    return archive.read(image, f"blobs/{digest.replace(':', '/')}")


def on_node(site: Site) -> Any:
    """The configuration of the image that `local.node.image` built, from the archive that containerd imported."""
    operator = site.node.parts.images.operator
    (listed,) = json.loads(archive.read(operator, "manifest.json"))
    return json.loads(archive.read(operator, listed["Config"]))


@pytest.fixture(scope="module")
def applied(site: Site, files: Path, image: Path) -> Iterator[Site]:
    site.node.runtime.ctr("images", "import", str(image))
    site.uninstall()  # as in a cluster that never had a release of Helm's
    site.kill_pods()
    site.forget_operator()
    try:
        site.kubectl("apply", "--server-side", "-f", str(files / INSTALL), patience=120)
        yield site
    finally:
        site.kubectl("delete", "-f", str(files / INSTALL), "--wait=false", "--ignore-not-found", patience=120)
        site.kill_pods()


def test_kubectl_apply_is_enough_for_an_operator_that_works(applied: Site):
    applied.kubectl("rollout", "status", "deployment/5spot", f"-n={NAMESPACE}", "--timeout=300s", patience=330)
    pods: list[Raw] = applied.settled()
    assert all(map(is_ready, pods))
    assert {container["image"] for pod in pods for container in pod["spec"]["containers"]} == {RELEASE.image}
    applied.await_webhooks()
    with pytest.raises(Refused, match="hoursOfDay"):
        applied.apply(WRONG)
