"""Installs CustomResourceDefinitions and waits until the API server serves them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from local.errors import LocalError
from service.kube.client import Client, PatchKind
from service.kube.decode import Object
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS

FIELD_MANAGER = "5spot-local"
LOOK_EVERY = 0.03
PATIENCE = 60.0


def apply_all(connect: Callable[[], Client], definitions: Sequence[dict[str, Any]]) -> None:
    """Installs or updates all of them; to be called where no event loop runs."""
    if definitions:
        asyncio.run(_apply_all(connect, definitions))


async def _apply_all(connect: Callable[[], Client], definitions: Sequence[dict[str, Any]]) -> None:
    async with connect() as client, asyncio.TaskGroup() as tasks:
        for definition in definitions:
            tasks.create_task(apply(client, definition))


async def apply(client: Client, definition: dict[str, Any]) -> None:
    """Installs or updates one, and returns when its kind can be used."""
    name = definition["metadata"]["name"]
    stored = await client.patch(CRDS, name, definition, kind=PatchKind.APPLY, field_manager=FIELD_MANAGER, force=True)
    try:
        async with asyncio.timeout(PATIENCE):
            while not established(stored):
                await asyncio.sleep(LOOK_EVERY)
                stored = await client.get(CRDS, name)
    except TimeoutError as error:
        raise LocalError(
            f"the API server did not take up {name} within {PATIENCE:.0f} s: {stored['status']}"
        ) from error


def established(crd: Object) -> bool:
    """Whether the API server serves the kind."""
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
