"""The ScheduledMachine: one class for admission, reconciliation, command line, CRD and docs."""

from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, ValidationError

from crds import cel, fields, names
from crds.base import Instant, Lax, Model, map_list
from crds.schedule import Schedule
from crds.status import Effect, ScheduledMachineStatus
from crds.values import Cron, DaySet, HourSet, Zone

DEFAULT_PRIORITY: Final = 50
DEFAULT_TIMEOUT: Final = timedelta(minutes=5)
DEFAULT_PROVISIONING_TIMEOUT: Final = timedelta(minutes=15)
DEFAULT_TIMEZONE: Final = Zone.parse("UTC")


class ScheduleSpec(Model):
    """When the machine is in service: days and hours of the week, or a cron expression with a duration."""

    model_config = ConfigDict(json_schema_extra=cel.validations(cel.SCHEDULE))

    days_of_week: fields.Days = Field(
        default=DaySet(),
        description="Days with service: mon to sun, ranges such as mon-fri or fri-mon, lists such as mon-wed,fri. "
        "Empty means every day.",
    )
    hours_of_day: fields.Hours = Field(
        default=HourSet(),
        description="Hours with service, 0 to 23, as strings: 9, ranges such as 9-17 (09:00 up to 18:00) or 22-6, "
        "lists such as 0-9,17-23. Empty means every hour. Day and hour are tested separately on the local clock.",
    )
    cron: fields.Cron | None = Field(
        default=None,
        description="Instead of days and hours: five-field cron expression; each firing opens a window.",
    )
    duration: fields.WindowDuration | None = Field(
        default=None, description="How long a window opened by cron lasts, for example 8h; at most 7 days; default 1m."
    )
    timezone: fields.Timezone = Field(
        default=DEFAULT_TIMEZONE, description="IANA name of the time zone that days, hours and cron are read in."
    )
    enabled: bool = Field(
        default=True, description="false pauses the schedule: what runs stays, nothing is created or removed."
    )

    @cached_property
    def compiled(self) -> Schedule:
        """The set of instants that this schedule denotes, whether enabled or not."""
        return _compile(self.days_of_week, self.hours_of_day, self.cron, self.duration, self.timezone)


@lru_cache(maxsize=8192)
def _compile(days: DaySet, hours: HourSet, cron: Cron | None, duration: timedelta | None, zone: Zone) -> Schedule:
    if cron is None:
        return Schedule.weekly(days, hours, zone)
    return Schedule.from_cron(cron, duration, zone)


@lru_cache(maxsize=8192)
def never_opens(schedule: Schedule) -> bool:
    """Whether there is no window in any year to come."""
    return schedule.never_opens


class ProviderSpec(Model):
    """A bootstrap or infrastructure object, created when a window opens."""

    api_version: fields.APIVersion = Field(
        description="Group and version of the object, for example bootstrap.cluster.x-k8s.io/v1beta1 in bootstrapSpec "
        "and infrastructure.cluster.x-k8s.io/v1beta1 in infrastructureSpec."
    )
    kind: fields.Kind = Field(
        description="Kind of the object, for example K0sWorkerConfig in bootstrapSpec and RemoteMachine in "
        "infrastructureSpec."
    )
    namespace: fields.Namespace | None = Field(
        default=None, description="If given, the ScheduledMachine's own namespace: objects are only created there."
    )
    spec: fields.Payload = Field(
        description="Spec of the object, passed on to its provider as it is; if it is empty, the object gets none."
    )

    @property
    def group(self) -> str:
        """The API group."""
        return self.api_version.partition("/")[0]


class MachineTemplate(Model):
    """What the created Cluster API Machine carries in addition."""

    labels: fields.Labels = Field(default_factory=dict, description="Labels for the Machine.")
    annotations: fields.Annotations = Field(default_factory=dict, description="Annotations for the Machine.")
    version: fields.KubernetesVersion | None = Field(
        default=None,
        description="Kubernetes version for the Machine, for example v1.34.2. Most bootstrap providers, kubeadm's "
        "among them, and many infrastructure providers cannot do without; k0smotron takes its own from bootstrapSpec. "
        "An edit applies when the next Machine is created.",
    )
    failure_domain: fields.FailureDomain | None = Field(
        default=None,
        description="Failure domain for the Machine, for example eu-west-1a; which there are, the infrastructure "
        "provider says in the Cluster's status. An edit applies when the next Machine is created.",
    )


