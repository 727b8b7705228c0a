"""One ScheduledMachine in the words of a person: what it does, since when, what comes next, and what needs attention.

Pure: made from the object as stored, so that a list of thousands needs no other request.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from crds.base import rfc3339
from crds.partial import read_partial
from crds.schedulespec import DEFAULT_TIMEZONE
from crds.status import Condition, OverrideInForce, Phase, ScheduledMachineStatus
from crds.values import Zone
from service.decide.condition_types import ConditionType
from service.decide.reasons import Reason, Severity

UNSEEN: Final = "No operator has handled this object yet. Is the operator running, and does it watch this namespace?"
_LEAVING: Final = (Phase.SHUTTING_DOWN, Phase.TERMINATED, Phase.EMERGENCY_REMOVE, Phase.ERROR)
_CLOSING: Final = (Phase.ACTIVE, Phase.PENDING, Phase.ERROR)


@dataclass(frozen=True, slots=True)
class NextChange:
    """What happens next, such as `closes`, and when."""

    what: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Summary:
    """One ScheduledMachine."""

    namespace: str
    name: str
    cluster: str
    phase: str
    ready: bool
    reason: str
    message: str
    since: datetime | None
    """When `Ready` last changed."""
    schedule: str
    zone: Zone
    next: NextChange | None
    machine: str
    machine_phase: str
    node: str
    override: OverrideInForce | None
    held_up: str
    """What a shutdown waits for, such as pods that have not left; empty if none is under way."""
    attention: tuple[str, ...]
    """What a person should look at, each in a sentence."""
    status: ScheduledMachineStatus

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> "Summary":
        """From an object as stored, which may be invalid."""
        spec = read_partial(dict(raw))
        status = spec.status
        ready = condition(status, ConditionType.READY)
        return cls(
            namespace=spec.metadata.namespace,
            name=spec.metadata.name,
            cluster=spec.cluster_name,
            phase=status.phase.value if status.phase else "",
            ready=ready is not None and ready.status == "True",
            reason=ready.reason if ready else "",
            message=status.message or "",
            since=ready.last_transition_time if ready else None,
            schedule=spec.schedule.recurring.describe() if spec.schedule else status.schedule or "cannot be read",
            zone=spec.schedule.timezone if spec.schedule else DEFAULT_TIMEZONE,
            next=_without_leads(_next(status), status),
            machine=status.machine_ref.name if status.machine_ref else "",
            machine_phase=status.machine_phase.value if status.machine_phase else "",
            node=status.node_ref.name if status.node_ref else "",
            override=status.override,
            held_up=_held_up(status),
            attention=tuple(_attention(status)),
            status=status,
        )

    def without_details(self) -> "Summary":
        """For long lists: the status without its conditions and references takes a fraction of the memory."""
        return replace(self, status=_outline(self.status.phase, self.status.schedule))

    def to_json(self) -> dict[str, Any]:
        """For programs; absent values are left out."""
        found = {
            "namespace": self.namespace,
            "name": self.name,
            "cluster": self.cluster,
            "phase": self.phase,
            "ready": self.ready,
            "reason": self.reason,
            "message": self.message,
            "since": rfc3339(self.since) if self.since else None,
            "schedule": self.schedule,
            "timezone": str(self.zone),
            "next": {"what": self.next.what, "at": rfc3339(self.next.at)} if self.next else None,
            "machine": self.machine,
            "machinePhase": self.machine_phase,
            "node": self.node,
            "override": self.override.to_json() if self.override else None,
            "heldUp": self.held_up,
            "attention": list(self.attention),
        }
        return {name: value for name, value in found.items() if value not in (None, "", [])}


@lru_cache(maxsize=4096)
def _outline(phase: Phase | None, schedule: str | None) -> ScheduledMachineStatus:
    return ScheduledMachineStatus(phase=phase, schedule=schedule)


def condition(status: ScheduledMachineStatus, wanted: ConditionType) -> Condition | None:
    """The condition of a type, if the status has it."""
    return next((each for each in status.conditions if each.type == wanted), None)


def _next(status: ScheduledMachineStatus) -> NextChange | None:
    if status.phase is Phase.SHUTTING_DOWN and status.next_cleanup:
        return NextChange("closed" if status.waiting_since else "gone by", status.next_cleanup)
    in_service = status.in_schedule or status.override is not None
    if in_service and status.phase in _CLOSING and status.next_cleanup:
        return NextChange("closes", status.next_cleanup)
    return NextChange("opens", status.next_activation) if status.next_activation else None


def _without_leads(found: NextChange | None, status: ScheduledMachineStatus) -> NextChange | None:
    """The ends of the window itself: people plan by them, not by when the controller acts."""
    window, column = status.window, status.next_change or ""
    if found is None or window is None:
        return found
    if found.what == "opens" and column.startswith("opens") and window.opens:
        return NextChange("opens", window.opens)
    return NextChange("closes", window.closes) if found.what == "closes" and window.closes else found


def _held_up(status: ScheduledMachineStatus) -> str:
    drained = condition(status, ConditionType.DRAINED)
    if status.phase not in _LEAVING or drained is None or drained.status == "True":
        return ""
    return drained.message


def _attention(status: ScheduledMachineStatus) -> Iterable[str]:
    if status.phase is None:
        yield UNSEEN
        return
    warned = {each.message or each.reason: None for each in status.conditions if _warns(each)}
    if status.phase is Phase.ERROR and not warned:
        yield status.message or "The controller reports an error."
    yield from warned


def _warns(found: Condition) -> bool:
    """Whether a reason is one that a Warning reports."""
    known = Reason._value2member_map_.get(found.reason)
    return isinstance(known, Reason) and known.severity is Severity.WARNING
