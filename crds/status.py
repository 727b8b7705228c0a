"""What the controller reports, and the few durable facts it keeps, in `status`."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, WithJsonSchema

from crds.base import Instant, Lax, Model, atomic_list, map_list
from crds.history import History
from crds.leads import MAX_LEAD
from crds.overrides import OverrideState
from crds.values import format_duration, parse_duration

TEXT_MAX: Final = 32768


def _cut(given: Any) -> Any:
    """Other people's messages can be of any length; too long a one must not stop the report."""
    return given[: TEXT_MAX - 1] + "…" if isinstance(given, str) and len(given) > TEXT_MAX else given


Text = Annotated[str, BeforeValidator(_cut), Field(max_length=TEXT_MAX)]
Name = Annotated[str, Field(max_length=253)]


class Phase(StrEnum):
    """Where a ScheduledMachine is in its life; derived, reported, never read back to steer."""

    PENDING = "Pending"
    ACTIVE = "Active"
    SHUTTING_DOWN = "ShuttingDown"
    INACTIVE = "Inactive"
    DISABLED = "Disabled"
    TERMINATED = "Terminated"
    EMERGENCY_REMOVE = "EmergencyRemove"
    ERROR = "Error"


class MachinePhase(StrEnum):
    """Phase of the Cluster API Machine."""

    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    DELETING = "Deleting"
    FAILED = "Failed"


class Effect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(Model):
    """One aspect of the machine's state."""

    type: str = Field(max_length=316, description="Aspect that this condition is about, for example Ready.")
    status: ConditionStatus = Field(description="True, False or Unknown.")
    reason: str = Field(max_length=1024, description="Why, in one CamelCase word that programs can compare.")
    message: Text = Field(default="", description="Why, and what to do about it, for people.")
    last_transition_time: Instant = Field(description="When `status` last flipped.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this condition was computed from."
    )


class ObjectReference(Model):
    """A child that the controller made."""

    api_version: Name = Field(description="Its apiVersion.")
    kind: Name = Field(description="Its kind.")
    name: Name = Field(description="Its name.")
    namespace: Name = Field(description="Its namespace, which is the ScheduledMachine's own.")
    uid: str | None = Field(
        default=None, max_length=128, description="Its uid: another object of the same name has another."
    )


class NodeReference(Model):
    """The Node in the workload cluster."""

    api_version: Name = Field(default="v1", description="Always v1.")
    kind: Name = Field(default="Node", description="Always Node.")
    name: Name = Field(description="The Node's name.")
    uid: str | None = Field(default=None, max_length=128, description="The Node's uid; a new one is a re-registration.")


class AppliedTaint(Model):
    """A taint that the controller put on the Node and may therefore change or remove."""

    key: str = Field(max_length=317, description="Key of the taint.")
    value: str | None = Field(default=None, max_length=63, description="Value that was applied.")
    effect: Annotated[Effect, Lax] = Field(description="Effect of the taint.")


class Reclaim(Model):
    """An emergency reclaim under way, kept here because Cluster API deletes the Node along with the request."""

    requested_at: Instant = Field(description="When the request was first seen.")
    reason: Text = Field(default="", description="What the agent on the node saw.")
    node: Name = Field(default="", description="Node that asked.")
    machine_uid: str = Field(default="", max_length=128, description="Uid of the Machine that was running then.")
    disabled_at: Instant | None = Field(
        default=None, description="When the schedule was disabled, so that the machine does not come back by itself."
    )


class PastReclaim(Model):
    """An emergency reclaim that is over, kept for as long as the schedule is disabled because of it."""

    at: Instant = Field(description="When the schedule was disabled.")
    reason: Text = Field(default="", description="What the agent on the node saw.")
    node: Name = Field(default="", description="Node that asked.")


class Remediation(Model):
    """Replacements of unhealthy Machines in the current window, which grow rarer with each."""

    count: int = Field(ge=0, description="How many times the Machine was replaced.")
    at: Instant = Field(description="When it was last replaced.")
    machine_uid: str = Field(default="", max_length=128, description="Uid of the Machine that was replaced then.")


class WindowTimes(Model):
    """The window that is open, or else the next one: of the schedule with its overrides, without leads."""

    opens: Instant | None = Field(default=None, description="When it opens; absent if it has always been open.")
    closes: Instant | None = Field(default=None, description="When it closes; absent if it never does.")


class OverrideInForce(Model):
    """The ScheduleOverride that is in force for this machine."""

    name: Name = Field(description="Name of the ScheduleOverride.")
    state: Annotated[OverrideState, Lax] = Field(description="Open, Closed or Scheduled.")
    until: Instant = Field(description="When it ends.")
    by: Text | None = Field(default=None, description="User who requested it.")
    reason: Text | None = Field(default=None, description="Why, in the words of that user.")


def _lead(given: Any) -> Any:
    return given if isinstance(given, timedelta) else parse_duration(given, MAX_LEAD)


LeadTime = Annotated[
    timedelta,
    BeforeValidator(_lead),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "maxLength": 32}),
]


