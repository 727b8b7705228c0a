"""The workload cluster as a test sees it: Nodes, and pods that will not leave before they are let."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from service.kube.client import Client
from service.kube.errors import NotFound
from service.kube.resource import NODES, PODS
from tests import watching
from tests.e2e.manifests import reluctant_pod

Raw = dict[str, Any]
NAMESPACE = "default"


@dataclass
class WorkloadSide:
    """Pods live in the namespace `default`, named after their Node."""

    client: Client
    held: list[str] = field(default_factory=list)

    async def node(self, name: str) -> Raw:
        return await self.client.get(NODES, name)

    async def until_node(self, name: str, fact: Callable[[Raw], Any], within: float = 60.0) -> Raw:
        return await watching.until(self.client, NODES, name, fact, within=within)

    async def node_gone(self, name: str) -> None:
        await watching.until_gone(self.client, NODES, name, within=90.0)

    async def occupy(self, node: str) -> str:
        """A pod that holds up the drain of the Node."""
        self.held.append(node)
        await self.client.create(PODS, reluctant_pod(node, node), namespace=NAMESPACE, field_manager="tests")
        return node

    async def pod(self, name: str) -> Raw:
        return await self.client.get(PODS, name, namespace=NAMESPACE)

    async def vacate(self, node: str) -> None:
        """Lets the pod go."""
        self.held.remove(node)
        await self.client.patch(PODS, node, {"metadata": {"finalizers": None}}, namespace=NAMESPACE)

    async def let_all_go(self) -> None:
        for node in list(self.held):
            try:
                await self.vacate(node)
            except NotFound:
                continue
