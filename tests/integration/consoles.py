"""A console in the test's own loop, browsers that speak HTTP, and users with few rights."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from local.cluster import LocalCluster
from service.clock import Clock, SystemClock
from service.console import cluster
from service.console.cluster import ClusterEntrance
from service.console.local import LocalEntrance, serving
from service.console.viewer import ViewPlace
from service.console.viewers import Viewers
from service.http.servers import bound
from service.kube import credentials
from service.kube.client import Client
from service.kube.resource import SERVICE_ACCOUNTS, Resource
from service.kube.transport import Call

Raw = dict[str, Any]
WITHIN = 60.0
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


@asynccontextmanager
async def console(
    kubeconfig: Path | str, namespace: str | None, clock: Clock | None = None, calls: list[Call] | None = None
) -> AsyncIterator[LocalEntrance]:
    """What it sends to the API server is added to `calls`."""
    client = await Client.from_kubeconfig(kubeconfig)
    client.observe_calls(calls.append if calls is not None else None)
    place = ViewPlace(client, clock or SystemClock(), namespace, "5spot-system")
    async with serving(place) as entrance:
        yield entrance


@asynccontextmanager
async def cluster_console(servers: LocalCluster, folder: Path) -> AsyncIterator[tuple[ClusterEntrance, str]]:
    """A console for many users, with no rights of its own, and its address."""
    config = yaml.safe_load(servers.kubeconfig.read_text())
    for entry in config["users"]:
        entry["user"] = {}
    (folder / "nobody").write_text(yaml.safe_dump(config))
    endpoint, _ = await credentials.from_kubeconfig(folder / "nobody")
    listener = bound("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with cluster.serving(
        Viewers(endpoint, SystemClock(), "5spot-system"), frozenset({address}), listener
    ) as entrance:
        yield entrance, address


def token_of(config: Raw) -> str:
    """The bearer token in a kubeconfig."""
    return str(config["users"][0]["user"]["token"])


@asynccontextmanager
async def browser(entrance: LocalEntrance, *, let_in: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client that behaves as the console's own page does."""
    own = f"http://127.0.0.1:{entrance.port}"
    async with httpx.AsyncClient(base_url=own, headers={"Origin": own}, timeout=WITHIN, trust_env=False) as made:
        if let_in:
            answer = await made.post("/session", json={"token": entrance.token.text})
            assert answer.status_code == 200, answer.text
            made.headers["X-5spot-Key"] = answer.json()["key"]
        yield made


async def message(lines: AsyncIterator[str], fact: Any) -> Raw:
    """The first message of a feed that satisfies `fact`."""
    async with asyncio.timeout(WITHIN):
        async for line in lines:
            if line.startswith("data: ") and fact(found := json.loads(line[6:])):
                return found
    raise AssertionError("the feed ended")


async def user(client: Client, cluster: LocalCluster, namespace: str, rules: list[Raw], name: str = "reader") -> Raw:
    """The kubeconfig of an account with these rights in a namespace, and no others."""
    role = {"metadata": {"name": name}, "rules": rules, **ROLES.envelope()}
    binding = {
        **BINDINGS.envelope(),
        "metadata": {"name": name},
        "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    account = {**SERVICE_ACCOUNTS.envelope(), "metadata": {"name": name}}
    await client.create(SERVICE_ACCOUNTS, account, namespace=namespace)
    await client.create(ROLES, role, namespace=namespace)
    await client.create(BINDINGS, binding, namespace=namespace)
    asked: Raw = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.create_subresource(SERVICE_ACCOUNTS, name, "token", asked, namespace=namespace)
    config: Raw = yaml.safe_load(cluster.kubeconfig.read_text())
    for entry in config["users"]:
        entry["user"] = {"token": answer["status"]["token"]}
    return config
