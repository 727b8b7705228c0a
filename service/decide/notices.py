"""What is worth a notification, as data: drawn from the Events of a pass, and the announcement of a close.

`service.notify` sends them, out of the cluster: a message that may quote a provider, an API server or the spec is
replaced by what its reason means. An id follows from the object, its window and what happened, so that a notice which
is sent twice, such as after a restart, can be recognized.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from crds.base import rfc3339
from crds.schedule import EVER
from crds.status import Phase, ScheduledMachineStatus
from service.decide.condition_types import ConditionType
from service.decide.effective import current_window
from service.decide.openings import latest_window
from service.decide.plan import Event
from service.decide.reasons import Reason
from service.decide.situation import Situation

TEXT_MAX: Final = 1024


class NoticeType(StrEnum):
    """What a notification is about."""

    OPENING = "opening"
    READY = "ready"
    NOT_READY_IN_TIME = "not-ready-in-time"
    CLOSING = "closing"
    DRAINED = "drained"
    CUT_SHORT = "cut-short"
    RECLAIM = "reclaim"
    OVERRIDE = "override"
    ERROR = "error"


_OF_REASON: Final[Mapping[str, NoticeType]] = {
    Reason.SCHEDULE_ACTIVATED: NoticeType.OPENING,
    Reason.MACHINE_READY: NoticeType.READY,
    Reason.NOT_READY_IN_TIME: NoticeType.NOT_READY_IN_TIME,
    Reason.NODE_DRAINED: NoticeType.DRAINED,
    Reason.DRAIN_TIMED_OUT: NoticeType.CUT_SHORT,
    Reason.EMERGENCY_RECLAIM: NoticeType.RECLAIM,
    Reason.OVERRIDE_BEGAN: NoticeType.OVERRIDE,
}
_IN_OWN_WORDS: Final = frozenset(
    {
        Reason.CALENDAR_NOT_FOUND,
        Reason.CAPI_NOT_INSTALLED,
        Reason.CLASS_NOT_FOUND,
        Reason.CLUSTER_DELETING,
        Reason.CLUSTER_NOT_FOUND,
        Reason.DELETION_PAUSED,
        Reason.FINALIZER_RELEASED,
        Reason.FOREIGN_OBJECT,
        Reason.HOST_CONFLICT,
        Reason.KILL_SWITCH,
        Reason.WINDOW_SKIPPED,
    }
)
"""Problems whose messages consist of our own words and of names of objects."""
_OF_A_MACHINE: Final = (
    NoticeType.READY,
    NoticeType.NOT_READY_IN_TIME,
    NoticeType.DRAINED,
    NoticeType.CUT_SHORT,
    NoticeType.RECLAIM,
)
"""Which can happen once for each Machine of a window."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One notification."""

    id: str
    type: NoticeType
    namespace: str
    name: str
    at: datetime
    data: dict[str, Any]


def notices_of(s: Situation, after: ScheduledMachineStatus, events: Iterable[Event]) -> Iterator[Notice]:
    """The notices of one pass, from the Events that it records."""
    for event in events:
        kind = _OF_REASON.get(event.reason)
        if kind is None and event.warning:
            kind = NoticeType.ERROR
        if kind is not None:
            yield _notice(s, after, kind, event.reason, _message(kind, event))


def _message(kind: NoticeType, event: Event) -> str:
    """What may leave the cluster: the sentence of the Event, or else what its reason means."""
    reason = event.reason
    if kind not in (NoticeType.ERROR, NoticeType.NOT_READY_IN_TIME) or reason in _IN_OWN_WORDS:
        return event.message
    meaning = reason.meaning if isinstance(reason, Reason) else "The provider reports that the Machine has failed."
    return f"{meaning} The message is in the status of the ScheduledMachine."


def announcement_due(after: ScheduledMachineStatus, lead: timedelta) -> datetime | None:
    """When the close of the window is announced; None if none is, such as in a dry run."""
    serves = after.phase in (Phase.ACTIVE, Phase.PENDING) and after.machine_ref is not None
    stays = any(each.type == ConditionType.DRY_RUN for each in after.conditions)
    if not lead or not serves or stays or after.next_cleanup is None:
        return None
    return after.next_cleanup - lead


def announcement(s: Situation, after: ScheduledMachineStatus) -> Notice:
    """The notice that the window closes soon."""
    closes = after.next_cleanup or s.now
    minutes = max(0, round((closes - s.now) / timedelta(minutes=1)))
    message = f"The machine is shut down in {minutes} minutes, at {closes:%Y-%m-%d %H:%M} UTC."
    return _notice(s, after, NoticeType.CLOSING, "Closing", message, detail=rfc3339(closes))


def _notice(
    s: Situation, after: ScheduledMachineStatus, kind: NoticeType, reason: str, message: str, detail: str | None = None
) -> Notice:
    me = s.world.me
    window = _opening(s) if kind is NoticeType.OPENING else _window(s, after)
    opened = rfc3339(window) if window else "always"
    distinct = detail if detail is not None else _detail(after, kind, reason)
    return Notice(
        id=sha256("|".join((me.uid, opened, kind, distinct)).encode()).hexdigest()[:32],
        type=kind,
        namespace=me.namespace,
        name=me.name,
        at=s.now,
        data={"reason": reason, "message": message[:TEXT_MAX], **_facts(s, after, opened)},
    )


def _window(s: Situation, after: ScheduledMachineStatus) -> datetime | None:
    """The opening of the window that the machine serves, else of the open or next one."""
    return latest_window(s.world) or (after.window.opens if after.window else None)


def _opening(s: Situation) -> datetime | None:
    """The opening of the schedule's own window; None if that was always open.

    The machine of an earlier window may still be there, and an override may keep this one closed.
    """
    window = current_window(s.intent.schedule, s.now)
    return window.opens if window is not None and window.opens != EVER else None


def _detail(after: ScheduledMachineStatus, kind: NoticeType, reason: str) -> str:
    """What tells two notices of one type and window apart."""
    machine = (after.machine_ref.uid if after.machine_ref else None) or ""
    if kind in _OF_A_MACHINE:
        return machine
    if kind is NoticeType.OVERRIDE:
        return after.override.name if after.override else ""
    return f"{reason}|{machine}|{_began(after, reason)}" if kind is NoticeType.ERROR else ""


def _began(after: ScheduledMachineStatus, reason: str) -> str:
    """When a condition with this reason changed last, so that an error that comes back is another."""
    times = [condition.last_transition_time for condition in after.conditions if condition.reason == reason]
    return rfc3339(max(times)) if times else ""


def _closes(s: Situation, after: ScheduledMachineStatus, opened: str) -> str | None:
    """When the window closes that the notice is about; the status may name the next one already."""
    window = after.window
    if window is None or window.closes is None:
        return None
    is_next = window.opens is not None and window.opens > s.now and rfc3339(window.opens) != opened
    return None if is_next else rfc3339(window.closes)


def _facts(s: Situation, after: ScheduledMachineStatus, opened: str) -> dict[str, Any]:
    """Names and times; nothing of the spec, which may hold what is not for everyone."""
    override = after.override
    found = {
        "namespace": s.world.me.namespace,
        "name": s.world.me.name,
        "uid": s.world.me.uid,
        "cluster": s.intent.cluster_name,
        "phase": after.phase.value if after.phase else None,
        "node": after.node_ref.name if after.node_ref else None,
        "windowOpened": None if opened == "always" else opened,
        "closes": _closes(s, after, opened),
        "override": {"name": override.name, "state": override.state.value, "by": override.by} if override else None,
    }
    return {key: value for key, value in found.items() if value is not None}
