"""Takes our finalizer off ScheduledMachines, so that they can be deleted when no operator runs; for `5spot release`.

Nothing else of an object is touched, and nothing is taken off an object that is not the one that was looked at.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from crds import names
from service.kube.client import Client
from service.kube.discovery import Discovery
from service.kube.errors import Conflict, Expired, Forbidden, KubeError, NotFound
from service.kube.resource import LEASES, SCHEDULED_MACHINES
from service.runtime.key import Key
from service.sharding.lease_store import SELECTOR
from service.sharding.shard import Shard

Raw = dict[str, Any]

FIELD_MANAGER: Final = "5spot-release"
PAGE: Final = 500
AT_ONCE: Final = 16
ATTEMPTS: Final = 8
LOOK_EVERY: Final = 0.5


class Outcome(StrEnum):
    """What became of an object's finalizer."""

    HELD = "held"
    """Nothing yet."""
    RELEASED = "released"
    FREE = "free"
    """It did not carry our finalizer."""
    GONE = "gone"
    """The object was deleted meanwhile; another one may have its name by now."""
    MISSING = "missing"
    """There was no such object to begin with."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Machine:
    """What nobody of ours looks after any more once the finalizer is off."""

    kind: str
    name: str
    uid: str = ""
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A ScheduledMachine as it was seen, and what became of it."""

    key: Key
    uid: str = ""
    version: str = ""
    finalizers: tuple[str, ...] = ()
    deleting: bool = False
    left_behind: tuple[Machine, ...] = ()
    outcome: Outcome = Outcome.HELD
    error: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """Finalizers that are none of our business."""
        return tuple(each for each in self.finalizers if each != names.FINALIZER)


@dataclass(frozen=True, slots=True)
class Hold:
    """A Lease that somebody holds: who, and his last sign of life."""

    lease: Key
    holder: str
    renewal: str
    seconds: float


Holds = dict[Key, Hold]


async def find(client: Client, *, namespace: str | None, wanted: Sequence[Key] = ()) -> list[Found]:
    """The ScheduledMachines that carry our finalizer; those of `wanted` in any case."""
    if wanted:
        seen = [await _look(client, key) for key in dict.fromkeys(wanted)]
    else:
        seen = [each for each in await _all(client, namespace) if each.outcome is Outcome.HELD]
    machines = await _machines(client, namespace)
    return seen if machines is None else [_with_machines(each, machines) for each in seen]


async def release(
    client: Client, found: Sequence[Found], *, dry_run: bool, told: Callable[[Found], None]
) -> list[Found]:
    """Takes our finalizer off each; tells of every one as it is done, in order."""
    done: list[Found] = []
    for first in range(0, len(found), AT_ONCE):
        batch = found[first : first + AT_ONCE]
        for each in await asyncio.gather(*(_release(client, one, dry_run=dry_run) for one in batch)):
            told(each)
            done.append(each)
    return done


async def holds(client: Client, namespace: str | None) -> Holds:
    """The Leases of operators that somebody holds, whether he is alive or not."""
    listed = await client.list(LEASES, namespace=namespace, labels=SELECTOR)
    return {hold.lease: hold for raw in listed if (hold := _hold(raw)) is not None}


async def alive(client: Client, namespace: str | None, seen: Holds) -> list[Hold]:
    """Who of the holders is alive: whoever renews his Lease before it runs out. Clocks are never compared."""
    patience = max((hold.seconds for hold in seen.values()), default=0.0)
    for _ in range(int(patience / LOOK_EVERY) + 1 if seen else 0):
        await asyncio.sleep(LOOK_EVERY)
        signs = signs_of_life(seen, await holds(client, namespace))
        if signs:
            return signs
    return []


def signs_of_life(before: Holds, after: Holds) -> list[Hold]:
    """The holders who have come, or have renewed, from one look to the next."""
    return [hold for lease, hold in after.items() if before.get(lease) != hold]


def _hold(raw: Raw) -> Hold | None:
    spec, metadata = raw.get("spec") or {}, raw["metadata"]
    holder = spec.get("holderIdentity")
    if not holder or Shard.of_lease(metadata["name"]) is None:
        return None
    lease = Key(metadata["namespace"], metadata["name"])
    return Hold(lease, holder, spec.get("renewTime") or "", float(spec.get("leaseDurationSeconds") or 0))


async def _all(client: Client, namespace: str | None) -> list[Found]:
    while True:
        try:
            return [each async for each in _pages(client, namespace)]
        except Expired:  # the list took so long that the server forgot where we were
            continue


