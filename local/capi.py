"""Cluster API's managers: their CRDs, with conversion through their own webhooks, and the programs."""

import asyncio
import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from local import access
from local.binaries import Assets
from local.cluster import LocalCluster, start_on_free_port
from local.crds import FIELD_MANAGER, apply_all
from local.ports import LOOPBACK, PortRange
from local.processes import Keeper, Server
from local.providers import ProviderFiles
from service.kube.client import PatchKind
from service.kube.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

Manifest = dict[str, Any]

# Rate limiting makes a Machine take 4 s to run instead of half a second; nothing else changes with it.
FEATURES = "ReconcilerRateLimiting=false"
CONCURRENCY = ("--kube-api-qps=500", "--kube-api-burst=1000", "--clustercache-client-qps=200")
CONTRACTS: Final = ("v1beta1", "v1beta2")
WEBHOOK_KINDS: Final = {kind.kind: kind for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)}


@dataclass(frozen=True, slots=True)
class Manager:
    """One of Cluster API's programs and what has to be in the API server for it."""

    name: str
    user: str
    program: Path
    definitions: Sequence[Manifest]
    webhooks: Sequence[Manifest] = ()


def start(cluster: LocalCluster, assets: Assets, keeper: Keeper, ports: PortRange) -> Server:
    """Installs the core's CRDs and brings its manager up; ready means that it converts and reconciles."""
    definitions = load_definitions(assets.capi_crds)
    return _start(cluster, Manager("capi", access.CAPI, assets.capi_core, definitions), keeper, ports)


def start_provider(cluster: LocalCluster, provider: ProviderFiles, keeper: Keeper, ports: PortRange) -> Server:
    """Installs one of Cluster API's own providers with its CRDs and webhooks; the core must run already."""
    definitions = [_labelled(crd) for crd in load_definitions(provider.crds)]
    webhooks = yaml.load_all(provider.webhooks.read_bytes(), Loader=yaml.CSafeLoader)
    name = provider.program.name  # also that of its user
    manager = Manager(name, name, provider.program, definitions, [each for each in webhooks if each])
    return _start(cluster, manager, keeper, ports)


def _start(cluster: LocalCluster, manager: Manager, keeper: Keeper, ports: PortRange) -> Server:
    certificates = cluster.directory / f"{manager.name}-webhook"
    cluster.authority.serving(f"{manager.name} webhook").write(certificates)

    def make(webhook: int) -> Server:
        _install(cluster, manager, webhook)
        health = ports.pick(webhook)
        argv = [
            "env",
            f"POD_IP={LOOPBACK}",  # where the in-memory provider tells others to find its clusters
            str(manager.program),
            f"--kubeconfig={cluster.kubeconfig_of(manager.user)}",
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
        return Server(f"{cluster.name}-{manager.name}", argv, keeper, lambda: access.answers(probe))

    return start_on_free_port(make, ports)


def _install(cluster: LocalCluster, manager: Manager, port: int) -> None:
    """Everything that leads the API server to the manager's webhook on that port."""
    conversion = conversion_by(f"https://{LOOPBACK}:{port}/convert", cluster.authority.pem)
    converted = [{**crd, "spec": {**crd["spec"], "conversion": conversion}} for crd in manager.definitions]
    apply_all(cluster.client, converted)
    configurations = [_served_at(each, manager.name, port, cluster.authority.pem) for each in manager.webhooks]
    if configurations:
        asyncio.run(_apply_webhooks(cluster, configurations))


async def _apply_webhooks(cluster: LocalCluster, configurations: Iterable[Manifest]) -> None:
    async with cluster.client() as client:
        for each in configurations:
            kind, name = WEBHOOK_KINDS[each["kind"]], each["metadata"]["name"]
            await client.patch(kind, name, each, kind=PatchKind.APPLY, field_manager=FIELD_MANAGER, force=True)


def _served_at(configuration: Manifest, prefix: str, port: int, ca: bytes) -> Manifest:
    """A webhook configuration that names no Service but our own address, under a name that says whose it is."""
    webhooks = [
        {**each, "clientConfig": _client(f"https://{LOOPBACK}:{port}{each['clientConfig']['service']['path']}", ca)}
        for each in configuration["webhooks"]
    ]
    name = f"{prefix}-{configuration['metadata']['name']}"
    return {**configuration, "metadata": {"name": name}, "webhooks": webhooks}


def _labelled(crd: Manifest) -> Manifest:
    """With the labels by which Cluster API finds the version of each contract, as in the provider's releases."""
    labels = {f"cluster.x-k8s.io/{contract}": contract for contract in CONTRACTS}
    return {**crd, "metadata": {**crd["metadata"], "labels": labels}}


def load_definitions(directory: Path) -> list[Manifest]:
    """The CRDs that came with a manager's source."""
    return [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in sorted(directory.glob("*.yaml"))]


def conversion_by(url: str, ca: bytes) -> Manifest:
    """The part of a CRD that leads the API server to the webhook."""
    return {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": _client(url, ca)},
    }


def _client(url: str, ca: bytes) -> dict[str, str]:
    return {"url": url, "caBundle": base64.b64encode(ca).decode()}
