"""Reads the classes that ScheduledMachines name, and their namespaces, with the rights of the user."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from crds import names
from crds.classes import FoundClass, class_not_found, class_of
from crds.classrules import read_class
from crds.providers import ProviderPolicy
from service.fleet.tenancies import Tenancies
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.kube.resource import NAMESPACES, SCHEDULED_MACHINE_CLASSES

Raw = dict[str, Any]


async def read_stored(client: Client, machines: Iterable[Raw], policy: ProviderPolicy) -> Tenancies:
    """The classes that ScheduledMachines of a cluster name; sends no request for machines without a class."""
    named = {(class_of(each), str(each["metadata"].get("namespace"))) for each in machines}
    classes: dict[str, FoundClass] = {}
    labels: dict[str, Mapping[str, str]] = {}
    unread: dict[str, str] = {}
    for name in sorted({name for name, _ in named if name is not None}):
        await _read_class(client, name, policy, classes, unread)
    for namespace in sorted({namespace for name, namespace in named if name in classes}):
        await _read_labels(client, namespace, labels)
    return Tenancies(classes, labels, unread)


async def _read_class(
    client: Client, name: str, policy: ProviderPolicy, classes: dict[str, FoundClass], unread: dict[str, str]
) -> None:
    try:
        found = await client.get(SCHEDULED_MACHINE_CLASSES, name)
        classes[name] = read_class({**SCHEDULED_MACHINE_CLASSES.envelope(), **found}, policy)
    except NotFound:
        classes[name] = class_not_found(name)
    except KubeError as error:
        unread[name] = f"{names.CLASS_KIND} {name} cannot be read: {error.message}"


async def _read_labels(client: Client, namespace: str, labels: dict[str, Mapping[str, str]]) -> None:
    with suppress(KubeError):  # tenants may read their own objects, and rarely their namespace
        found = (await client.get(NAMESPACES, namespace))["metadata"].get("labels")
        labels[namespace] = found if isinstance(found, dict) else {}
