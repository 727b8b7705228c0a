"""Which field manager set a field last, from the managedFields of an object; caches leave these out."""

from typing import Any

from service.kube.client import Client
from service.kube.errors import NotFound
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.key import Key

Raw = dict[str, Any]


async def who_enabled(client: Client, key: Key) -> str | None:
    """Asks the API server which field manager set `spec.schedule.enabled` of a ScheduledMachine."""
    try:
        return author_of_enabled(await client.get(SCHEDULED_MACHINES, key.name, namespace=key.namespace))
    except NotFound:
        return None


def author_of_enabled(raw: Raw) -> str | None:
    """The field manager that set `spec.schedule.enabled`; the latest, if several agree on it."""
    owners = [entry for entry in raw["metadata"].get("managedFields") or () if _sets_enabled(entry)]
    latest = max(owners, key=lambda entry: entry.get("time", ""), default=None)
    if latest is None:
        return None
    return str(latest.get("manager") or "") or None


def _sets_enabled(entry: Raw) -> bool:
    fields: Any = entry.get("fieldsV1")
    for name in ("f:spec", "f:schedule", "f:enabled"):
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields is not None and not entry.get("subresource")
