"""Whether a ScheduledMachine is still what its cache says; asked where the cache may be behind.

Who holds a shard is the only one to let its objects go, and hears of that by his own writes. But who has just taken it
over knows what its last holder did from a watch alone, and a watch may be dead for a while before that is noticed.
"""

from typing import Any, Final

from service.kube.client import IDLE_SECONDS, Client
from service.kube.errors import NotFound
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.informer import Informer
from service.runtime.key import Key

DOUBT_SECONDS: Final = IDLE_SECONDS + 5.0
"""By then a watch has been heard of since a shard was taken over, or is known to be broken."""


async def is_current(client: Client, cache: Informer, key: Key, seen: dict[str, Any]) -> bool:
    """Asks the API server whether an object is in the version that was seen; the cache knows the answer afterwards."""
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
