"""The three objects as they should be: full manifests for creation, and patches for what drifted."""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson

from crds import names
from crds.scheduledmachine import ProviderSpec, ScheduledMachineSpec
from service.decide import contracts, template
from service.decide.plan import Create, Patch
from service.decide.world import Child, Cluster, Contract, Identity, Machine, Role, World

_SUFFIX = {
    Role.BOOTSTRAP: names.BOOTSTRAP_SUFFIX,
    Role.INFRASTRUCTURE: names.INFRASTRUCTURE_SUFFIX,
    Role.MACHINE: names.MACHINE_SUFFIX,
}


def child_name(owner: str, role: Role) -> str:
    """The name of an object of the ScheduledMachine called `owner`."""
    return owner + _SUFFIX[role]


def spec_hash(spec: ScheduledMachineSpec) -> str:
    """Identifies what a Machine was made from: these provider specs, this version and this failure domain."""
    made_from = [_envelope(spec.bootstrap_spec), _envelope(spec.infrastructure_spec)]
    # Only where there are any: Machines of operators that knew neither field carry the hash of the two specs alone.
    fixed = template.fixed_at_creation(spec)
    return digest([*made_from, fixed] if fixed else made_from)


def _envelope(provider: ProviderSpec) -> list[Any]:
    return [provider.api_version, provider.kind, provider.spec]


def digest(value: Any) -> str:
    """A short text that is the same for equal values."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def creations(spec: ScheduledMachineSpec, world: World) -> tuple[Create, ...]:
    """The objects that are missing, in order: the Machine refers to the other two."""
    assert world.contract is not None, "decide asks for CAPI first"  # noqa: S101 - narrows the type
    assert world.cluster is not None, "decide asks for the Cluster first"  # noqa: S101
    wanted = _parts(spec, world.me)
    if world.machine is None:
        parts = wanted[Role.BOOTSTRAP], wanted[Role.INFRASTRUCTURE]
        wanted[Role.MACHINE] = _machine(spec, world.me, world.cluster, world.contract, parts)
    return tuple(Create(role=role, manifest=body) for role, body in wanted.items() if world.child(role) is None)


def outdated(spec: ScheduledMachineSpec, world: World) -> tuple[Child, ...]:
    """Our bootstrap and infrastructure objects that were made from other specs than these."""
    seen = ((world.child(role), body) for role, body in _parts(spec, world.me).items())
    return tuple(child for child, body in seen if child is not None and child.ours and not made_from(child, body))


def made_from(child: Child, body: Mapping[str, Any]) -> bool:
    """Whether an object was created from this manifest; without a note of its spec, group and kind decide."""
    group = child.api_version.partition("/")[0], body["apiVersion"].partition("/")[0]
    if group[0] != group[1] or child.kind != body["kind"]:
        return False
    noted = child.annotations.get(names.ANNOTATION_SPEC_HASH)
    return noted in (None, body["metadata"]["annotations"][names.ANNOTATION_SPEC_HASH])


def _parts(spec: ScheduledMachineSpec, me: Identity) -> dict[Role, dict[str, Any]]:
    wanted = {Role.BOOTSTRAP: spec.bootstrap_spec, Role.INFRASTRUCTURE: spec.infrastructure_spec}
    return {role: _provided(role, provider, spec, me) for role, provider in wanted.items()}


def _provided(role: Role, provider: ProviderSpec, spec: ScheduledMachineSpec, me: Identity) -> dict[str, Any]:
    body = {
        "apiVersion": provider.api_version,
        "kind": provider.kind,
        "metadata": {
            "name": child_name(me.name, role),
            "namespace": me.namespace,
            "labels": owned_labels(spec, me),
            "annotations": {names.ANNOTATION_SPEC_HASH: digest(_envelope(provider))},
            "ownerReferences": [owned_by(me, controller=False)],
        },
    }
    # Some kinds take no spec, but refuse an empty one: KubeadmConfig v1beta2 wants at least one property in it.
    return {**body, "spec": provider.spec} if provider.spec else body


def _machine(
    spec: ScheduledMachineSpec,
    me: Identity,
    cluster: Cluster,
    contract: Contract,
    parts: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> dict[str, Any]:
    bootstrap, infrastructure = parts
    labels, annotations = template.at_creation(spec)
    return {
        "apiVersion": f"{names.CAPI_GROUP}/{contract}",
        "kind": "Machine",
        "metadata": {
            "name": child_name(me.name, Role.MACHINE),
            "namespace": me.namespace,
            "labels": {**labels, **owned_labels(spec, me)},
            "annotations": {**annotations, names.ANNOTATION_SPEC_HASH: spec_hash(spec)},
            "ownerReferences": [owned_by(me, controller=True), _cluster_owner(cluster, contract)],
        },
        "spec": {
            "clusterName": spec.cluster_name,
            "bootstrap": {"configRef": contracts.reference(contract, bootstrap, me.namespace)},
            "infrastructureRef": contracts.reference(contract, infrastructure, me.namespace),
            **template.fixed_at_creation(spec),
            **contracts.timeouts(contract, spec.node_drain_timeout, spec.node_drain_timeout),
        },
    }


def owned_labels(spec: ScheduledMachineSpec, me: Identity) -> dict[str, str]:
    """Labels that are ours to say, on all three objects."""
    return {
        names.LABEL_CLUSTER_NAME: spec.cluster_name,
        names.LABEL_OWNER: me.name,
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
    }


def owned_by(me: Identity, *, controller: bool) -> dict[str, Any]:
    """The owner reference that makes an object the ScheduledMachine's."""
    owner = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": me.name, "uid": me.uid}
    return {**owner, "controller": True} if controller else owner


