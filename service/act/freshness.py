"""Whether the cache has the current version of a ScheduledMachine; checked where the cache may be behind.

Only the replica that holds a shard writes to its objects, and knows its own writes. A replica that has just acquired
the shard learns from its watch alone what the last holder wrote, and a watch may be dead for a while unnoticed.
"""

from typing import Any, Final

from service.kube.client import IDLE_SECONDS, Client
from service.kube.errors import NotFound
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.informer import Informer
from service.runtime.key import Key

CATCH_UP_SECONDS: Final = IDLE_SECONDS + 5.0
"""By then a watch has sent something since the shard was acquired, or is known to be broken."""


async def is_current(client: Client, cache: Informer, key: Key, seen: dict[str, Any]) -> bool:
    """Whether the API server still has the object in this version; the cache takes in the answer."""
    known = seen["metadata"]
    try:
        raw = await client.get(SCHEDULED_MACHINES, key.name, namespace=key.namespace)
    except NotFound as gone:
        if not gone.missing_kind:
            cache.absorb_deletion(key, known["uid"])
            return False
        raise
    stored = raw["metadata"]
    same = (stored["uid"], stored["resourceVersion"]) == (known["uid"], known["resourceVersion"])
    cache.absorb(raw)
    return same
