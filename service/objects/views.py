"""Reads raw API objects into the typed, frozen values that decisions use."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from crds import names
from crds.scheduledmachine import Metadata
from crds.status import ScheduledMachineStatus
from service.clock import Clock
from service.decide import contracts
from service.decide.world import Child, Cluster, Identity, Node, Owner, Pod, Role, Taint, World
from service.kube.resource import Resource
from service.runtime.identity import well_formed

Raw = Mapping[str, Any]
NAME_MAX = 253
MIRROR: Final = "kubernetes.io/config.mirror"
FINISHED: Final = ("Succeeded", "Failed")
_YEARS: Final = range(2000, 2200)


def identity(metadata: Metadata, clock: Clock) -> Identity:
    """The ScheduledMachine itself, with the time of its deletion on the schedule's clock."""
    deleted = metadata.deletion_timestamp
    return Identity(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        deleting_since=clock.shown_at(deleted) if deleted else None,
        finalized=names.FINALIZER in metadata.finalizers,
        paused=names.ANNOTATION_PAUSED in metadata.annotations,
        annotations=metadata.annotations,
    )


def child(role: Role, kind: tuple[str, str], raw: Raw, me: Identity, status: ScheduledMachineStatus) -> Child:
    """One of the three objects, of `kind` (apiVersion, kind); ours if we own it or our status records its uid."""
    metadata = raw["metadata"]
    owners = tuple(
        Owner(uid=owner.get("uid", ""), controller=bool(owner.get("controller")), raw=owner)
        for owner in metadata.get("ownerReferences") or ()
    )
    uid = metadata["uid"]
    return Child(
        role=role,
        api_version=kind[0],
        kind=kind[1],
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=uid,
        ours=uid == recorded_uid(role, status) or any(owner.uid == me.uid for owner in owners),
        deleting="deletionTimestamp" in metadata,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        owners=owners,
        spec=raw.get("spec") or {},
        resource_version=metadata.get("resourceVersion", ""),
        generation=metadata.get("generation") or 0,
    )


def with_child(world: World, role: Role, resource: Resource, raw: Raw) -> World:
    """The world with one of the three objects as it is now."""
    found = child(role, (resource.api_version, resource.kind), raw, world.me, world.status)
    if role is not Role.MACHINE:
        fields: dict[str, Any] = {role.value: found}
        return replace(world, **fields)
    if world.contract is None:
        return world
    return replace(world, machine=contracts.read_machine(world.contract, found, raw))


def recorded_uid(role: Role, status: ScheduledMachineStatus) -> str | None:
    """The uid that our status holds for a role."""
    refs = {
        Role.MACHINE: status.machine_ref,
        Role.BOOTSTRAP: status.bootstrap_ref,
        Role.INFRASTRUCTURE: status.infrastructure_ref,
    }
    ref = refs[role]
    return ref.uid if ref else None


def cluster(raw: Raw) -> Cluster:
    """The CAPI Cluster; both contracts have the same fields."""
    metadata = raw["metadata"]
    annotations = metadata.get("annotations") or {}
    annotated = names.ANNOTATION_PAUSED in annotations
    return Cluster(
        name=metadata["name"],
        uid=metadata["uid"],
        deleting="deletionTimestamp" in metadata,
        paused=bool((raw.get("spec") or {}).get("paused")) or annotated,
        labels=metadata.get("labels") or {},
        annotations=annotations,
    )


def node(raw: Raw) -> Node:
    """A Node of the workload cluster."""
    metadata = raw["metadata"]
    spec = raw.get("spec") or {}
    status = raw.get("status") or {}
    ready = next((c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"), None)
    return Node(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        provider_id=spec.get("providerID") or None,
        ready=ready == "True",
        unreachable=ready == "Unknown",
        unschedulable=bool(spec.get("unschedulable")),
        taints=tuple(_taint(taint) for taint in spec.get("taints") or ()),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
    )


def _taint(raw: Raw) -> Taint:
    return Taint(
        key=raw.get("key") or "",
        effect=raw.get("effect") or "",
        value=raw.get("value") or "",
        added=raw.get("timeAdded") or "",
    )


def pods(listed: Iterable[Raw]) -> tuple[Pod, ...]:
    """The pods that a workload cluster listed; `Unavailable` if what it sent are not pods."""
    with well_formed("a pod"):
        return tuple(pod(raw) for raw in listed)


def pod(raw: Raw) -> Pod:
    """A pod, as far as the drain needs it."""
    metadata = raw["metadata"]
    status = raw.get("status") or {}
    controller: Raw = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), {})
    namespace = metadata["namespace"]
    name = metadata["name"]
    uid = metadata["uid"]
    if not (namespace.strip(".") and name.strip(".") and isinstance(uid, str)) or len(name) > NAME_MAX:
        raise TypeError("a pod has a namespace, a name and a uid")
    return Pod(
        namespace=namespace,
        name=name,
        uid=uid,
        controller_kind=controller.get("kind"),
        controller_name=controller.get("name"),
        mirror=MIRROR in (metadata.get("annotations") or {}),
        finished=status.get("phase") in FINISHED,
        deleting="deletionTimestamp" in metadata,
        deleted_at=_instant(metadata["deletionTimestamp"]) if "deletionTimestamp" in metadata else None,
        labels=_texts(metadata.get("labels") or {}),
    )


def slim_pod(raw: dict[str, Any]) -> dict[str, Any]:
    """The fields of a pod that a drain reads: a change of another one wakes no machine."""
    metadata = raw["metadata"]
    spec = raw.get("spec") or {}
    phase = (raw.get("status") or {}).get("phase")
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp")
    mirror = {MIRROR: ""} if MIRROR in (metadata.get("annotations") or {}) else {}
    owners = [
        {key: owner.get(key) for key in ("kind", "name", "controller")}
        for owner in metadata.get("ownerReferences") or ()
        if owner.get("controller")
    ]
    return {
        "metadata": {name: metadata[name] for name in kept if name in metadata}
        | {"annotations": mirror, "ownerReferences": owners},
        "spec": {"nodeName": spec.get("nodeName") or ""},
        "status": {"phase": phase} if phase in FINISHED else {},
    }


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.year not in _YEARS:
        raise ValueError("not a plausible time")
    return at.astimezone(UTC)


def _texts(labels: Mapping[str, Any]) -> Mapping[str, str]:
    if not all(isinstance(value, str) for value in labels.values()):
        raise TypeError("labels are text")
    return labels
