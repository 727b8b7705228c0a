"""What the user may do, as the API server answers: pages show only buttons that work."""

import asyncio
from typing import Any, NamedTuple

from crds import names
from service.kube.client import Client
from service.kube.errors import KubeError
from service.kube.resource import (
    SCHEDULE_OVERRIDES,
    SCHEDULED_MACHINES,
    SELF_SUBJECT_ACCESS_REVIEWS,
    Resource,
)


class Right(NamedTuple):
    """A verb on a kind, in a namespace or everywhere, for one object or all."""

    verb: str
    resource: Resource
    namespace: str | None = None
    name: str | None = None


async def may(client: Client, right: Right) -> bool:
    """Whether the user has a right; no answer counts as no."""
    attributes = {
        "verb": right.verb,
        "group": right.resource.group,
        "version": right.resource.version,
        "resource": right.resource.plural,
        "namespace": right.namespace,
        "name": right.name,
    }
    given = {key: value for key, value in attributes.items() if value}
    body = {**SELF_SUBJECT_ACCESS_REVIEWS.envelope(), "spec": {"resourceAttributes": given}}
    try:
        answer: dict[str, Any] = await client.create(SELF_SUBJECT_ACCESS_REVIEWS, body)
    except KubeError:
        return False
    return (answer.get("status") or {}).get("allowed") is True


async def on_machine(client: Client, namespace: str, name: str) -> dict[str, bool]:
    """What the user may do with one machine."""
    override, create, delete, patch = await asyncio.gather(
        may(client, Right(names.OVERRIDE_VERB, SCHEDULED_MACHINES, namespace, name)),
        may(client, Right("create", SCHEDULE_OVERRIDES, namespace)),
        may(client, Right("delete", SCHEDULE_OVERRIDES, namespace)),
        may(client, Right("patch", SCHEDULED_MACHINES, namespace, name)),
    )
    return {"override": override and create, "resume": override and create and delete, "kill": patch}


async def on_overrides(client: Client, namespace: str | None) -> dict[str, bool]:
    """Whether the user may make and end overrides in a namespace, or everywhere."""
    create, delete = await asyncio.gather(
        may(client, Right("create", SCHEDULE_OVERRIDES, namespace)),
        may(client, Right("delete", SCHEDULE_OVERRIDES, namespace)),
    )
    return {"create": create, "delete": delete}


async def readable(client: Client, resource: Resource, namespace: str | None) -> bool:
    """Whether the user may list and watch a kind."""
    where = namespace if resource.namespaced else None
    found = await asyncio.gather(*(may(client, Right(verb, resource, where)) for verb in ("list", "watch")))
    return all(found)
