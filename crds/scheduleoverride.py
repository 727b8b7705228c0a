"""The ScheduleOverride: for a time, machines are open or closed in spite of their schedules."""

from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from crds import cel, fields
from crds.base import Instant, Lax, Model, StoredStatus, map_list
from crds.overrides import OverrideState
from crds.selector import Selector
from crds.status import Condition

IMMUTABLE: Final = ("machines", "selector", "state", "from", "reason")
"""The fields of the spec that cannot change: who edits `until` extends or shortens what was asked for, nothing else."""
FIXED_MESSAGE: Final = "cannot change; delete this override and create another"

TARGET: Final[cel.CelRule] = {
    "rule": "(has(self.machines) && size(self.machines) > 0) != has(self.selector)",
    "message": "needs either machines, with at least one name, or selector",
}
ENDS: Final[cel.CelRule] = {
    "rule": "!has(self.from) || timestamp(self.until) > timestamp(self.from)",
    "message": "must be after from",
    "fieldPath": ".until",
}


def _same(field: str) -> str:
    """Says that a field did not change; without optional values, whose comparison exceeds the API server's budget."""
    return f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"


REQUESTED_BY: Final[cel.CelRule] = {
    "rule": f"self.until != oldSelf.until || {_same('requestedBy')}",
    "message": "changes only together with until, to the user who changes that",
    "fieldPath": ".requestedBy",
}


def _fixed(field: str) -> cel.CelRule:
    return {"rule": _same(field), "message": FIXED_MESSAGE, "fieldPath": f".{field}"}


RULES: Final = (TARGET, ENDS, *(_fixed(field) for field in IMMUTABLE), REQUESTED_BY)


class OverrideSpec(Model):
    """Which machines are in service or out of it, and until when. Only `until` can be changed later."""

    model_config = ConfigDict(json_schema_extra=cel.validations(RULES))

    machines: fields.MachineNames = Field(
        default=(),
        description="Names of ScheduledMachines of the same namespace; they need not exist yet. Either this or "
        "selector.",
    )
    selector: Selector | None = Field(
        default=None,
        description="Selects ScheduledMachines of the same namespace by their labels. Either this or machines.",
    )
    state: Annotated[OverrideState, Lax] = Field(
        description="Open: in service. Closed: out of service. Scheduled: what the schedule says, in spite of older "
        "overrides."
    )
    begins: fields.OptionalMoment | None = Field(
        default=None, alias="from", description="When it begins, such as 2026-11-20T18:00:00Z. Absent: at once."
    )
    until: fields.Moment = Field(
        description="When it ends, such as 2026-11-20T22:00:00Z; at most 31 days after status.acceptedAt, if the "
        "operator is not configured otherwise."
    )
    reason: fields.OverrideReason | None = Field(default=None, description="The reason, for people to read.")
    requested_by: fields.UserName | None = Field(
        default=None,
        description="User who created it or last changed until. The webhook fills it in; another value is refused.",
    )


class OverrideStatus(StoredStatus):
    """Whether it counts and whether it decides. Written by the controller."""

    accepted_at: Instant | None = Field(
        default=None, description="When the controller first saw it; until is measured against this."
    )
    conditions: Annotated[tuple[Condition, ...], Lax] = Field(
        default=(),
        max_length=8,
        json_schema_extra=map_list("type"),
        description="Accepted: whether it counts. InForce: whether now lies between its begin and its end.",
    )
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status describes."
    )

    def condition(self, kind: str) -> Condition | None:
        """The condition of a type, if it is there."""
        return next((each for each in self.conditions if each.type == kind), None)


def begins_at(spec: OverrideSpec, created: datetime, accepted: datetime) -> datetime:
    """When an override begins: `from`, or at once, whichever of the two clocks is behind the other."""
    return spec.begins or min(created, accepted)


def in_days(longest: timedelta) -> str:
    """A limit in words, such as `31 days`."""
    days, rest = divmod(longest, timedelta(days=1))
    if rest:
        return f"{longest / timedelta(hours=1):g} hours"
    return "1 day" if days == 1 else f"{days} days"
