"""Users of a real API server: ServiceAccounts with tokens of their own, and the roles that a test gives them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.resource import SERVICE_ACCOUNTS, Resource

Raw = dict[str, Any]

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


@dataclass(frozen=True)
class User:
    """A ServiceAccount, its token, and a kubeconfig with that token."""

    name: str
    """As the API server names it."""
    token: str
    kubeconfig: Path


async def user(client: Client, cluster: LocalCluster, namespace: str, name: str, folder: Path) -> User:
    """A new account that may do nothing yet."""
    account = {**SERVICE_ACCOUNTS.envelope(), "metadata": {"name": name}}
    await client.create(SERVICE_ACCOUNTS, account, namespace=namespace)
    asked: Raw = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.create_subresource(SERVICE_ACCOUNTS, name, "token", asked, namespace=namespace)
    config: Raw = yaml.safe_load(cluster.kubeconfig.read_text())
    for entry in config["users"]:
        entry["user"] = {"token": answer["status"]["token"]}
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return User(f"system:serviceaccount:{namespace}:{name}", answer["status"]["token"], path)


async def grant(client: Client, namespace: str, name: str, rules: list[Raw]) -> None:
    """A Role with these rules, bound to the account of the same name."""
    role = {**ROLES.envelope(), "metadata": {"name": name}, "rules": rules}
    await client.create(ROLES, role, namespace=namespace)
    await bind(client, namespace, name, "Role", name)


async def bind(client: Client, namespace: str, account: str, kind: str, role: str) -> None:
    """Binds a Role or a ClusterRole to an account."""
    body = {
        **BINDINGS.envelope(),
        "metadata": {"name": f"{account}-{role}"},
        "roleRef": {"apiGroup": ROLES.group, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    await client.create(BINDINGS, body, namespace=namespace)