async def _pages(client: Client, namespace: str | None) -> AsyncIterator[Found]:
    more: str | None = None
    while True:
        page = await client.list_page(SCHEDULED_MACHINES, namespace=namespace, limit=PAGE, more=more)
        for raw in page.items:
            yield _found(raw)
        more = page.more
        if more is None:
            return


async def _look(client: Client, key: Key) -> Found:
    try:
        return _found(await client.get(SCHEDULED_MACHINES, key.name, namespace=key.namespace))
    except NotFound as error:
        if error.missing_kind:
            raise
        return Found(key, outcome=Outcome.MISSING, error="there is no such ScheduledMachine")


def _found(raw: Raw) -> Found:
    metadata = raw["metadata"]
    finalizers = tuple(metadata.get("finalizers") or ())
    return Found(
        key=Key(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        finalizers=finalizers,
        deleting="deletionTimestamp" in metadata,
        left_behind=_recorded(raw.get("status") or {}),
        outcome=Outcome.HELD if names.FINALIZER in finalizers else Outcome.FREE,
    )


def _recorded(status: Raw) -> tuple[Machine, ...]:
    """What the status names; Cluster API removes the other two along with a Machine."""
    refs = [status.get(field) for field in ("machineRef", "bootstrapRef", "infrastructureRef")]
    named = [ref for ref in refs if ref and ref.get("kind") and ref.get("name")]
    children = [Machine(ref["kind"], ref["name"], ref.get("uid") or "") for ref in named]
    return tuple(children[:1] if refs[0] else children)


async def _machines(client: Client, namespace: str | None) -> dict[str, Machine] | None:
    """The Machines there are, by their uid and by that of the ScheduledMachine that owns them; None if unknowable."""
    try:
        capi = await Discovery(client).capi()
        if capi is None:
            return {}
        found: dict[str, Machine] = {}
        more: str | None = None
        while True:
            page = await client.list_page(
                capi.machines, namespace=namespace, labels=names.LABEL_OWNER, limit=PAGE, more=more, metadata_only=True
            )
            found |= {uid: _machine(raw) for raw in page.items for uid in _uids(raw)}
            more = page.more
            if more is None:
                return found
    except (Forbidden, Expired):
        return None


def _machine(raw: Raw) -> Machine:
    metadata = raw["metadata"]
    return Machine("Machine", metadata["name"], metadata["uid"], leaving="deletionTimestamp" in metadata)


def _uids(raw: Raw) -> list[str]:
    """Its owner may have been struck out by the garbage collector already, its own uid is then in the status."""
    owners = raw["metadata"].get("ownerReferences") or ()
    return [raw["metadata"]["uid"], *(owner["uid"] for owner in owners if owner.get("kind") == names.KIND)]


def _with_machines(each: Found, machines: dict[str, Machine]) -> Found:
    """What is there counts, not what the status remembers."""
    uids = (each.uid, *(one.uid for one in each.left_behind))
    there = next((machines[uid] for uid in uids if uid in machines), None)
    if there is not None:
        return replace(each, left_behind=(there,))
    return replace(each, left_behind=tuple(one for one in each.left_behind if one.kind != "Machine"))


async def _release(client: Client, found: Found, *, dry_run: bool) -> Found:
    try:
        for _ in range(ATTEMPTS):
            if found.outcome is not Outcome.HELD:
                return found
            try:
                await _take_off(client, found, dry_run=dry_run)
            except Conflict:  # changed meanwhile: look again, it may be another object by now
                found = await _again(client, found)
            else:
                return replace(found, outcome=Outcome.RELEASED)
    except NotFound:
        return replace(found, outcome=Outcome.GONE, error="was deleted meanwhile")
    except KubeError as error:
        return replace(found, outcome=Outcome.FAILED, error=error.message)
    return replace(found, outcome=Outcome.FAILED, error="somebody changes it all the time")


async def _take_off(client: Client, found: Found, *, dry_run: bool) -> None:
    guarded = {"uid": found.uid, "resourceVersion": found.version, "finalizers": list(found.others) or None}
    await client.patch(
        SCHEDULED_MACHINES,
        found.key.name,
        {"metadata": guarded},
        namespace=found.key.namespace,
        field_manager=FIELD_MANAGER,
        dry_run=dry_run,
    )


async def _again(client: Client, found: Found) -> Found:
    now = _found(await client.get(SCHEDULED_MACHINES, found.key.name, namespace=found.key.namespace))
    if now.uid != found.uid:
        return replace(found, outcome=Outcome.GONE, error="was deleted meanwhile; another has its name: left alone")
    return replace(now, left_behind=found.left_behind)
