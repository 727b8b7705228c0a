"""What to do next, as data: a phase to report, an ordered tuple of actions, an instant to requeue at.

`service.act` performs the actions; each is safe to repeat, so after a crash the plan is simply made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crds.status import Phase, Reclaim
from service.decide.drain import Drain
from service.decide.reasons import AnyReason, Severity
from service.decide.taints import TaintPlan
from service.decide.world import Pod, Role, Taint


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Add our finalizer, so that the ScheduledMachine stays until its machine is removed."""


@dataclass(frozen=True, slots=True)
class ReleaseFinalizer:
    """Remove our finalizer, so that the API server deletes the ScheduledMachine."""


@dataclass(frozen=True, slots=True)
class RecordShutdown:
    """Store when the shutdown started, before anything is removed; None clears it before a new Machine is created."""

    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class Create:
    """Create one of the three objects."""

    role: Role
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Patch:
    """Bring metadata or timeouts of one of our objects up to date; `why` names what differed."""

    role: Role
    name: str
    uid: str
    body: Mapping[str, Any]
    why: str
    resource_version: str | None = None
    """Set if a list is replaced as a whole: another writer may have added to it."""
    subresource: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one of our objects."""

    role: Role
    name: str
    uid: str
    why: str
    undrained: bool = False
    """Whether pods are still on the Node because the time for the drain is over."""
    unchanged: bool = False
    """Whether to delete only the version that was read: if its health check has succeeded since, the Machine stays."""


@dataclass(frozen=True, slots=True)
class Cordon:
    """Make the Node unschedulable and note on it that we did; only in the version that was read."""

    node: str
    uid: str
    resource_version: str
    closed: bool = False
    """Whether the window has closed, so that the Node's note of it goes with the same write."""


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Undo a cordon of ours."""

    node: str
    uid: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict these pods through the eviction API; budgets may refuse."""

    pods: tuple[Pod, ...]
    grace_seconds: int | None = None
    """None: each pod's own."""


@dataclass(frozen=True, slots=True)
class ApplyTaints:
    """Write the whole taint list, if the Node has not changed since it was read."""

    node: str
    uid: str
    resource_version: str
    taints: tuple[Taint, ...]
    note: str
    """Which of them are ours, for the Node's annotation."""
    closes_at: str | None = None
    """When the window closes, if that is known."""


@dataclass(frozen=True, slots=True)
class AnnotateClose:
    """Note on the Node when the window closes after which the machine leaves; None removes the note."""

    node: str
    uid: str
    closes_at: str | None


@dataclass(frozen=True, slots=True)
class RecordRemediation:
    """Store that an unhealthy Machine is being replaced, which limits how often that happens."""

    count: int
    at: datetime
    machine_uid: str


@dataclass(frozen=True, slots=True)
class RecordReclaim:
    """Store the reclaim request before acting on it: Cluster API deletes the Node, and the request with it."""

    reclaim: Reclaim


@dataclass(frozen=True, slots=True)
class ForceDrain:
    """Delete the Node's pods without grace, as far as possible; never fails."""

    node: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class DisableSchedule:
    """Set `spec.schedule.enabled` to false, so that the machine does not return to service by itself."""

    unacknowledged_since: datetime | None = None
    """If set, the same write also notes that a user has to acknowledge the reclaim."""


@dataclass(frozen=True, slots=True)
class ClearReclaimRequest:
    """Remove the agent's annotations from the Node."""

    node: str
    uid: str


@dataclass(frozen=True, slots=True)
class InstallAgent:
    """Label the Node for the agent's DaemonSet and write its list of commands."""

    node: str
    uid: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveAgent:
    """Remove the label and the list of commands."""

    node: str
    uid: str


BestEffort = ClearReclaimRequest | InstallAgent | RemoveAgent | AnnotateClose
"""If one of these fails, the rest of the plan goes on, and it is tried again later."""

Action = (
    AddFinalizer
    | ReleaseFinalizer
    | RecordShutdown
    | RecordRemediation
    | Create
    | Patch
    | Delete
    | Cordon
    | Uncordon
    | Evict
    | ApplyTaints
    | RecordReclaim
    | ForceDrain
    | DisableSchedule
    | BestEffort
)


@dataclass(frozen=True, slots=True)
class Event:
    """An Event for the user, emitted once each time something happens."""

    reason: AnyReason
    message: str

    @property
    def severity(self) -> Severity:
        """Normal or Warning, as the reason says."""
        return self.reason.severity

    @property
    def warning(self) -> bool:
        """Whether it asks the user to act."""
        return self.severity is Severity.WARNING


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision for one ScheduledMachine at one instant."""

    phase: Phase
    reason: AnyReason
    message: str
    actions: tuple[Action, ...] = ()
    requeue_at: datetime | None = None
    """In the time of the schedule."""
    requeue_after: timedelta | None = None
    """In real time: for changes that no watch reports, such as a budget that may allow an eviction later."""
    backoff: bool = False
    """Whether to requeue with back-off, because no watch reports the end of the problem."""
    problem: bool = False
    """Whether a person must correct something; a Warning Event says so once."""
    shutdown: datetime | None = None
    """When the shutdown in progress started; None if there is none."""
    drain: Drain | None = None
    taints: TaintPlan | None = None
    agent_requeue_after: timedelta | None = None
    """In real time: the agent on the Node is not ready, and no watch reports when it is."""
    deleting: bool = False
    """Whether the ScheduledMachine itself is being deleted."""
    reclaimed: bool = False
    """Whether an emergency reclaim is over."""
    reverted_by: str | None = None
    """The GitOps tool that enabled the schedule soon after a reclaim had disabled it, by its field manager."""


def earliest(*instants: datetime | None) -> datetime | None:
    """The earliest of the instants given."""
    return min((instant for instant in instants if instant is not None), default=None)
