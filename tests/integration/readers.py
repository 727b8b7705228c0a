"""Users who may read ScheduledMachines and nothing else."""

from pathlib import Path
from typing import Any

import yaml

from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES, SERVICE_ACCOUNTS, Resource

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


async def reader(client: Client, cluster: LocalCluster, namespace: str, folder: Path) -> Path:
    """The kubeconfig of an account that may get ScheduledMachines of a namespace and nothing else."""
    config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    token = await _token(client, namespace)
    for entry in config["users"]:
        entry["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def _token(client: Client, namespace: str) -> str:
    rules = [{"apiGroups": [SCHEDULED_MACHINES.group], "resources": ["scheduledmachines"], "verbs": ["get"]}]
    role = {"metadata": {"name": "reader"}, "rules": rules, **ROLES.envelope()}
    binding = {
        **BINDINGS.envelope(),
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    account = {**SERVICE_ACCOUNTS.envelope(), "metadata": {"name": "reader"}}
    await client.create(SERVICE_ACCOUNTS, account, namespace=namespace)
    await client.create(ROLES, role, namespace=namespace)
    await client.create(BINDINGS, binding, namespace=namespace)
    asked: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.create_subresource(SERVICE_ACCOUNTS, "reader", "token", asked, namespace=namespace)
    return str(answer["status"]["token"])
