"""What was observed, frozen: with the user's intent and the time the only input of `decide`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from crds.status import ScheduledMachineStatus
from service.decide.drainrules import DrainRules
from service.decide.drift import SpecChange
from service.decide.reasons import AnyReason, Reason


class Role(StrEnum):
    """The three objects that make up a machine."""

    BOOTSTRAP = "bootstrap"
    INFRASTRUCTURE = "infrastructure"
    MACHINE = "machine"


class Contract(StrEnum):
    """The versions of Cluster API's own types that we speak."""

    V1BETA1 = "v1beta1"
    V1BETA2 = "v1beta2"


@dataclass(frozen=True, slots=True)
class Owner:
    """One entry of `metadata.ownerReferences`."""

    uid: str
    controller: bool
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Child:
    """One of the three objects, as far as every kind has it."""

    role: Role
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    ours: bool
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owners: tuple[Owner, ...]
    spec: Mapping[str, Any]
    resource_version: str = ""
    generation: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A taint of the Node; key and effect identify it, the value may change."""

    key: str
    effect: str
    value: str = ""
    added: str = field(default="", compare=False)
    """`timeAdded`: kept, because other controllers count evictions from it."""

    @property
    def identity(self) -> tuple[str, str]:
        """What two taints must share to be the same taint."""
        return self.key, self.effect


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, as a reason and a sentence."""

    reason: AnyReason
    message: str


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """Why an object of ours could not be read, so that it counts neither as present nor as gone."""

    failure: Problem
    transient: bool = False
    """Whether it may be over at the next pass, so that the status does not report it yet."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The CAPI Machine beyond what `Child` says, read the same way from both contracts."""

    child: Child
    provider_id: str | None
    node_name: str | None
    failure: Problem | None
    infrastructure_ready: bool
    remediation_requested: bool
    """Whether a MachineHealthCheck failed and waits for its owner to replace it."""
    drain_seconds: int | None
    detach_seconds: int | None
    waiting_for: str | None
    unmarked_status: Mapping[str, Any] | None = None
    """Its status without the mark of a health check that succeeds again; None if it has no such mark."""

    @property
    def deleting(self) -> bool:
        """Whether it has a deletionTimestamp."""
        return self.child.deleting


@dataclass(frozen=True, slots=True)
class Node:
    """The Kubernetes Node in the workload cluster."""

    name: str
    uid: str
    resource_version: str
    provider_id: str | None
    ready: bool
    unschedulable: bool
    taints: tuple[Taint, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    unreachable: bool = False
    """Whether its kubelet does not report: pods that are deleted stay on the list."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the API server refused an eviction, and in how much real time the controller tries again."""

    reason: str
    retry_after: timedelta


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod on the Node, as far as the drain needs it."""

    namespace: str
    name: str
    uid: str
    controller_kind: str | None
    mirror: bool
    finished: bool
    deleting: bool
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    controller_name: str | None = None
    deleted_at: datetime | None = None
    """`deletionTimestamp`, which lies ahead while the pod's grace period runs."""
    orphaned: bool = False
    """Whether its controller is a DaemonSet that no longer exists."""
    namespace_labels: Mapping[str, str] | None = field(default=None, hash=False)
    """Of its Namespace; read only if a MachineDrainRule selects by them."""
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """The CAPI Cluster that the machine joins."""

    name: str
    uid: str
    deleting: bool
    paused: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether a machine may begin now, where a Cluster limits how many are on the way at once."""

    granted: bool
    limit: int
    ahead: int = 0
    """How many went first when it began to wait."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What the Cluster's limits allow this machine; None without a limit."""

    provisioning: Turn | None = None
    draining: Turn | None = None


@dataclass(frozen=True, slots=True)
class Reachability:
    """Whether the workload cluster can be reached, and if not, why."""

    reachable: bool
    reason: AnyReason = Reason.REACHABLE
    message: str = ""


@dataclass(frozen=True, slots=True)
class ReclaimAgent:
    """The agent on our Node as last observed; the problem says what keeps it from working."""

    commands: tuple[str, ...] | None = None
    """The commands in its ConfigMap; None without one."""
    problem: Problem | None = None
    installed: bool = True
    """Whether the namespace for the ConfigMap exists."""
    requeue_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class HostConflict:
    """Another ScheduledMachine that has the host, or a better claim to it."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The ScheduledMachine's own metadata."""

    namespace: str
    name: str
    uid: str
    generation: int
    deleting_since: datetime | None
    finalized: bool
    paused: bool
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """Everything that was seen at one moment."""

    me: Identity
    status: ScheduledMachineStatus
    contract: Contract | None
    cluster: Cluster | None
    bootstrap: Child | None = None
    infrastructure: Child | None = None
    machine: Machine | None = None
    workload: Reachability | None = None
    node: Node | None = None
    pods: tuple[Pod, ...] | None = None
    others_on_node: frozenset[str] = frozenset()
    """Uids of other ScheduledMachines whose Machines have the same providerID, and so the same Node."""
    host: str | None = None
    """Identifies the host of our Machine, or of the one that would be created now."""
    drain_rules: DrainRules = field(default_factory=DrainRules)
    pods_requeue_after: timedelta | None = None
    """In real time: when to list pods and rules again, if no watch reports their changes; None if one does."""
    host_conflict: HostConflict | None = None
    spec_changes: tuple[SpecChange, ...] | None = ()
    """What others changed in our provider objects; None if that is not known at present."""
    reclaim_agent: ReclaimAgent | None = None
    other_operators_machine: str | None = None
    """A Machine that we own under a name that we do not use: another operator created it for the same host."""
    enabled_by: str | None = None
    """The field manager that enabled the schedule last; read only after a reclaim has disabled it."""
    acknowledged_reclaims: bool = False
    """Whether a user has to acknowledge a reclaim before the machine returns; a setting of the operator."""
    unreadable: Mapping[Role, ReadFailure] = field(default_factory=dict)
    """Objects that could not be read; they count neither as present nor as gone."""
    turns: Turns = Turns()
    dry_run: bool = False
    """Whether the controller only reports what it would do because of the schedule."""

    @property
    def paused(self) -> bool:
        """Whether the ScheduledMachine or its Cluster is paused."""
        return self.me.paused or (self.cluster is not None and self.cluster.paused)

    def child(self, role: Role) -> Child | None:
        """The object in that role, of any owner."""
        if role is Role.MACHINE:
            return self.machine.child if self.machine else None
        return self.bootstrap if role is Role.BOOTSTRAP else self.infrastructure

    @property
    def children(self) -> tuple[Child, ...]:
        """All that exist under our names and are ours, the Machine first."""
        found = (self.child(role) for role in (Role.MACHINE, Role.INFRASTRUCTURE, Role.BOOTSTRAP))
        return tuple(child for child in found if child is not None and child.ours)

    @property
    def foreign(self) -> tuple[Child, ...]:
        """Objects under our names that belong to other owners."""
        found = (self.child(role) for role in Role)
        return tuple(child for child in found if child is not None and not child.ours)

    @property
    def our_machine(self) -> Machine | None:
        """The Machine, if it is ours."""
        return self.machine if self.machine and self.machine.child.ours else None

    @property
    def machine_unknown(self) -> bool:
        """Whether a Machine existed and cannot be read now, so that it may or may not be gone."""
        return Role.MACHINE in self.unreadable or (self.contract is None and self.status.machine_ref is not None)

    @property
    def all_gone(self) -> bool:
        """Whether nothing of ours is left, for certain."""
        return not self.children and not self.unreadable and not self.machine_unknown
