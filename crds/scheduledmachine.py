"""The ScheduledMachine: one class for admission, reconciliation, command line, CRD and docs."""

from datetime import timedelta
from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, ValidationError

from crds import cel, fields, names
from crds.base import Instant, Lax, Model, map_list
from crds.schedulespec import ScheduleSpec
from crds.status import Effect, ScheduledMachineStatus

DEFAULT_PRIORITY: Final = 50
DEFAULT_TIMEOUT: Final = timedelta(minutes=5)
DEFAULT_PROVISIONING_TIMEOUT: Final = timedelta(minutes=15)


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


class ClassRef(Model):
    """A ScheduledMachineClass, by its name."""

    name: fields.ObjectName = Field(description="Name of the ScheduledMachineClass.")


NodeTaints = Annotated[tuple[NodeTaint, ...], Lax, Field(max_length=fields.TAINTS_MAX)]


class WrittenSpec(Model):
    """What the machine is and when it is in service."""

    # As its author wrote it: with a class, it leaves out much.

    model_config = ConfigDict(json_schema_extra=cel.validations(cel.SPEC))

    schedule: ScheduleSpec = Field(description="When the machine is in service.")
    class_ref: ClassRef | None = Field(
        default=None,
        description="The ScheduledMachineClass that says what the machine is, instead of bootstrapSpec and "
        "infrastructureSpec.",
    )
    parameters: fields.ParameterValues = Field(
        default_factory=dict,
        description="Values for the parameters of the class, at most 64 and 64 KiB together. An edit applies when the "
        "next Machine is created.",
    )
    bootstrap_spec: ProviderSpec | None = Field(
        default=None, description="The bootstrap object, created when a window opens. Needed without classRef."
    )
    infrastructure_spec: ProviderSpec | None = Field(
        default=None, description="The infrastructure object, created when a window opens. Needed without classRef."
    )
    machine_template: MachineTemplate | None = Field(
        default=None,
        description="What the created Cluster API Machine carries in addition. What a class sets and this does not is "
        "taken from the class, label by label.",
    )
    cluster_name: fields.ClusterName = Field(
        description="Name of the Cluster, in the same namespace. Cannot change while a Machine exists."
    )
    priority: fields.Priority | None = Field(
        default=None,
        description="0 to 255: who goes first when many are due at once, higher first when activating, lower when "
        "removing.",
    )
    graceful_shutdown_timeout: fields.Timeout | None = Field(
        default=None,
        description="Time for the whole shutdown, drain included, for example 5m or 1h30m; at most 24h.",
    )
    node_drain_timeout: fields.Timeout | None = Field(
        default=None,
        description="Time for draining the Node before the Machine is deleted, for example 5m; at most 24h.",
    )
    provisioning_timeout: fields.Timeout | None = Field(
        default=None,
        description="Time from the creation of the Machine until its Node is Ready, for example 15m; at most 24h. A "
        "machine that takes longer is reported as NotReadyInTime and left as it is.",
    )
    kill_switch: bool = Field(
        default=False, description="true removes the machine at once, without grace; false returns it to service."
    )
    kill_if_commands: fields.Commands | None = Field(
        default=None,
        description="Commands that reclaim the machine: when one of them runs on the node, the machine is removed at "
        "once and the schedule disabled.",
    )
    node_taints: NodeTaints | None = Field(
        default=None,
        json_schema_extra=map_list("key", "effect"),
        description="Taints for the Node once it is Ready. Taints that others set are left alone.",
    )


class ScheduledMachineSpec(WrittenSpec):
    """What the machine is and when it is in service, complete: written without a class, or with one filled in."""

    bootstrap_spec: ProviderSpec
    infrastructure_spec: ProviderSpec
    priority: fields.Priority = DEFAULT_PRIORITY
    graceful_shutdown_timeout: fields.Timeout = DEFAULT_TIMEOUT
    node_drain_timeout: fields.Timeout = DEFAULT_TIMEOUT
    provisioning_timeout: fields.Timeout = DEFAULT_PROVISIONING_TIMEOUT
    kill_if_commands: fields.Commands = ()
    node_taints: NodeTaints = ()


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
