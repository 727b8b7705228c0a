"""Scenes around emergency reclaim: the agent's manifests, a workstation in service, its owner's request."""

import json
from dataclasses import dataclass
from typing import Any

from crds import names
from service.kube.client import Client
from service.kube.resource import CONFIG_MAPS, NODES
from tests import watching
from tests.e2e.manifests import machine
from tests.e2e.operator import Operator

Raw = dict[str, Any]
REQUEST = dict(zip(names.RECLAIM_ANNOTATIONS, ("true", 'process "idea" matched', "2026-03-06T09:00:00Z"), strict=True))


@dataclass(frozen=True)
class Workstations:
    """Machines of owners who may want them back."""

    op: Operator
    client: Client
    """Of the workload cluster."""

    async def serve(self, name: str = "worker", **spec: Any) -> str:
        """A machine in service, its Node ready for the agent; returns the Node."""
        await self.op.apply(machine(name, **{"killIfCommands": ["idea"], **spec}))
        node = (await self.op.ready(name))["nodeRef"]["name"]
        await self.until_equipped(node)
        return str(node)

    async def until_equipped(self, node: str) -> None:
        await watching.until(self.client, NODES, node, is_labelled)
        await watching.until(self.client, CONFIG_MAPS, config_name(node), bool, namespace=names.RECLAIM_NAMESPACE)

    async def ask_back(self, node: str) -> None:
        """What the agent does."""
        body = {"metadata": {"annotations": REQUEST}}
        await self.client.patch(NODES, node, body, field_manager=names.AGENT_FIELD_MANAGER)

    async def commands(self, node: str) -> list[str]:
        found = await self.client.get(CONFIG_MAPS, config_name(node), namespace=names.RECLAIM_NAMESPACE)
        listed: list[str] = json.loads(found["data"][names.RECLAIM_CONFIG_KEY])
        return listed

    async def without_config(self, node: str) -> None:
        """Waits until the ConfigMap is gone."""
        await watching.until_gone(self.client, CONFIG_MAPS, config_name(node), namespace=names.RECLAIM_NAMESPACE)

    async def ejected(self, name: str = "worker", within: float = 180.0) -> Raw:
        """Waits until everything is over."""
        return await self.op.until(name, is_over, within)


def is_over(status: Raw) -> bool:
    """Whether a reclaim has come to its end."""
    return status.get("phase") == "Disabled" and "reclaim" not in status and "lastReclaim" in status


def is_labelled(node: Raw) -> bool:
    return (node["metadata"].get("labels") or {}).get(names.LABEL_RECLAIM_AGENT) == names.RECLAIM_AGENT_ENABLED


def config_name(node: str) -> str:
    return f"{names.RECLAIM_CONFIG_PREFIX}{node}"
