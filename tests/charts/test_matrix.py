"""Every option, taken by a real API server that refuses unknown and ill-formed fields."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.binaries import Assets
from local.cluster import LocalCluster
from tests.charts.helm import CHART, NAMESPACE, Helm

SPACES = (NAMESPACE, "team-a", "team-b")
ALL = {
    "replicas": 4,
    "imagePullSecrets": [{"name": "registry.example.org"}],
    "image": {"digest": "sha256:" + "0" * 64},
    "commonLabels": {"cost-centre": "4711"},
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "serviceAccount": {"name": "mine", "annotations": {"e": "f"}},
    "settings": {"logLevel": "debug", "leaseSeconds": 30, "workers": 4},
    "rbac": {"aggregate": True, "kubeconfigSecrets": ["demo-kubeconfig"]},
    "networkPolicy": {
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "egress": {"enabled": True, "ports": [6443], "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
    },
    "console": {"enabled": True, "origins": ["https://console.example.com"], "tlsSecret": "console-tls",
                "from": [{"podSelector": {}}]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "runbookUrl": "https://docs.example.org/alerts"},
    "dashboard": {"enabled": True},
}  # fmt: skip
MATRIX: dict[str, dict[str, Any]] = {
    "default": {},
    "all": ALL,
    "all-sharded": {**ALL, "shards": 3},
    "namespaces": {"watchNamespaces": ["team-a", "team-b"]},
    "namespaces-own": {"watchNamespaces": [NAMESPACE, "team-a"], "shards": 2},
    "policies": {"webhooks": {"enabled": False}},
    "policies-namespaces": {"webhooks": {"enabled": False}, "watchNamespaces": ["team-a"]},
    "tenancy": {"tenancy": {"enabled": True, "rules": {"allowedFields": ["infrastructureSpec.address"]}}},
    "cert-manager": {"webhooks": {"certificates": "cert-manager"}},
    "cert-manager-issuer": {
        "webhooks": {
            "certificates": "cert-manager",
            "certManager": {"issuerRef": {"kind": "ClusterIssuer", "name": "ca"}},
        },
        "shards": 2,
    },
    "alone": {
        "replicas": 1, "settings": {"leases": False}, "crds": {"install": False},
        "networkPolicy": {"enabled": False}, "webhooks": {"enabled": False},
    },
    "borrowed-account": {
        "serviceAccount": {"create": False, "name": "theirs"}, "rbac": {"create": False},
        "podDisruptionBudget": {"enabled": False},
    },
    "agent": {"operator": {"enabled": False}, "agent": {"enabled": True}},
    "agent-sets": {
        "imagePullSecrets": [{"name": "registry"}],
        "agent": {"enabled": True, "clusterResourceSets": [
            {"namespace": "team-a", "matchLabels": {"reclaim": "yes"}},
            {"namespace": "team-a", "matchLabels": {"desk": "yes"}},
        ]},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def served(bare: LocalCluster, assets: Assets) -> Iterator[LocalCluster]:
    """With the namespaces that the options speak of."""
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SPACES]
    apply(bare, assets.kubectl, spaces)
    yield bare
    subprocess.run(
        [assets.kubectl, f"--kubeconfig={bare.kubeconfig}", "delete", "namespace", *SPACES, "--wait=false"], check=True
    )


def apply(cluster: LocalCluster, kubectl: Path, documents: list, *flags: str) -> subprocess.CompletedProcess[str]:
    words = ("apply", "--server-side", "--force-conflicts", "--validate=strict", *flags, "-f", "-")
    argv = [str(kubectl), f"--kubeconfig={cluster.kubeconfig}", *words]
    listing = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    done = subprocess.run(argv, input=listing, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("option", MATRIX)
def test_an_api_server_takes_every_field(helm: Helm, served: LocalCluster, assets: Assets, option: str):
    documents = helm.template(MATRIX[option])
    done = apply(served, assets.kubectl, documents, "--dry-run=server")
    assert len(done.stdout.splitlines()) == len(documents)
    assert "Warning" not in done.stderr


def test_the_server_would_notice_a_field_that_does_not_exist(helm: Helm, served: LocalCluster, assets: Assets):
    documents = [each for each in helm.template() if each["kind"] == "Deployment"]
    documents[0]["spec"]["template"]["spec"]["containers"][0]["enviroment"] = []
    with pytest.raises(AssertionError, match="enviroment"):
        apply(served, assets.kubectl, documents, "--dry-run=server")


@pytest.mark.parametrize("option", ["default", "all-sharded"])
def test_helm_finds_nothing_to_say(helm: Helm, option: str):
    helm.run("lint", "--strict", str(CHART), values=MATRIX[option])
