"""The service in front of a real API server: CRD and webhooks for one namespace, replicas as child processes."""

import asyncio
import secrets
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from crds import names
from local import crds
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.errors import KubeError
from service.kube.resource import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    SCHEDULED_MACHINES,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from tests.service.process import Process, started
from tests.waiting import until
from tests.webhooks.reviews import machine
from webhooks.configuration import Registration, manifests

CRD = Path(__file__).parents[2] / "crds" / "yaml" / "5spot.finos.org_scheduledmachines.yaml"
SECRET = "certificates"
OURSELVES = "system:serviceaccount:5spot-system:5spot"
QUICK = {"authority-settle-seconds": "3", "authority-retire-seconds": "3"}


@dataclass
class Gate:
    """What a test does with the webhooks of its namespace."""

    cluster: LocalCluster
    assets: Assets
    namespace: str
    client: Client
    replicas: list[Process] = field(default_factory=list)
    overrides: bool = False
    """Whether overrides are asked about too."""

    @property
    def configurations(self) -> tuple[tuple[Resource, str], ...]:
        return (MUTATING_WEBHOOKS, f"{self.namespace}-m"), (VALIDATING_WEBHOOKS, f"{self.namespace}-v")

    def flags(self, **more: str) -> list[str]:
        (_, mutating), (_, validating) = self.configurations
        given = {
            "bind-address": "127.0.0.1",
            "webhook-port": "0",
            "health-port": "0",
            "metrics-port": "0",
            "kubeconfig": str(self.cluster.kubeconfig),
            "namespace": self.namespace,
            "namespaces": self.namespace,
            "certificate-secret": SECRET,
            "webhook-hosts": "127.0.0.1",
            "mutating-configuration": mutating,
            "validating-configuration": validating,
            "drain-seconds": "0",
        } | more
        return ["--no-controller", *(word for name, value in given.items() for word in (f"--{name}", value))]

    async def register(self, port: int) -> None:
        """Registers the webhooks of the replica on `port`; the replica sets the caBundle."""
        (_, mutating), (_, validating) = self.configurations
        registration = Registration(
            at=f"https://127.0.0.1:{port}",
            namespaces=[self.namespace],
            service_account=OURSELVES,
            overrides=self.overrides,
            mutating_name=mutating,
            validating_name=validating,
        )
        for (resource, name), manifest in zip(self.configurations, manifests(registration), strict=True):
            await self.client.patch(resource, name, manifest, kind=PatchKind.APPLY, field_manager="test", force=True)

    async def unregister(self) -> None:
        for resource, name in self.configurations:
            await self.client.delete(resource, name)

    async def secret(self) -> dict[str, Any]:
        return await self.client.get(SECRETS, SECRET, namespace=self.namespace)

    async def trusted(self) -> set[str]:
        """Every caBundle that stands in the configurations now."""
        found = [await self.client.get(resource, name) for resource, name in self.configurations]
        return {webhook["clientConfig"].get("caBundle", "") for each in found for webhook in each["webhooks"]}

    async def published(self) -> bool:
        return "" not in await self.trusted()

    async def admitted(self) -> dict[str, Any]:
        """One good object through both webhooks, stored nowhere."""
        body = machine()
        body["metadata"] = {"generateName": "probe-"}
        return await self.client.create(SCHEDULED_MACHINES, body, namespace=self.namespace, dry_run=True)

    async def asked(self) -> bool:
        """Whether the API server asks the webhooks: until it has learnt of them it stores objects as they are."""
        try:
            return names.FINALIZER in str(await self.admitted())
        except KubeError:
            return False

    async def kubectl(self, *words: str, stdin: Any = None) -> subprocess.CompletedProcess[str]:
        """kubectl itself, as a user would call it."""
        argv = [
            str(self.assets.kubectl),
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--namespace={self.namespace}",
            *words,
        ]
        child = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await child.communicate(yaml.safe_dump(stdin).encode() if stdin else None)
        return subprocess.CompletedProcess(argv, child.returncode or 0, out.decode(), err.decode())


async def is_ready(process: Process) -> bool:
    port = await process.port("health")
    try:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"http://127.0.0.1:{port}/ready")).status_code == 200
    except httpx.TransportError:
        return False


@asynccontextmanager
async def gate(
    cluster: LocalCluster,
    assets: Assets,
    *,
    replicas: int = 1,
    flags: Mapping[str, str] | None = None,
    overrides: bool = False,
) -> AsyncIterator[Gate]:
    """The CRD, a namespace, `replicas` running services, and webhooks that lead to the first of them."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cluster.client())
        await crds.apply(client, yaml.safe_load(CRD.read_text()))
        made = Gate(cluster, assets, f"gate-{secrets.token_hex(4)}", client, overrides=overrides)
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": made.namespace}})
        stack.push_async_callback(client.delete, NAMESPACES, made.namespace)
        starting = [stack.enter_async_context(started(made.flags(**QUICK, **(flags or {})))) for _ in range(replicas)]
        made.replicas = list(await asyncio.gather(*starting))
        for replica in made.replicas:
            await until(lambda replica=replica: is_ready(replica), within=120)
        await made.register(await made.replicas[0].port("webhooks"))
        stack.push_async_callback(made.unregister)
        await until(made.published)
        await until(made.asked)
        yield made
