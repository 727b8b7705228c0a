"""The admission policies on a real API server as a door, for one namespace, with or without the CRD's own CEL."""

import copy
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from crds.cel import VALIDATIONS
from crds.generate import ROOT
from service.kube.client import Client, PatchKind
from service.kube.errors import NotFound, Rejected, Unavailable
from service.kube.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from tests.corpus import base
from tests.integration.api_door import crd, try_create
from tests.waiting import until

Raw = dict[str, Any]

POLICIES = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingadmissionpolicies",
    kind="ValidatingAdmissionPolicy",
    namespaced=False,
)
BINDINGS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingadmissionpolicybindings",
    kind="ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
KINDS = {each.kind: each for each in (POLICIES, BINDINGS, CONFIG_MAPS)}


def documents(*files: Path) -> list[Raw]:
    """All that is in these files, as users apply them."""
    return [each for file in files for each in yaml.safe_load_all((ROOT / file).read_text(encoding="utf-8"))]


@asynccontextmanager
async def applied(client: Client, manifests: Iterable[Raw], namespace: str) -> AsyncIterator[None]:
    """The manifests in force; bindings are narrowed to one namespace, so that other tests do not notice."""
    made = [_narrowed(each, namespace) for each in manifests]
    try:
        for each in made:
            await _apply(client, each)
        yield
    finally:
        for each in reversed(made):
            await _remove(client, each)


def _narrowed(manifest: Raw, namespace: str) -> Raw:
    """Under a name of its own and for one namespace only."""
    copied = copy.deepcopy(manifest)
    if copied["kind"] in {POLICIES.kind, BINDINGS.kind}:
        copied["metadata"]["name"] += f"-{namespace}"
    if copied["kind"] == BINDINGS.kind:
        copied["spec"]["policyName"] += f"-{namespace}"
        here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
        resources = copied["spec"].setdefault("matchResources", {})
        resources.setdefault("namespaceSelector", {}).setdefault("matchExpressions", []).append(here)
    return copied


async def _apply(client: Client, manifest: Raw) -> None:
    metadata = manifest["metadata"]
    kind, where = KINDS[manifest["kind"]], metadata.get("namespace")
    await client.patch(kind, metadata["name"], manifest, kind=PatchKind.APPLY, namespace=where, force=True)


async def _remove(client: Client, manifest: Raw) -> None:
    metadata = manifest["metadata"]
    with suppress(NotFound):
        await client.delete(KINDS[manifest["kind"]], metadata["name"], namespace=metadata.get("namespace"))


async def in_force(client: Client, manifest: Raw, namespace: str) -> None:
    """Waits until the API server refuses a manifest; it takes a moment to notice a policy."""
    await until(lambda: refusal(client, manifest, namespace))


async def refusal(client: Client, manifest: Raw, namespace: str) -> str:
    """What the API server says against a manifest; nothing if it would store it."""
    try:
        await try_create(client, manifest, namespace)
    except Rejected as error:
        return error.message
    return ""


@asynccontextmanager
async def without_cel(client: Client) -> AsyncIterator[None]:
    """The CRD as an older release might have left it: with types and patterns, but without a single rule."""
    refused = base()
    refused["spec"]["infrastructureSpec"]["apiVersion"] = "example.com/v1"
    await install(client, _stripped(crd()))
    await until(lambda: _admits(client, refused))
    try:
        yield
    finally:
        await install(client, crd())
        await until(lambda: _refuses(client, refused))


async def _admits(client: Client, manifest: Raw) -> bool:
    return await _judged(client, manifest) == ""


async def _refuses(client: Client, manifest: Raw) -> bool:
    return bool(await _judged(client, manifest))


async def _judged(client: Client, manifest: Raw) -> str | None:
    """What the API server says against a manifest; None while it exchanges the storage of a definition that changed."""
    try:
        return await refusal(client, manifest, "default")
    except Unavailable:
        return None


async def install(client: Client, definition: Raw) -> None:
    name = definition["metadata"]["name"]
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, definition, kind=PatchKind.APPLY, force=True)


def _stripped(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_stripped(each) for each in schema]
    if isinstance(schema, dict):
        return {key: _stripped(value) for key, value in schema.items() if key != VALIDATIONS}
    return schema
