"""Which objects of a restored ScheduledMachine may be taken over, and the owner references that they get.

A restore gives every object a new uid. Velero leaves owner references out for that reason; other tools bring them back
with uids that no longer exist, which lasts only as long as another owner keeps the garbage collector away. Used by
`5spot adopt` alone: the controller never takes over what is not its own.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crds import names
from service.decide.manifests import child_name, owned_by
from service.decide.world import Identity, Role

Raw = Mapping[str, Any]
CONTROLLER: Final = "controller"


@dataclass(frozen=True, slots=True)
class Adoption:
    """The verdict on one object: `patch` takes it over, `refusal` says why it must not be; neither if it is ours."""

    patch: dict[str, Any] | None = None
    refusal: str = ""


OURS: Final = Adoption()


def examine(role: Role, child: Raw, me: Identity, living: Collection[str]) -> Adoption:
    """Whether an object under one of our names may be taken over; `living` are the uids of all ScheduledMachines."""
    metadata = child["metadata"]
    owners = [owner for owner in metadata.get("ownerReferences") or () if isinstance(owner, Mapping)]
    if any(owner.get("uid") == me.uid for owner in owners):
        return OURS
    refusal = _refusal(role, metadata, me, owners, living)
    if refusal:
        return Adoption(refusal=refusal)
    others = [dict(owner) for owner in owners if not _is_scheduled_machine(owner)]
    references = [*others, owned_by(me, controller=role is Role.MACHINE)]
    version = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return Adoption(patch={"metadata": {**version, "ownerReferences": references}})


def _refusal(role: Role, metadata: Raw, me: Identity, owners: list[Raw], living: Collection[str]) -> str:
    labels = metadata.get("labels") or {}
    wanted = {names.LABEL_OWNER: me.name, names.LABEL_MANAGED_BY: names.MANAGED_BY}
    wrong = next((key for key, value in wanted.items() if labels.get(key) != value), None)
    if wrong:
        return f"its label {wrong} is not {wanted[wrong]!r}: another program or person made it"
    if "deletionTimestamp" in metadata:
        return "it is being deleted; once it is gone, a new one is created"
    for owner in owners:
        if _is_scheduled_machine(owner) and (owner.get("name") != me.name or owner.get("uid") in living):
            return f"it belongs to ScheduledMachine {owner.get('name')}"
        if owner.get(CONTROLLER) and not _is_scheduled_machine(owner) and not _is_our_machine(role, owner, me):
            return f"{owner.get('kind')} {owner.get('name')} controls it"
    return ""


def _is_scheduled_machine(owner: Raw) -> bool:
    return owner.get("kind") == names.KIND and str(owner.get("apiVersion")).partition("/")[0] == names.GROUP


def _is_our_machine(role: Role, owner: Raw, me: Identity) -> bool:
    """Cluster API makes the Machine the controller of the other two, under whatever uid it was restored."""
    named = owner.get("kind") == "Machine" and owner.get("name") == child_name(me.name, Role.MACHINE)
    return role is not Role.MACHINE and named
