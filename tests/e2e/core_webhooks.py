"""The admission webhooks of Cluster API's core, as clusterctl installs them, for the namespace of one test.

For all namespaces they would be in the way of tests that write what they refuse.
"""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from local.plane import ControlPlane
from local.ports import LOOPBACK
from local.provider.kinds import CLUSTERS, MACHINES
from service.kube.client import Client
from service.kube.errors import KubeError
from service.kube.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from tests.e2e.healthchecks import HEALTH_CHECKS
from tests.waiting import until

Raw = dict[str, Any]
KINDS = (CLUSTERS, MACHINES, HEALTH_CHECKS)
DOORS = {"mutate": MUTATING_WEBHOOKS, "validate": VALIDATING_WEBHOOKS}
"""Configurations by the word that the paths of their webhooks begin with."""


@asynccontextmanager
async def core_webhooks(plane: ControlPlane, client: Client, namespace: str) -> AsyncIterator[None]:
    """Requests for Clusters, Machines and MachineHealthChecks of the namespace pass the webhooks within the block."""
    name = f"core-{namespace}"
    for word, door in DOORS.items():
        webhooks = [_webhook(plane, word, kind, namespace) for kind in KINDS]
        body = {**door.envelope(), "metadata": {"name": name}, "webhooks": webhooks}
        await client.create(door, body, field_manager="tests")
    await until(lambda: _asked(client, namespace))
    yield
    for door in DOORS.values():
        await client.delete(door, name)


def _webhook(plane: ControlPlane, word: str, kind: Resource, namespace: str) -> Raw:
    path = f"{word}-{kind.group.replace('.', '-')}-{kind.version}-{kind.kind.lower()}"
    (port,) = (flag.partition("=")[2] for flag in plane.capi.argv if flag.startswith("--webhook-port="))
    authority = base64.b64encode(plane.management.authority.pem).decode()
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
    }
    return {
        "name": f"{word}.{kind.kind.lower()}.{kind.group}",
        "clientConfig": {"url": f"https://{LOOPBACK}:{port}/{path}", "caBundle": authority},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }


async def _asked(client: Client, namespace: str) -> bool:
    """Whether the API server calls both: it learns of a configuration a moment after it is stored."""
    made = {"bootstrap": {"dataSecretName": "x"}, "infrastructureRef": {"apiGroup": "x.io", "kind": "X", "name": "x"}}
    spec = {"clusterName": "demo", "version": "1", **made}
    body = {**MACHINES.envelope(), "metadata": {"name": "probe"}, "spec": spec}
    try:
        await client.create(MACHINES, body, namespace=namespace, field_manager="tests", dry_run=True)
    except KubeError as error:
        return '"v1": must be a valid semantic version' in error.message  # completed by the one, refused by the other
    return False
