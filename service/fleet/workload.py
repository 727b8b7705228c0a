"""The Node of a machine, read once from its workload cluster, if the user may read the cluster's kubeconfig."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from crds.names import KUBECONFIG_SECRET_SUFFIX
from service.decide.world import Node, Pod
from service.kube.client import Client
from service.kube.credentials import KubeconfigRefused, Token
from service.kube.errors import Unavailable
from service.kube.resource import NODES, SECRETS
from service.objects import views
from service.objects.lookup import get_or_none
from service.runtime.key import Key
from service.workload.connection import LIMITS, slim_node
from service.workload.kubeconfig import read_secret
from service.workload.pods import pods_on


class SeenNode(NamedTuple):
    """A Node, None if there is none, and its pods, None if they were not asked for."""

    node: Node | None
    pods: tuple[Pod, ...] | None


async def read_node(client: Client, cluster: Key, name: str, *, with_pods: bool) -> SeenNode:
    """The Node of that name, and its pods; `KubeError` if they cannot be read."""
    secret = await client.get(SECRETS, f"{cluster.name}{KUBECONFIG_SECRET_SUFFIX}", namespace=cluster.namespace)
    try:
        async with _connected(secret, cluster.name) as workload:
            raw = await get_or_none(workload, NODES, Key("", name))
            pods = await pods_on(lambda: workload, name) if with_pods else None
            return SeenNode(views.node(slim_node(raw)) if raw is not None else None, pods)
    except (KubeconfigRefused, TypeError) as error:
        raise Unavailable(str(error)) from None


@asynccontextmanager
async def _connected(secret: dict[str, Any], cluster: str) -> AsyncIterator[Client]:
    access = read_secret(secret, cluster)
    async with Client(access.endpoint(), Token(access.token), limits=LIMITS) as client:
        yield client
