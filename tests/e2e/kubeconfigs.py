"""Kubeconfig Secrets of workload clusters, right ones and wrong ones, in place of what the provider published."""

import base64
from typing import Any

import yaml

from local.access import CLUSTER_ACCESS
from local.cluster import LocalCluster
from local.provider.kinds import CLUSTERS
from service.kube.resource import SECRETS
from tests.e2e.manifests import says
from tests.e2e.operator import Operator

Raw = dict[str, Any]


def kubeconfig(
    cluster: LocalCluster, *, url: str | None = None, token: str | None = None, user: Raw | None = None
) -> str:
    """Access to a cluster, perhaps at another address, or as another user."""
    config = yaml.safe_load(cluster.access.kubeconfig(CLUSTER_ACCESS))
    if url is not None:
        config["clusters"][0]["cluster"]["server"] = url
    if token is not None:
        config["users"][0]["user"] = {"token": token}
    if user is not None:
        config["users"][0]["user"] = user
    return yaml.safe_dump(config)


async def known_to_cluster_api(op: Operator, cluster: str = "demo") -> None:
    """Waits until Cluster API is connected: a Secret that is spoilt before costs it half a minute."""
    await op.until_object(CLUSTERS, cluster, lambda raw: says(raw["status"], "RemoteConnectionProbe", "True"))


async def store(op: Operator, text: str, cluster: str = "demo") -> None:
    """Puts a kubeconfig into the Secret of a Cluster."""
    await known_to_cluster_api(op, cluster)
    data = {"value": base64.b64encode(text.encode()).decode()}
    await op.change(SECRETS, f"{cluster}-kubeconfig", {"data": data})
