"""Pods and budgets in the workload cluster, as its tenants would have them; whatever a test leaves is cleared away."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from service.kube.client import Client
from service.kube.errors import NotFound
from service.kube.resource import PODS, Resource
from tests import watching
from tests.e2e.manifests import HOLD

Raw = dict[str, Any]
NAMESPACE = "default"
BUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
DAEMON_SETS = Resource(group="apps", version="v1", plural="daemonsets", kind="DaemonSet")
MIRROR = "kubernetes.io/config.mirror"


@dataclass
class Tenants:
    """The tenants of one test; their label, and what they create begins with, is `app`."""

    client: Client
    app: str
    made: list[tuple[Resource, str]] = field(default_factory=list)

    async def run(
        self,
        name: str,
        node: str | None = None,
        *,
        hold: bool = False,
        mirror: bool = False,
        labels: dict[str, str] | None = None,
    ) -> str:
        """A pod without a controller on a Node, running; with `hold` it will stay terminating until it is let go."""
        spec = {"containers": [{"name": "main", "image": "pause"}], "restartPolicy": "Never"}
        metadata: Raw = {"name": f"{self.app}-{name}", "labels": {"app": self.app, **(labels or {})}}
        metadata |= {"finalizers": [HOLD]} if hold else {}
        metadata |= {"annotations": {MIRROR: "as the kubelet has it on disk"}} if mirror else {}
        await self._create(PODS, {"metadata": metadata, "spec": {**spec, "nodeName": node} if node else spec})
        if node is None:
            await self.report(name, phase="Running")
        await self.until(name, is_ready)
        return metadata["name"]

    async def report(self, name: str, *, phase: str) -> None:
        """What a kubelet would say of a pod."""
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
        body = {"status": {"phase": phase, "conditions": [ready]}}
        await self.client.patch(PODS, f"{self.app}-{name}", body, namespace=NAMESPACE, subresource="status")

    async def daemon(self, node: str) -> str:
        """The pod of a DaemonSet for that Node, bound to it as a scheduler would."""
        labels = {"daemon": self.app}
        containers = [{"name": "main", "image": "pause"}]
        pod = {"containers": containers, "nodeSelector": {"kubernetes.io/hostname": node}}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        await self._create(DAEMON_SETS, {"metadata": {"name": f"{self.app}-daemon"}, "spec": spec})
        listed = await self._listed(f"daemon={self.app}")
        name = str(listed["metadata"]["name"])
        binding = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        await self.client.create_subresource(PODS, name, "binding", binding, namespace=NAMESPACE)
        return name

    async def _listed(self, labels: str) -> Raw:
        """The first pod with these labels, which may take its controller a moment."""
        page = await self.client.list_page(PODS, namespace=NAMESPACE, labels=labels)
        if page.items:
            return page.items[0]
        async with Client(self.client.transport.endpoint, self.client.transport.credentials) as own:
            async for change in own.watch(PODS, page.resource_version, namespace=NAMESPACE, labels=labels):
                if change.type == "ADDED":
                    return change.object
        raise AssertionError(f"no pod with {labels} was made")

    async def budget(self, name: str, **spec: int) -> str:
        """A budget over all pods of the test, as soon as its controller has reckoned it up."""
        full = f"{self.app}-{name}"
        selector = {"matchLabels": {"app": self.app}}
        await self._create(BUDGETS, {"metadata": {"name": full}, "spec": {**spec, "selector": selector}})
        await self.allowed(name)
        return full

    async def allowed(self, name: str, at_least: int = 0) -> None:
        """Waits until a budget allows so many disruptions."""

        def reckoned(raw: Raw) -> bool:
            status = raw.get("status") or {}
            return bool(status.get("observedGeneration")) and status["disruptionsAllowed"] >= at_least

        await watching.until(self.client, BUDGETS, f"{self.app}-{name}", reckoned, namespace=NAMESPACE)

    async def drop(self, resource: Resource, name: str) -> None:
        await self.client.delete(resource, name, namespace=NAMESPACE)

    async def pod(self, name: str) -> Raw:
        return await self.client.get(PODS, f"{self.app}-{name}", namespace=NAMESPACE)

    async def names(self) -> set[str]:
        """The running pods, without those that are being deleted."""
        listed = await self.client.list(PODS, namespace=NAMESPACE, labels=f"app={self.app}")
        return {raw["metadata"]["name"].removeprefix(f"{self.app}-") for raw in listed if not is_going(raw)}

    async def until(self, name: str, fact: Callable[[Raw], Any]) -> Raw:
        return await watching.until(self.client, PODS, f"{self.app}-{name}", fact, namespace=NAMESPACE)

    async def let_go(self, name: str) -> None:
        body = {"metadata": {"finalizers": None}}
        await self.client.patch(PODS, f"{self.app}-{name}", body, namespace=NAMESPACE)

    async def clear(self) -> None:
        for resource, name in reversed(self.made):
            with suppress(NotFound):
                await self.client.patch(resource, name, {"metadata": {"finalizers": None}}, namespace=NAMESPACE)
                await self.client.delete(resource, name, namespace=NAMESPACE, grace_seconds=0)

    async def _create(self, resource: Resource, body: Raw) -> None:
        self.made.append((resource, body["metadata"]["name"]))
        await self.client.create(resource, {**resource.envelope(), **body}, namespace=NAMESPACE)


def is_ready(pod: Raw) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_going(pod: Raw) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def was_evicted(pod: Raw) -> bool:
    """Whether the API server took it away by an eviction, which budgets could have refused."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any((one["type"], one.get("reason")) == ("DisruptionTarget", "EvictionByEvictionAPI") for one in conditions)
