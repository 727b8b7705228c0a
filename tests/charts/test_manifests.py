"""install.yaml and install-agent.yaml, applied as a user applies them to a real cluster."""

import base64
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from crds.definitions import all_definitions
from local.binaries import Assets
from local.cluster import LocalCluster
from release import manifests
from release.contents import Release
from release.helm import NAMESPACE
from release.helm import Helm as Renderer
from tests.charts.helm import Helm

RELEASE = Release(repository="registry.example.com/team/5spot")
CUSTOM_KINDS = [definition["metadata"]["name"] for definition in all_definitions()]
WEBHOOKS = ("mutatingwebhookconfiguration/5spot-mutating", "validatingwebhookconfiguration/5spot-validating")


@dataclass(frozen=True)
class Cluster:
    """A cluster and the kubectl to speak to it with."""

    kubectl: Path
    kubeconfig: Path

    def run(self, *words: str) -> str:
        """What kubectl prints; a warning of the server fails it as an error does."""
        argv = [str(self.kubectl), f"--kubeconfig={self.kubeconfig}", *words]
        done = subprocess.run(argv, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def read_once(self, kinds: Sequence[str]) -> None:
        """Lists objects of custom kinds, so that their storage is set up before their definitions are deleted.

        Otherwise the API server sets it up for the deletion, fails as it is not ready, and tries again after minutes.
        """
        self.run("get", ",".join(kinds), "--all-namespaces", "--ignore-not-found")


@pytest.fixture
def cluster(bare: LocalCluster, assets: Assets) -> Cluster:
    made = Cluster(assets.kubectl, bare.kubeconfig)
    # Tests of the chart may just have deleted it.
    made.run("wait", "--for=delete", f"namespace/{NAMESPACE}", "--timeout=60s")
    return made


@pytest.fixture
def operator(helm: Helm, cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "install.yaml"
    path.write_text(manifests.operator(RELEASE, Renderer(helm.program)))
    yield path
    cluster.read_once(CUSTOM_KINDS)
    cluster.run("delete", "--ignore-not-found", "--wait=true", "-f", str(path))


@pytest.fixture
def agent(helm: Helm, cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "install-agent.yaml"
    path.write_text(manifests.agent(RELEASE, Renderer(helm.program)))
    yield path
    cluster.run("delete", "--ignore-not-found", "--wait=true", "-f", str(path))


def count(path: Path) -> int:
    return len(list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)))


@pytest.mark.parametrize("way", [["--server-side"], []], ids=["server-side", "client-side"])
def test_an_api_server_takes_all_of_it_in_one_go_and_again_without_touching_the_webhooks_trust(
    cluster: Cluster, operator: Path, bare: LocalCluster, way: list[str]
):
    first = cluster.run("apply", *way, "--validate=strict", "-f", str(operator)).splitlines()
    assert len(first) == count(operator)
    trusted = base64.b64encode(bare.authority.pem).decode()
    patch = f'[{{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "{trusted}"}}]'
    for webhook in WEBHOOKS:  # as the operator does
        cluster.run("patch", webhook, "--type=json", f"--patch={patch}")

    cluster.run("apply", *way, "--validate=strict", "-f", str(operator))

    for webhook in WEBHOOKS:
        assert trusted in cluster.run("get", webhook, "-o", "yaml")
    cluster.run("wait", "--for=condition=Established", "crd/scheduledmachines.5spot.finos.org", "--timeout=60s")
    image = cluster.run("get", f"--namespace={NAMESPACE}", "deployment/5spot", "-o", "yaml")
    assert f"image: {RELEASE.image}\n" in image


def test_an_api_server_takes_the_agent_with_a_namespace_that_lets_it_see_the_host(cluster: Cluster, agent: Path):
    assert len(cluster.run("apply", "--server-side", "--validate=strict", "-f", str(agent)).splitlines()) == count(
        agent
    )
    space = yaml.safe_load(cluster.run("get", f"namespace/{NAMESPACE}", "-o", "yaml"))
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    daemons = yaml.safe_load(cluster.run("get", f"--namespace={NAMESPACE}", "daemonsets", "-o", "yaml"))["items"]
    (container,) = daemons[0]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == RELEASE.image