def _cluster_owner(cluster: Cluster, contract: Contract) -> dict[str, Any]:
    api_version = f"{names.CAPI_GROUP}/{contract}"
    return {"apiVersion": api_version, "kind": "Cluster", "name": cluster.name, "uid": cluster.uid}


def repairs(spec: ScheduledMachineSpec, world: World) -> tuple[Patch, ...]:
    """Patches for labels, annotations, timeouts, owners and marks that differ from what they should be."""
    found = [_repair_machine(spec, world), _unmark(world.our_machine)]
    found += [_repair_metadata(child, spec, world.me) for child in (world.bootstrap, world.infrastructure)]
    return tuple(patch for patch in found if patch)


def _repair_machine(spec: ScheduledMachineSpec, world: World) -> Patch | None:
    machine, contract = world.our_machine, world.contract
    if machine is None or contract is None or machine.deleting or world.cluster is None:
        return None
    child, wanted = machine.child, template.on_machine(spec, machine.child.annotations)
    labels = _missing({**wanted.labels, **owned_labels(spec, world.me)}, child.labels)
    annotations = {**wanted.annotations, **contracts.drained_again(child.annotations)}
    body: dict[str, Any] = _metadata(labels, _missing(annotations, child.annotations))
    late = contracts.at_least_a_second(spec.node_drain_timeout)
    if (machine.drain_seconds, machine.detach_seconds) != (late, late):
        body["spec"] = contracts.timeouts(contract, timedelta(seconds=late), timedelta(seconds=late))
    owners = _machine_owners(machine, world, contract)
    if owners:
        body.setdefault("metadata", {})["ownerReferences"] = owners
    return _patch(child, body)


def _unmark(machine: Machine | None) -> Patch | None:
    """Remove the mark of a health check that succeeds again; else it would count for the next failure."""
    if machine is None or machine.deleting or machine.unmarked_status is None:
        return None
    child = machine.child
    return Patch(
        role=child.role,
        name=child.name,
        uid=child.uid,
        body={"status": machine.unmarked_status},
        why="the mark of a health check",
        resource_version=child.resource_version,
        subresource="status",
    )


def _machine_owners(machine: Machine, world: World, contract: Contract) -> list[dict[str, Any]] | None:
    """The full owner list if one of the two that a Machine must have is missing, or ours is not the controller."""
    assert world.cluster is not None, "checked by the caller"  # noqa: S101 - narrows the type
    wanted = {world.me.uid, world.cluster.uid}
    ours_controls = any(owner.controller for owner in machine.child.owners if owner.uid == world.me.uid)
    if ours_controls and wanted <= {owner.uid for owner in machine.child.owners}:
        return None
    if any(owner.controller and owner.uid != world.me.uid for owner in machine.child.owners):
        return None  # another controller owns it, and its owner reference is not ours to remove
    others = [owner.raw for owner in machine.child.owners if owner.uid not in wanted]
    return [owned_by(world.me, controller=True), _cluster_owner(world.cluster, contract), *map(dict, others)]


def _repair_metadata(child: Child | None, spec: ScheduledMachineSpec, me: Identity) -> Patch | None:
    if child is None or not child.ours or child.deleting:
        return None
    body = _metadata(_missing(owned_labels(spec, me), child.labels), {})
    # With a controller reference of ours CAPI could never become the controller.
    if [owner.controller for owner in child.owners if owner.uid == me.uid] != [False]:
        owners = [dict(owner.raw) for owner in child.owners if owner.uid != me.uid]
        body.setdefault("metadata", {})["ownerReferences"] = [*owners, owned_by(me, controller=False)]
    return _patch(child, body)


def _missing(wanted: Mapping[str, str | None], there: Mapping[str, str]) -> dict[str, str | None]:
    """What a merge patch must say; None takes a key away."""
    return {key: value for key, value in wanted.items() if there.get(key) != value}


def _metadata(labels: Mapping[str, str | None], annotations: Mapping[str, str | None]) -> dict[str, Any]:
    parts = {"labels": dict(labels), "annotations": dict(annotations)}
    filled = {name: value for name, value in parts.items() if value}
    return {"metadata": filled} if filled else {}


def _patch(child: Child, body: dict[str, Any]) -> Patch | None:
    if not body:
        return None
    metadata = body.get("metadata", {})
    return Patch(
        role=child.role,
        name=child.name,
        uid=child.uid,
        body=body,
        why=", ".join([*metadata, *(("timeouts",) if "spec" in body else ())]),
        resource_version=child.resource_version if "ownerReferences" in metadata else None,
    )
