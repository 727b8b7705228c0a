"""What controllers of resources with a status of their own share: storing it, and trying again after a failure."""

from typing import Any, Final

import structlog

from crds.base import Model, field_names
from service.kube.client import Client
from service.kube.errors import Conflict, KubeError, NotFound
from service.kube.resource import Resource
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.queue import Queue
from service.sharding.fence import ShardNotHeldError

Raw = dict[str, Any]

CONFLICT_SECONDS: Final = 1.0

log = structlog.get_logger(__name__)


async def store_status(client: Client, informer: Informer, resource: Resource, raw: Raw, status: Model) -> Raw | None:
    """Replaces an object's status, and keeps the cache right; None if the object was deleted meanwhile."""
    metadata = raw["metadata"]
    body = {**resource.envelope(), **raw, "status": {**_unknown(raw.get("status"), status), **status.to_json()}}
    try:
        stored = await client.replace(
            resource, metadata["name"], body, namespace=metadata.get("namespace"), subresource="status"
        )
    except NotFound:
        return None  # its watch brings it back into the queue
    informer.absorb(stored)
    return stored


def _unknown(stored: Any, status: Model) -> Raw:
    """What a newer version of the operator stored, and this one does not know."""
    known = field_names(type(status))
    return {name: value for name, value in (stored or {}).items() if name not in known}


def retry_later(queue: Queue, key: Key, error: Exception) -> None:
    """Puts an object back into the queue after a failed pass."""
    if isinstance(error, ShardNotHeldError):
        return  # the replica that holds the shard now looks at it
    if isinstance(error, Conflict):
        # Its watch brings it back sooner if it was edited, but an API server may say so of an object as it is.
        queue.retry(key, after=CONFLICT_SECONDS)
        return
    pause = queue.retry(key, after=error.retry_after if isinstance(error, KubeError) else None)
    message = error.message if isinstance(error, KubeError) else repr(error)
    log.warning("will try again", object=str(key), error=message, seconds=round(pause, 1))