class NodeTaint(Model):
    """A taint that the Node gets once it is Ready; its identity is key and effect."""

    key: fields.TaintKey = Field(description="Key of the taint, outside the prefixes that Kubernetes and 5-Spot use.")
    value: fields.TaintValue | None = Field(default=None, description="Value of the taint; may be changed later.")
    effect: Annotated[Effect, Lax] = Field(description="NoSchedule, PreferNoSchedule or NoExecute.")


class ScheduledMachineSpec(Model):
    """What the machine is and when it is in service."""

    schedule: ScheduleSpec = Field(description="When the machine is in service.")
    bootstrap_spec: ProviderSpec = Field(description="The bootstrap object, created when a window opens.")
    infrastructure_spec: ProviderSpec = Field(description="The infrastructure object, created when a window opens.")
    machine_template: MachineTemplate | None = Field(
        default=None, description="What the created Cluster API Machine carries in addition."
    )
    cluster_name: fields.ClusterName = Field(
        description="Name of the Cluster, in the same namespace. Cannot change while a Machine exists."
    )
    priority: fields.Priority = Field(
        default=DEFAULT_PRIORITY,
        description="0 to 255: who goes first when many are due at once, higher first when activating, lower when "
        "removing.",
    )
    graceful_shutdown_timeout: fields.Timeout = Field(
        default=DEFAULT_TIMEOUT,
        description="Time for the whole shutdown, drain included, for example 5m or 1h30m; at most 24h.",
    )
    node_drain_timeout: fields.Timeout = Field(
        default=DEFAULT_TIMEOUT,
        description="Time for draining the Node before the Machine is deleted, for example 5m; at most 24h.",
    )
    provisioning_timeout: fields.Timeout = Field(
        default=DEFAULT_PROVISIONING_TIMEOUT,
        description="Time from the creation of the Machine until its Node is Ready, for example 15m; at most 24h. A "
        "machine that takes longer is reported as NotReadyInTime and left as it is.",
    )
    kill_switch: bool = Field(
        default=False, description="true removes the machine at once, without grace; false returns it to service."
    )
    kill_if_commands: fields.Commands = Field(
        default=(),
        description="Commands that reclaim the machine: when one of them runs on the node, the machine is removed at "
        "once and the schedule disabled.",
    )
    node_taints: Annotated[tuple[NodeTaint, ...], Lax] = Field(
        default=(),
        max_length=fields.TAINTS_MAX,
        json_schema_extra=map_list("key", "effect"),
        description="Taints for the Node once it is Ready. Taints that others set are left alone.",
    )


class Metadata(Model):
    """The parts of the metadata that the controller works with."""

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: Annotated[tuple[str, ...], Lax] = ()

    @classmethod
    def read(cls, raw: Any) -> Self:
        """Read what the API server gave; what is missing or makes no sense is left empty."""
        known = {"name": "", **(raw if isinstance(raw, dict) else {})}
        try:
            return cls.parse(known)
        except ValidationError as broken:
            bad = {error["loc"][0] for error in broken.errors(include_url=False, include_context=False)}
            return cls.parse({"name": "", **{name: value for name, value in known.items() if name not in bad}})


NO_STATUS: Final = ScheduledMachineStatus()


class ScheduledMachine(Model):
    """A machine that is part of a cluster only when its schedule says so."""

    api_version: str = names.API_VERSION
    kind: str = names.KIND
    metadata: Metadata
    spec: ScheduledMachineSpec
    status: ScheduledMachineStatus = Field(default_factory=ScheduledMachineStatus)

    @classmethod
    def of(cls, metadata: Metadata, spec: ScheduledMachineSpec) -> "ScheduledMachine":
        """Put parts together that were each read and judged already."""
        return cls.model_construct(
            api_version=names.API_VERSION, kind=names.KIND, metadata=metadata, spec=spec, status=NO_STATUS
        )
