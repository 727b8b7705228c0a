"""What to do next, as data: a phase to report, an ordered tuple of actions, an instant to look again.

`service.act` performs the actions; each is safe to repeat, so a plan cut short by a crash is simply made again.
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
    """Make sure that we are asked before the ScheduledMachine disappears."""


@dataclass(frozen=True, slots=True)
class ReleaseFinalizer:
    """Let the ScheduledMachine go."""


@dataclass(frozen=True, slots=True)
class RecordShutdown:
    """Store when the shutdown began, before anything is taken away; None forgets one before a new Machine is made."""

    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class Create:
    """Create one of the three objects."""

    role: Role
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Patch:
    """Bring metadata or timeouts of one of our objects up to date; `why` names what was off."""

    role: Role
    name: str
    uid: str
    body: Mapping[str, Any]
    why: str
    resource_version: str | None = None
    """Set where a list is replaced whole: nobody may have added to it meanwhile."""
    subresource: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Ask for the deletion of one of our objects."""

    role: Role
    name: str
    uid: str
    why: str
    undrained: bool = False
    """Whether pods were left behind because their time was up."""
    unchanged: bool = False
    """Whether it may go only as it was seen: a health check that has succeeded since keeps its Machine."""


@dataclass(frozen=True, slots=True)
class Cordon:
    """Keep new pods away from the Node, and remember that it was us: so only if nobody has written to it meanwhile."""

    node: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Undo a cordon of ours."""

    node: str
    uid: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask the API server to evict these pods; budgets may refuse."""

    pods: tuple[Pod, ...]
    grace_seconds: int | None = None
    """None: each pod's own."""


@dataclass(frozen=True, slots=True)
class ApplyTaints:
    """Write the whole taint list, on condition that the Node has not changed since it was read."""

    node: str
    uid: str
    resource_version: str
    taints: tuple[Taint, ...]
    note: str
    """Which of them are ours, for the Node's annotation."""


@dataclass(frozen=True, slots=True)
class RecordRemediation:
    """Store that an unhealthy Machine is about to be replaced, so that it does not happen too often."""

    count: int
    at: datetime
    machine_uid: str


@dataclass(frozen=True, slots=True)
class RecordReclaim:
    """Store that the Node was asked back, before anything is done about it: Cluster API deletes the request too."""

    reclaim: Reclaim


@dataclass(frozen=True, slots=True)
class ForceDrain:
    """Delete the Node's pods without grace, as far as that works; never fails."""

    node: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class DisableSchedule:
    """Keep the machine from coming back by itself."""


@dataclass(frozen=True, slots=True)
class ClearReclaimRequest:
    """Take the agent's annotations off the Node."""

    node: str
    uid: str


@dataclass(frozen=True, slots=True)
class InstallAgent:
    """Have the agent run on the Node and tell it what to look for."""

    node: str
    uid: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveAgent:
    """Undo that."""

    node: str
    uid: str


BestEffort = ClearReclaimRequest | InstallAgent | RemoveAgent
"""What fails of these is tried again later and keeps nothing else from being done."""

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
    """An Event for the user, emitted once per happening."""

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
    """In real time: for what cannot be watched, such as a budget that may allow an eviction later."""
    backoff: bool = False
    """Whether nothing tells when what is in the way is gone: it is looked for again, ever more rarely."""
    problem: bool = False
    """Whether somebody must mend something: said once in a Warning event."""
    shutdown: datetime | None = None
    """When the shutdown under way began; None once there is none."""
    drain: Drain | None = None
    taints: TaintPlan | None = None
    agent_requeue_after: timedelta | None = None
    """In real time: the agent on the Node is not as it should be, and nothing tells when it will be."""
    final: bool = False
    """Whether the ScheduledMachine itself is being deleted."""
    reclaimed: bool = False
    """Whether an emergency reclaim is over."""
    reverted_by: str | None = None
    """The GitOps tool that enabled the schedule soon after a reclaim had disabled it, by its field manager."""


def earliest(*instants: datetime | None) -> datetime | None:
    """The earliest of the instants given."""
    return min((instant for instant in instants if instant is not None), default=None)
