"""Specs, worlds and their parts with sensible defaults, for tests that care about one detail at a time.

The default schedule is Monday to Friday, 09:00 to 18:00 UTC; `MORNING` and `EVENING` lie inside and outside of it.
"""

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from crds import names
from crds.providers import DEFAULT_POLICY
from crds.scheduledmachine import ScheduledMachineSpec
from crds.status import NodeReference, ObjectReference, ScheduledMachineStatus
from service.decide import manifests
from service.decide.intent import Intent, read_intent, valid
from service.decide.reasons import ProviderReason, Reason
from service.decide.situation import Situation
from service.decide.world import (
    Child,
    Cluster,
    Contract,
    Identity,
    Machine,
    Node,
    Owner,
    Pod,
    Problem,
    Reachability,
    Role,
    Taint,
    World,
)

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
OPENS = MONDAY + timedelta(hours=9)
MORNING = MONDAY + timedelta(hours=10)
CLOSES = MONDAY + timedelta(hours=18)
EVENING = MONDAY + timedelta(hours=19)
TOMORROW = OPENS + timedelta(days=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
GRACE = 5 * MINUTE

UID = "uid-of-the-scheduledmachine"
CLUSTER_UID = "uid-of-the-cluster"
PROVIDER_ID = "remote://192.0.2.7"

SPEC: dict[str, Any] = {
    "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
    "bootstrapSpec": {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
        "kind": "K0sWorkerConfig",
        "spec": {"version": "v1.30.0+k0s.0"},
    },
    "infrastructureSpec": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "RemoteMachine",
        "spec": {"address": "192.0.2.7", "port": 22},
    },
    "clusterName": "prod",
}


def raw_spec(**changes: Any) -> dict[str, Any]:
    """A spec as stored; `schedule` is merged, everything else replaces."""
    changes = dict(changes)
    spec = deepcopy(SPEC)
    spec["schedule"].update(changes.pop("schedule", {}))
    return {**spec, **changes}


def spec(**changes: Any) -> ScheduledMachineSpec:
    return spec_of(raw_spec(**changes))


def spec_of(raw: dict[str, Any]) -> ScheduledMachineSpec:
    return ScheduledMachineSpec.parse(raw)


def intent(**changes: Any) -> Intent:
    return valid(spec(**changes))


def stored(raw: dict[str, Any]) -> dict[str, Any]:
    """A whole object as the API server gives it, around a raw spec."""
    metadata = {"name": "desk", "namespace": "team", "uid": UID, "generation": 1}
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": raw}


def legible(raw: dict[str, Any], status: dict[str, Any] | None = None) -> Intent:
    """The intent of a stored object, valid or not."""
    return read_intent({**stored(raw), "status": status or {}}, DEFAULT_POLICY)


def broken_spec(**changes: Any) -> dict[str, Any]:
    """Invalid as a whole, but with a schedule that can be read."""
    return raw_spec(priority="high", **changes)


def unreadable_spec(**changes: Any) -> dict[str, Any]:
    """Invalid with its schedule."""
    return raw_spec(schedule={"hoursOfDay": ["late"]}, **changes)


def identity(**changes: Any) -> Identity:
    me = Identity(
        namespace="team", name="desk", uid=UID, generation=1, deleting_since=None, finalized=True, paused=False
    )
    return replace(me, **changes)


def cluster(**changes: Any) -> Cluster:
    return replace(Cluster(name="prod", uid=CLUSTER_UID, deleting=False, paused=False), **changes)


def child(role: Role, **changes: Any) -> Child:
    """A child of ours as it was created."""
    made = {one.role: one.manifest for one in manifests.creations(spec(), world())}[role]
    metadata = made["metadata"]
    built = Child(
        role=role,
        api_version=made["apiVersion"],
        kind=made["kind"],
        namespace="team",
        name=metadata["name"],
        uid=f"uid-of-{metadata['name']}",
        ours=True,
        deleting=False,
        labels=metadata["labels"],
        annotations=metadata.get("annotations", {}),
        owners=tuple(Owner(one["uid"], one.get("controller", False), one) for one in metadata["ownerReferences"]),
        spec=made["spec"],
    )
    return replace(built, **changes)


