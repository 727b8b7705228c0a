"""Reads one object from the API server, where a cache may be behind or does not hold it."""

from typing import Any

from service.kube.client import Client
from service.kube.errors import NotFound
from service.kube.resource import Resource
from service.runtime.key import Key

Raw = dict[str, Any]


async def get_or_none(client: Client, resource: Resource, key: Key) -> Raw | None:
    """The object as stored; None if there is none, `NotFound` if the API server does not know the kind."""
    try:
        return await client.get(resource, key.name, namespace=key.namespace)
    except NotFound as error:
        if error.missing_kind:
            raise
        return None