class LeadTimes(Model):
    """What `Auto` amounts to, fixed when a service ends, so that it does not change during the next."""

    start_early: LeadTime | None = Field(default=None, description="For schedule.startEarly, if that is Auto.")
    stop_early: LeadTime | None = Field(default=None, description="For schedule.stopEarly, if that is Auto.")


class ScheduledMachineStatus(Model):
    """What is observed. Written by the controller; anything submitted here is ignored."""

    phase: Annotated[Phase, Lax] | None = Field(default=None, description="Phase of the machine.")
    message: Text | None = Field(default=None, description="The phase in one sentence, for people.")
    in_schedule: bool | None = Field(default=None, description="Whether the schedule has a window open now.")
    window: WindowTimes | None = Field(
        default=None, description="The window that is open, or else the next; with overrides, without leads."
    )
    override: OverrideInForce | None = Field(default=None, description="The override in force, if any.")
    conditions: Annotated[tuple[Condition, ...], Lax] = Field(
        default=(),
        max_length=32,
        json_schema_extra=map_list("type"),
        description="The aspects of the state, one entry per type.",
    )
    machine_phase: Annotated[MachinePhase, Lax] | None = Field(
        default=None, description="Phase of the Cluster API Machine."
    )
    machine_ref: ObjectReference | None = Field(default=None, description="The Cluster API Machine.")
    bootstrap_ref: ObjectReference | None = Field(default=None, description="The bootstrap object.")
    infrastructure_ref: ObjectReference | None = Field(default=None, description="The infrastructure object.")
    node_ref: NodeReference | None = Field(default=None, description="The Node, once it has joined.")
    provider_id: str | None = Field(
        default=None, max_length=2048, description="The provider's identifier of the machine."
    )
    host_hash: str | None = Field(
        default=None,
        max_length=64,
        description="What the Machine's host is known by; an edit of infrastructureSpec does not free it for others.",
    )
    applied_node_taints: Annotated[tuple[AppliedTaint, ...], Lax] = Field(
        default=(),
        max_length=64,
        json_schema_extra=map_list("key", "effect"),
        description="Taints on the Node that are the controller's own.",
    )
    last_scheduled_time: Instant | None = Field(default=None, description="When a Machine was last created.")
    first_ready_time: Instant | None = Field(
        default=None, description="When the Node of the present Machine was Ready for the first time."
    )
    schedule: str | None = Field(
        default=None, max_length=64, description="The schedule in a few words, cut to the width of a column."
    )
    next_change: str | None = Field(
        default=None,
        max_length=64,
        description="When the window closes or the next one opens, in the time zone of the schedule, for example "
        "closes Fri 18:00; with overrides, without leads.",
    )
    next_activation: Instant | None = Field(
        default=None,
        description="When the controller requests a machine next: at the opening of a window, less startEarly.",
    )
    next_cleanup: Instant | None = Field(
        default=None,
        description="When the shutdown begins, at the close of the window less stopEarly; or, during a shutdown, its "
        "deadline. While the shutdown waits for its turn, when it was due.",
    )
    shutdown_started_at: Instant | None = Field(
        default=None, description="When the shutdown under way began; its timeouts count from here."
    )
    waiting_since: Instant | None = Field(
        default=None,
        description="Since when the machine waits for its turn, because its Cluster limits how many are provisioned or "
        "drained at once.",
    )
    reclaim: Reclaim | None = Field(default=None, description="The emergency reclaim under way, if any.")
    last_reclaim: PastReclaim | None = Field(
        default=None, description="The emergency reclaim that disabled the schedule, until that is enabled again."
    )
    remediation: Remediation | None = Field(
        default=None, description="Replacements that a MachineHealthCheck asked for in the current window."
    )
    leads: LeadTimes | None = Field(
        default=None, description="What Auto in schedule.startEarly and schedule.stopEarly amounts to."
    )
    history: History = Field(
        default=History(),
        json_schema_extra=atomic_list(),
        description="The last services, the newest last; the one under way has no `gone`.",
    )
    shard: str | None = Field(
        default=None,
        max_length=32,
        description="Shard that this object belongs to, as in the name of the Lease `5spot-shard-<shard>`.",
    )
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status describes."
    )

    @classmethod
    def read(cls, raw: Any) -> Self:
        """Read a stored status, leaving out whatever in it makes no sense: it must never stop the controller."""
        if type(raw) is not dict:
            return cls()
        try:
            return cls.parse(raw)
        except ValidationError as broken:
            return cls._without(raw, broken)

    @classmethod
    def _without(cls, raw: dict[str, Any], broken: ValidationError) -> Self:
        bad = {error["loc"][:2] for error in broken.errors(include_url=False, include_context=False)}
        kept = {name: _sound_part(name, value, bad) for name, value in raw.items()}
        try:
            return cls.parse(kept)
        except ValidationError:
            return cls()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data in camelCase, without absent fields and empty lists."""
        return {name: value for name, value in super().to_json().items() if value != []}


def _sound_part(name: str, value: Any, bad: set[tuple[int | str, ...]]) -> Any:
    """The value if nothing in it is bad, the good items of a list, else None."""
    if not any(place[0] == name for place in bad):
        return value
    if isinstance(value, list) and (name,) not in bad:
        return [item for index, item in enumerate(value) if (name, index) not in bad]
    return None
