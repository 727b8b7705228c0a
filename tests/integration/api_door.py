"""The CRD on a real API server as a door: asks it to store manifests, without storing them, webhooks switched off."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import yaml

from crds.generate import CRD_FILE, ROOT
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.decode import decoded
from service.kube.errors import NotFound, Rejected, Unavailable
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES
from service.kube.transport import Request
from tests.corpus import Case
from tests.waiting import until

STRICT = "dryRun=All&fieldValidation=Strict"


def crd() -> dict[str, Any]:
    """The generated CRD as users apply it."""
    document: dict[str, Any] = yaml.safe_load((ROOT / CRD_FILE).read_text(encoding="utf-8"))
    return document


@asynccontextmanager
async def served(cluster: LocalCluster) -> AsyncIterator[Client]:
    """A client of a cluster that serves our CRD."""
    async with cluster.client() as client:
        name = crd()["metadata"]["name"]
        await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, crd(), kind=PatchKind.APPLY, force=True)
        await until(lambda: _answers(client))
        yield client


async def _answers(client: Client) -> bool:
    try:
        await client.list(SCHEDULED_MACHINES)
    except (NotFound, Unavailable):
        return False
    return True


async def try_create(client: Client, manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """What `kubectl create --dry-run=server` does."""
    path = f"{SCHEDULED_MACHINES.collection(namespace)}?{STRICT}"
    return await decoded(await client.transport.call(_request("create", "POST", path, moved(manifest, namespace))))


async def try_replace(client: Client, manifest: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """What `kubectl replace --dry-run=server` does."""
    namespace, name = stored["metadata"]["namespace"], stored["metadata"]["name"]
    body = moved(manifest, namespace)
    body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    path = f"{SCHEDULED_MACHINES.item(name, namespace)}?{STRICT}"
    return await decoded(await client.transport.call(_request("replace", "PUT", path, body)))


def moved(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The manifest in another namespace, envelopes included where they name the old one."""
    copy: dict[str, Any] = orjson.loads(orjson.dumps(manifest))
    own = copy["metadata"].get("namespace", "default")
    copy["metadata"]["namespace"] = namespace
    for envelope in ("bootstrapSpec", "infrastructureSpec"):
        given = copy.get("spec", {}).get(envelope)
        if isinstance(given, dict) and given.get("namespace") == own:
            given["namespace"] = namespace
    return copy


async def admits(client: Client, case: Case, namespace: str) -> bool:
    """Whether schema and CEL let a case of the corpus in."""
    try:
        if case.old is None:
            await try_create(client, case.manifest, namespace)
        else:
            await try_replace(client, renamed(case.manifest), await stored(client, renamed(case.old), namespace))
    except Rejected:
        return False
    return True


def renamed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Out of the way of manifests that are to be created."""
    return {**manifest, "metadata": {**manifest["metadata"], "name": "stored"}}


async def stored(client: Client, manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The manifest really stored, with its status."""
    name = manifest["metadata"]["name"]
    try:
        await client.get(SCHEDULED_MACHINES, name, namespace=namespace)
    except NotFound:
        await client.create(SCHEDULED_MACHINES, moved(manifest, namespace), namespace=namespace)
    status = {"status": manifest.get("status", {})}
    return await client.patch(SCHEDULED_MACHINES, name, status, namespace=namespace, subresource="status")


def _request(verb: str, method: str, path: str, body: dict[str, Any]) -> Request:
    headers = {"Content-Type": "application/json"}
    return Request(verb, method, path, SCHEDULED_MACHINES.plural, orjson.dumps(body), headers)