def machine(*, of: dict[str, Any] | None = None, **changes: Any) -> Machine:
    """A Machine that runs; `of` changes the object, the rest what is read from it."""
    running = Machine(
        child=child(Role.MACHINE, **(of or {})),
        provider_id=PROVIDER_ID,
        node_name="node-7",
        failure=None,
        infrastructure_ready=True,
        remediation_requested=False,
        drain_seconds=300,
        detach_seconds=300,
        waiting_for=None,
    )
    return replace(running, **changes)


def new_machine(**changes: Any) -> Machine:
    """A Machine that was just made."""
    return machine(**{"provider_id": None, "node_name": None, "infrastructure_ready": False, **changes})


FAILURE = Problem(reason=ProviderReason("InvalidConfiguration"), message="no such image")


def node(**changes: Any) -> Node:
    ready = Node(
        name="node-7",
        uid="uid-of-the-node",
        resource_version="100",
        provider_id=PROVIDER_ID,
        ready=True,
        unschedulable=False,
        taints=(),
        labels={},
        annotations={},
    )
    return replace(ready, **changes)


def cordoned_node(**changes: Any) -> Node:
    return node(**{"unschedulable": True, "annotations": {names.ANNOTATION_CORDONED: "true"}, **changes})


def pod(name: str = "web", **changes: Any) -> Pod:
    plain = Pod(
        namespace="apps",
        name=name,
        uid=f"uid-of-{name}",
        controller_kind="ReplicaSet",
        mirror=False,
        finished=False,
        deleting=False,
    )
    return replace(plain, **changes)


def taint(key: str = "workload", value: str = "batch", effect: str = "NoSchedule") -> Taint:
    return Taint(key, effect, value)


CONNECTED = Reachability(reachable=True)
DISCONNECTED = Reachability(reachable=False, reason=Reason.NO_ANSWER, message="connection refused")
UNLISTED = Reachability(reachable=False, reason=Reason.PODS_NOT_LISTED, message="too many requests")


def status(**fields: Any) -> ScheduledMachineStatus:
    return ScheduledMachineStatus(**fields)


def reference(role: Role) -> ObjectReference:
    made = child(role)
    return ObjectReference(
        api_version=made.api_version, kind=made.kind, name=made.name, namespace=made.namespace, uid=made.uid
    )


def running_status(**fields: Any) -> ScheduledMachineStatus:
    """The status of a machine that runs."""
    known = {
        "machine_ref": reference(Role.MACHINE),
        "node_ref": NodeReference(name="node-7", uid="uid-of-the-node"),
        "provider_id": PROVIDER_ID,
    }
    return status(**{**known, **fields})


def world(**seen: Any) -> World:
    """Nothing but a Cluster."""
    empty = World(me=identity(), status=status(), contract=Contract.V1BETA2, cluster=cluster())
    return replace(empty, **seen)


def running_world(**seen: Any) -> World:
    """All three children, a Ready Node, no pods looked at."""
    parts: dict[str, Any] = {
        "status": running_status(),
        "bootstrap": child(Role.BOOTSTRAP),
        "infrastructure": child(Role.INFRASTRUCTURE),
        "machine": machine(),
        "workload": CONNECTED,
        "node": node(),
    }
    return world(**{**parts, **seen})


def draining_world(*pods: Pod, since: datetime = CLOSES, **seen: Any) -> World:
    """A shutdown under way, its pods looked at."""
    parts = {"status": running_status(shutdown_started_at=since), "node": cordoned_node(), "pods": pods}
    return running_world(**{**parts, **seen})


def leaving_world(since: datetime | None = CLOSES, **seen: Any) -> World:
    """A Machine whose deletion was asked for."""
    parts = {"status": running_status(shutdown_started_at=since), "machine": machine(of={"deleting": True})}
    return running_world(**{**parts, **seen})


def situation(now: datetime = MORNING, *, of: Intent | None = None, seen: World | None = None) -> Situation:
    return Situation.at(of or intent(), seen or running_world(), now)
