"""The chart's life in a real cluster: installed, upgraded, removed, installed again."""

import base64
import json
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds import names
from crds.definitions import all_definitions
from crds.generate import CRD_FILE
from local.binaries import Assets
from local.cluster import LocalCluster
from tests.charts.helm import CHART, RELEASE, ROOT, Helm, HelmError
from tests.e2e.manifests import machine

Raw = dict[str, Any]
CRD = f"{names.PLURAL}.{names.GROUP}"
CRDS = {each["metadata"]["name"] for each in all_definitions()}
WEBHOOKS = ("mutatingwebhookconfiguration/5spot-mutating", "validatingwebhookconfiguration/5spot-validating")


@dataclass(frozen=True)
class Site:
    """A cluster, and a namespace in it that the release goes to."""

    helm: Helm
    cluster: LocalCluster
    program: Path
    namespace: str

    def release(self, verb: str, values: Raw | None = None, *flags: str) -> str:
        words = (verb, RELEASE, str(CHART), f"--namespace={self.namespace}", *flags)
        return self.helm.run(*words, values=values or {}, kubeconfig=self.cluster.kubeconfig)

    def uninstall(self) -> str:
        return self.helm.run("uninstall", RELEASE, f"--namespace={self.namespace}", kubeconfig=self.cluster.kubeconfig)

    def manifest(self) -> list[Raw]:
        """What the release consists of."""
        words = ("get", "manifest", RELEASE, f"--namespace={self.namespace}")
        return [each for each in yaml.safe_load_all(self.helm.run(*words, kubeconfig=self.cluster.kubeconfig)) if each]

    def kubectl(self, *words: str, stdin: Any = None) -> str:
        argv = [str(self.program), f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={self.namespace}", *words]
        given = json.dumps(stdin) if stdin is not None else None
        done = subprocess.run(argv, input=given, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def there(self, documents: list[Raw]) -> set[tuple[str, str]]:
        """Those of the objects that exist."""
        listing = {"apiVersion": "v1", "kind": "List", "items": documents}
        out = self.kubectl("get", "-f", "-", "--ignore-not-found", "-o", "json", stdin=listing)
        found = json.loads(out) if out.strip() else {"items": []}
        return {identity(each) for each in found.get("items", [found])}


def identity(document: Raw) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


@pytest.fixture
def site(helm: Helm, bare: LocalCluster, assets: Assets) -> Iterator[Site]:
    namespace = f"chart-{secrets.token_hex(3)}"
    made = Site(helm, bare, assets.kubectl, namespace)
    made.kubectl("create", "namespace", namespace)
    yield made
    if RELEASE in helm.run("list", "--short", f"--namespace={namespace}", kubeconfig=bare.kubeconfig).split():
        made.uninstall()
    made.kubectl("delete", "crd", *CRDS, "--ignore-not-found")
    made.kubectl("delete", "namespace", namespace, "--wait=false")


def test_an_api_server_would_take_it_all(site: Site):
    notes = site.release("install", {}, "--dry-run=server")
    assert "5spot release" in notes
    (command,) = [line.split() for line in notes.splitlines() if "kubectl delete crd" in line]
    assert set(command[3:]) == CRDS
    assert site.kubectl("get", "crd", CRD, "--ignore-not-found") == ""


@pytest.mark.parametrize(
    ("values", "stays", "not_there"),
    [
        ({}, ["the operator made it", "5spot-webhook-certificates --", "delete lease"], ["cert-manager", "webhook-ca"]),
        (
            {"webhooks": {"certificates": "cert-manager"}},
            ["cert-manager made it", "-webhook-tls 5spot-webhook-ca --", "delete lease"], ["operator made"],
        ),
        ({"webhooks": {"enabled": False}}, ["delete lease"], ["delete secret"]),
        ({"replicas": 1, "settings": {"leases": False}}, ["delete secret"], ["delete lease"]),
        (
            # What others watch in the same cluster is not to be deleted along.
            {"watchNamespaces": ["default", "kube-public"]},
            ["-n default delete scheduledmachines --all", "-n kube-public delete scheduledmachines --all"],
            ["delete scheduledmachines -A"],
        ),
    ],
    ids=["default", "cert-manager", "no-webhooks", "no-leases", "some-namespaces"],
)  # fmt: skip
def test_the_notes_name_what_stays(site: Site, values: Raw, stays: list[str], not_there: list[str]):
    notes = site.release("install", values, "--dry-run=server").partition("NOTES:")[2]
    assert [words for words in stays if words not in notes] == []
    assert [words for words in not_there if words in notes] == []


def test_everything_is_there_after_an_installation_and_gone_after_the_removal_but_for_users_objects(site: Site):
    site.release("install")
    installed = site.manifest()
    assert site.there(installed) == {identity(each) for each in installed}
    site.kubectl("wait", "--for=condition=Established", f"crd/{CRD}", "--timeout=120s")
    # The operator does not run here: its webhooks would refuse everything.
    site.kubectl("delete", *WEBHOOKS)
    site.kubectl("create", "-f", "-", stdin=machine("mine", infrastructure={"address": "10.0.0.1"}))

    said = site.uninstall()

    assert "CustomResourceDefinition" in said  # helm says that it keeps it
    assert site.there(installed) == {("CustomResourceDefinition", name) for name in CRDS}
    assert site.kubectl("get", "sm", "-o", "name").strip() == f"scheduledmachine.{names.GROUP}/mine"

    site.release("install")
    assert site.there(installed) == {identity(each) for each in installed}
    assert site.kubectl("get", "sm", "-o", "name").strip() == f"scheduledmachine.{names.GROUP}/mine"


def test_an_upgrade_takes_the_crd_along_and_leaves_the_trust_of_the_webhooks_alone(site: Site):
    site.release("install", {"replicas": 3, "providers": {"infrastructureGroups": ["old.example.org"]}})
    trusted = base64.b64encode(site.cluster.authority.pem).decode()
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": trusted}]
    for webhook in WEBHOOKS:  # as the operator does
        site.kubectl("patch", webhook, "--type=json", f"--patch={json.dumps(patch)}")
    assert "old.example.org" in site.kubectl("get", "crd", CRD, "-o", "yaml")

    site.release("upgrade", {"providers": {"infrastructureGroups": ["new.example.org"]}}, "--reset-then-reuse-values")

    crd = site.kubectl("get", "crd", CRD, "-o", "yaml")
    assert "old.example.org" not in crd
    assert "new.example.org" in crd
    assert json.loads(site.kubectl("get", "deployment", RELEASE, "-o", "json"))["spec"]["replicas"] == 3
    for webhook in WEBHOOKS:
        assert trusted in site.kubectl("get", webhook, "-o", "yaml")


def test_an_upgrade_to_shards_and_back_keeps_the_workload(site: Site):
    """Two kinds of workload, one after the other, would leave a moment in which no pod answers the webhooks."""
    site.release("install")
    kept = json.loads(site.kubectl("get", "deployment", "5spot", "-o", "json"))["metadata"]["uid"]
    for shards in (3, 1):
        site.release("upgrade", {"shards": shards})
        left = json.loads(site.kubectl("get", "deployment,statefulset", "-o", "json"))["items"]
        assert [each["metadata"]["uid"] for each in left] == [kept]


def test_a_second_release_that_would_share_the_crd_is_refused_in_words(site: Site):
    site.release("install")
    with pytest.raises(HelmError, match="invalid ownership metadata"):
        site.helm.run(
            "install", "second", str(CHART), f"--namespace={site.namespace}", kubeconfig=site.cluster.kubeconfig
        )
    site.helm.run(
        "install", "second", str(CHART), f"--namespace={site.namespace}", "--set=crds.install=false",
        "--dry-run=server", kubeconfig=site.cluster.kubeconfig,
    )  # fmt: skip


def test_a_crd_that_was_there_before_is_taken_over_when_that_is_asked_for(site: Site):
    """As the original's is, and one that a release of another name left."""
    site.kubectl("create", "-f", str(ROOT / CRD_FILE))
    with pytest.raises(HelmError, match="invalid ownership metadata"):
        site.release("install")
    site.release("install", {"providers": {"infrastructureGroups": ["mine.example.org"]}}, "--take-ownership")
    assert "mine.example.org" in site.kubectl("get", "crd", CRD, "-o", "yaml")
    site.uninstall()

    words = ("install", "other", str(CHART), f"--namespace={site.namespace}", "--take-ownership")
    site.helm.run(*words, kubeconfig=site.cluster.kubeconfig)
    owner = json.loads(site.kubectl("get", "crd", CRD, "-o", "json"))["metadata"]["annotations"]
    assert owner["meta.helm.sh/release-name"] == "other"
    site.helm.run("uninstall", "other", f"--namespace={site.namespace}", kubeconfig=site.cluster.kubeconfig)


def test_the_pods_may_run_where_only_restricted_ones_may(site: Site):
    site.kubectl("label", "namespace", site.namespace, "pod-security.kubernetes.io/enforce=restricted")
    for document in site.helm.template({"webhooks": {"certificates": "cert-manager"}}, namespace=site.namespace):
        if document["kind"] == "Pod":
            pod = document
        elif document["kind"] == "Deployment":
            pod = {"apiVersion": "v1", "kind": "Pod", **document["spec"]["template"]}
            pod["metadata"]["name"] = "operator"
            pod["spec"]["serviceAccountName"] = "default"
        else:
            continue
        site.kubectl("create", "--dry-run=server", "-f", "-", stdin=pod)
