"""The operator's own ServiceAccount with the chart's roles, which tests run operators as, and what it asked for."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from local import pki
from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.credentials import Credentials, Token
from service.kube.resource import SERVICE_ACCOUNTS
from tests.charts.helm import NAMESPACE, Helm, only

Raw = dict[str, Any]
KINDS = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
_TOKENS: dict[str, Token] = {}
"""By API server; filled once a session."""


class Asked(NamedTuple):
    """A request, as an audit log shows it and as a role grants it."""

    group: str
    resource: str
    verb: str
    namespace: str
    name: str
    allowed: bool


@dataclass
class AuditLog:
    """What one account asked for since this was made."""

    path: Path
    user: str
    offset: int

    def asked(self) -> Iterator[Asked]:
        if not self.path.exists():  # no request has been made yet
            return
        with self.path.open("rb") as log:
            log.seek(self.offset)
            for line in log:
                entry = json.loads(line) if line.endswith(b"\n") else {"user": {"username": ""}}
                if entry["user"]["username"] == self.user and "objectRef" in entry:
                    yield _asked(entry)

    def refused(self) -> list[Asked]:
        """What its roles do not grant; not what fails for another reason, such as a namespace that is going."""
        return [asked for asked in self.asked() if not asked.allowed]


@dataclass(frozen=True)
class Account:
    """A ServiceAccount whose roles the chart made."""

    cluster: LocalCluster
    namespace: str
    name: str
    token: str
    rendered: tuple[Raw, ...]
    """All that the chart made of the values, the roles among it."""

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def log(self, *, from_start: bool = False) -> AuditLog:
        path = self.cluster.audit_log
        return AuditLog(path, self.user, 0 if from_start or not path.exists() else path.stat().st_size)

    @property
    def kubeconfig(self) -> Path:
        path = self.cluster.directory / f"{self.namespace}-{self.name}.kubeconfig"
        if not path.exists():
            pki.write_private(path, replace(self.cluster.access, tokens={self.name: self.token}).kubeconfig(self.name))
        return path


def install(
    helm: Helm, cluster: LocalCluster, kubectl: Path, values: Raw | None = None, namespace: str = NAMESPACE
) -> Account:
    """Applies the chart's ServiceAccount and roles, nothing else of it, and gets a token as kubelets do."""
    rendered = helm.template(values, namespace=namespace)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    name = only(rendered, "ServiceAccount")["metadata"]["name"]
    roles = [document for document in rendered if document["kind"] in KINDS]
    argv = [
        str(kubectl),
        f"--kubeconfig={cluster.kubeconfig}",
        "apply",
        "--server-side",
        "--force-conflicts",
        "-f",
        "-",
    ]
    for documents in ([space], roles):
        listing = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        subprocess.run(argv, input=listing, text=True, capture_output=True, check=True)
    with ThreadPoolExecutor(1) as thread:
        token = thread.submit(asyncio.run, _token(cluster, namespace, name)).result()
    if not values:
        _TOKENS[cluster.url] = Token(token)
    return Account(cluster, namespace, name, token, tuple(rendered))


def credentials(client: Client) -> Credentials:
    """Those of the operator's ServiceAccount where it is installed, else the client's own."""
    return _TOKENS.get(client.transport.endpoint.server, client.transport.credentials)


async def _token(cluster: LocalCluster, namespace: str, name: str) -> str:
    async with cluster.client() as client:
        body = {"spec": {"expirationSeconds": 7200}}
        answer = await client.create_subresource(SERVICE_ACCOUNTS, name, "token", body, namespace=namespace)
    return str(answer["status"]["token"])


def _asked(entry: Raw) -> Asked:
    target = entry["objectRef"]
    resource, subresource = target.get("resource", ""), target.get("subresource")
    return Asked(
        target.get("apiGroup", ""),
        f"{resource}/{subresource}" if subresource else resource,
        entry["verb"],
        target.get("namespace", ""),
        target.get("name", ""),
        (entry.get("annotations") or {}).get("authorization.k8s.io/decision") != "forbid",
    )
