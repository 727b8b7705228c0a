"""Cluster API's core: its CRDs, with conversion through its own webhook, and its manager."""

import base64
from pathlib import Path
from typing import Any

import yaml

from local import access
from local.binaries import Assets
from local.cluster import Cluster, start_on_free_port
from local.crds import apply_all
from local.ports import LOOPBACK, PortRange
from local.processes import Keeper, Server

# Rate limiting makes a Machine take 4 s to run instead of half a second; nothing else changes with it.
FEATURES = "ReconcilerRateLimiting=false"
CONCURRENCY = ("--kube-api-qps=500", "--kube-api-burst=1000", "--clustercache-client-qps=200")


def start(cluster: Cluster, assets: Assets, keeper: Keeper, ports: PortRange) -> Server:
    """Installs the CRDs and brings the manager up; ready means that it converts and reconciles."""
    certificates = cluster.directory / "capi-webhook"
    cluster.authority.serving("Cluster API webhook").write(certificates)
    definitions = load_definitions(assets.capi_crds)

    def make(webhook: int) -> Server:
        conversion = conversion_by(f"https://{LOOPBACK}:{webhook}/convert", cluster.authority.pem)
        apply_all(cluster.client, [{**crd, "spec": {**crd["spec"], "conversion": conversion}} for crd in definitions])
        health = ports.pick(webhook)
        argv = [
            str(assets.capi_core),
            f"--kubeconfig={cluster.kubeconfig_of(access.CAPI)}",
            "--leader-elect=false",
            f"--webhook-port={webhook}",
            f"--webhook-cert-dir={certificates}",
            f"--health-addr={LOOPBACK}:{health}",
            "--diagnostics-address=0",
            "--insecure-diagnostics",
            f"--feature-gates={FEATURES}",
            *CONCURRENCY,
        ]
        probe = f"http://{LOOPBACK}:{health}/readyz"
        return Server(f"{cluster.name}-capi", argv, keeper, lambda: access.answers(probe))

    return start_on_free_port(make, ports)


def load_definitions(directory: Path) -> list[dict[str, Any]]:
    """The CRDs that came with the manager's source."""
    return [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in sorted(directory.glob("*.yaml"))]


def conversion_by(url: str, ca: bytes) -> dict[str, Any]:
    """The part of a CRD that leads the API server to the webhook."""
    client = {"url": url, "caBundle": base64.b64encode(ca).decode()}
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}
