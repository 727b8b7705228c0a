"""The life of an override: whether it counts, whether it decides now, when that changes, when it is deleted. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from crds.base import rfc3339
from crds.overrides import Override
from crds.reasons import OverrideConditionReason as Reason
from crds.scheduleoverride import OverrideSpec, OverrideStatus, begins_at, in_days
from crds.status import Condition

KEPT: Final = timedelta(days=1)
"""How long an override stays after its end: for people to look at, and to tell when a window opened that follows it."""


@dataclass(frozen=True, slots=True)
class StoredOverride:
    """What the life of an override depends on; `spec` is None, and `problem` says why, if it cannot be read."""

    name: str
    created: datetime
    generation: int
    spec: OverrideSpec | None
    problem: str = ""
    keep: bool = False
    """Whether it is annotated to outlive its end."""
    deleting: bool = False


class OverrideOutlook(NamedTuple):
    """The status of an override now, and what the controller does with it."""

    status: OverrideStatus
    counts: Override | None
    """As the decision takes it; None if it was not accepted, or ended so long ago that it does not matter any more."""
    changes_at: datetime | None
    """When all of this will be something else."""
    delete: bool


def outlook(stored: StoredOverride, before: OverrideStatus, now: datetime, longest: timedelta) -> OverrideOutlook:
    """What becomes of an override; `before` is its stored status, which says when it was accepted."""
    moment = now.replace(microsecond=0)
    accepted_at = before.accepted_at or moment
    found = as_override(stored, accepted_at)
    refusal = _refusal(stored, accepted_at + longest, longest)
    standing = _standing(found if refusal is None else None, moment)
    drafts = (refusal or _Draft(Reason.IS_ACCEPTED), standing)
    status = OverrideStatus(
        accepted_at=accepted_at,
        conditions=tuple(_condition(each, stored.generation, before, moment) for each in drafts),
        observed_generation=stored.generation,
    )
    matters = found is not None and moment < found.ends + KEPT
    counts = found if refusal is None and not stored.deleting and matters else None
    # What is not stored yet does not count: another replica, or this one after a restart, could not know it.
    counts = counts if before.accepted_at is not None else None
    leaves = max(found.ends, accepted_at) + KEPT if found is not None else None
    return OverrideOutlook(status, counts, _next(found, leaves, moment), _is_due(stored, leaves, moment))


class _Draft(NamedTuple):
    reason: Reason
    message: str = ""


def as_override(stored: StoredOverride, accepted_at: datetime) -> Override | None:
    """The override as the decision takes it, if it is accepted; None if it cannot be read."""
    spec = stored.spec
    if spec is None:
        return None
    return Override(
        name=stored.name,
        state=spec.state,
        begins=begins_at(spec, stored.created, accepted_at),
        ends=spec.until,
        created=stored.created,
        requested_by=spec.requested_by or "",
        reason=spec.reason or "",
    )


def _refusal(stored: StoredOverride, limit: datetime, longest: timedelta) -> _Draft | None:
    """Why an override does not count; None if it does."""
    if stored.spec is None:
        return _Draft(Reason.INVALID, stored.problem)
    if stored.spec.until <= limit:
        return None
    message = (
        f"spec.until must be at most {in_days(longest)} after status.acceptedAt, {rfc3339(limit)}; "
        "set it to that or earlier"
    )
    return _Draft(Reason.TOO_LONG, message)


def _standing(override: Override | None, moment: datetime) -> _Draft:
    if override is None:
        return _Draft(Reason.NOT_ACCEPTED, "It does not count: see the condition Accepted.")
    if moment < override.begins:
        return _Draft(Reason.NOT_YET, f"It begins at {rfc3339(override.begins)}.")
    if moment >= override.ends:
        return _Draft(Reason.OVER, f"It ended at {rfc3339(override.ends)}.")
    return _Draft(Reason.IS_IN_FORCE, f"It ends at {rfc3339(override.ends)}.")


def _condition(draft: _Draft, generation: int, before: OverrideStatus, now: datetime) -> Condition:
    reason = draft.reason
    old = before.condition(reason.condition)
    since = old.last_transition_time if old is not None and old.status == reason.status else now
    return Condition.parse(
        {
            "type": reason.condition,
            "status": reason.status,
            "reason": reason.value,
            "message": draft.message,
            "lastTransitionTime": rfc3339(since),
            "observedGeneration": generation,
        }
    )


def _next(found: Override | None, leaves: datetime | None, moment: datetime) -> datetime | None:
    """The next of its begin, its end, when it does not matter any more, and when it is deleted."""
    if found is None or leaves is None:
        return None
    instants = (found.begins, found.ends, found.ends + KEPT, leaves)
    return min((each for each in instants if each > moment), default=None)


def _is_due(stored: StoredOverride, leaves: datetime | None, moment: datetime) -> bool:
    """Whether an override is to be deleted; one that cannot be read has no end, and stays.

    One that was over when it came stays for a day, too: a GitOps tool that has it in Git would create it at once again.
    """
    over = leaves is not None and moment >= leaves
    return over and not stored.keep and not stored.deleting
