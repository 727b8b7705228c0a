"""Finds the ScheduledMachines that carry the operator's finalizer and removes it; for `5spot release`.

Nothing else of an object changes. An object that is deleted and created again in the meantime keeps its finalizer.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from crds import names
from service.kube.client import Client
from service.kube.discovery import Discovery
from service.kube.errors import Conflict, Forbidden, KubeError, NotFound
from service.kube.resource import SCHEDULED_MACHINES

Raw = dict[str, Any]
Name = tuple[str, str]
"""A namespace and a name in it."""

FIELD_MANAGER: Final = "5spot-release"
AT_ONCE: Final = 16
ATTEMPTS: Final = 8


class ReleaseOutcome(StrEnum):
    """What happened to an object's finalizer."""

    HELD = "held"
    """Nothing yet."""
    RELEASED = "released"
    FREE = "free"
    """The object did not carry our finalizer."""
    GONE = "gone"
    """The object was deleted in the meantime; another one may have its name, and is left alone."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RemainingMachine:
    """The Cluster API Machine of a ScheduledMachine; the operator no longer deletes it once the finalizer is gone."""

    name: str
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseTarget:
    """A ScheduledMachine as the API server showed it, and what happened to its finalizer."""

    name: Name
    uid: str = ""
    version: str = ""
    finalizers: tuple[str, ...] = ()
    deleting: bool = False
    machine: RemainingMachine | None = None
    outcome: ReleaseOutcome = ReleaseOutcome.HELD
    error: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """The finalizers of other programs."""
        return tuple(each for each in self.finalizers if each != names.FINALIZER)

    def to_json(self) -> dict[str, Any]:
        """As `-o json` prints it."""
        machine = self.machine
        left = [{"kind": "Machine", "name": machine.name, "leaving": machine.leaving}] if machine else []
        message = {"message": self.error} if self.error else {}
        return {
            "namespace": self.name[0],
            "name": self.name[1],
            "outcome": str(self.outcome),
            "deleting": self.deleting,
            "otherFinalizers": list(self.others),
            "leftBehind": left,
            **message,
        }


async def find(client: Client, *, namespace: str | None, wanted: Sequence[Name] = ()) -> list[ReleaseTarget]:
    """The ScheduledMachines that carry our finalizer, or all that `wanted` names, with their Machines.

    Raises:
        LookupError: if one of `wanted` does not exist.
    """
    if wanted:
        seen = [await _look(client, name) for name in dict.fromkeys(wanted)]
    else:
        listed = [_found(raw) for raw in await client.list(SCHEDULED_MACHINES, namespace=namespace)]
        seen = [each for each in listed if each.outcome is ReleaseOutcome.HELD]
    try:
        machines = await _machines(client, namespace)
    except Forbidden:
        return seen  # what the status recorded is the best that is known
    return [replace(each, machine=machines.get(each.name)) for each in seen]


async def release(client: Client, found: Sequence[ReleaseTarget], *, dry_run: bool) -> AsyncIterator[ReleaseTarget]:
    """Removes our finalizer from each object, several at once; yields each as it is done, in order."""
    for first in range(0, len(found), AT_ONCE):
        batch = found[first : first + AT_ONCE]
        for each in await asyncio.gather(*(_release(client, one, dry_run=dry_run) for one in batch)):
            yield each


async def _look(client: Client, name: Name) -> ReleaseTarget:
    try:
        return _found(await client.get(SCHEDULED_MACHINES, name[1], namespace=name[0]))
    except NotFound as error:
        if error.missing_kind:
            raise
        raise LookupError(f"there is no {names.KIND} {'/'.join(name)}") from None


def _found(raw: Raw) -> ReleaseTarget:
    metadata = raw["metadata"]
    finalizers = tuple(metadata.get("finalizers") or ())
    recorded = (raw.get("status") or {}).get("machineRef") or {}
    return ReleaseTarget(
        name=(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        finalizers=finalizers,
        deleting="deletionTimestamp" in metadata,
        machine=RemainingMachine(recorded["name"]) if recorded.get("name") else None,
        outcome=ReleaseOutcome.HELD if names.FINALIZER in finalizers else ReleaseOutcome.FREE,
    )


async def _machines(client: Client, namespace: str | None) -> dict[Name, RemainingMachine]:
    """The Machines that exist, by the ScheduledMachine that their label names: owner references may be gone."""
    capi = await Discovery(client).capi()
    listed = await client.list(capi.machines, namespace=namespace, labels=names.LABEL_OWNER) if capi else []
    every = [raw["metadata"] for raw in listed]
    return {
        (each["namespace"], each["labels"][names.LABEL_OWNER]): RemainingMachine(
            each["name"], "deletionTimestamp" in each
        )
        for each in every
    }


async def _release(client: Client, found: ReleaseTarget, *, dry_run: bool) -> ReleaseTarget:
    try:
        for _ in range(ATTEMPTS):
            if found.outcome is not ReleaseOutcome.HELD:
                return found
            try:
                await _remove(client, found, dry_run=dry_run)
            except Conflict:  # it changed: read it again, it may be another object by now
                found = await _again(client, found)
            else:
                return replace(found, outcome=ReleaseOutcome.RELEASED)
    except NotFound:
        return replace(found, outcome=ReleaseOutcome.GONE)
    except KubeError as error:
        return replace(found, outcome=ReleaseOutcome.FAILED, error=error.message)
    return replace(found, outcome=ReleaseOutcome.FAILED, error=f"changed during each of {ATTEMPTS} attempts; try again")


async def _remove(client: Client, found: ReleaseTarget, *, dry_run: bool) -> None:
    guarded = {"uid": found.uid, "resourceVersion": found.version, "finalizers": list(found.others) or None}
    namespace, name = found.name
    await client.patch(
        SCHEDULED_MACHINES,
        name,
        {"metadata": guarded},
        namespace=namespace,
        field_manager=FIELD_MANAGER,
        dry_run=dry_run,
    )


async def _again(client: Client, found: ReleaseTarget) -> ReleaseTarget:
    namespace, name = found.name
    now = _found(await client.get(SCHEDULED_MACHINES, name, namespace=namespace))
    if now.uid != found.uid:
        return replace(found, outcome=ReleaseOutcome.GONE)
    return replace(now, machine=found.machine)
