"""The ScheduledMachineClass: what the platform team approves, with parameters that its users fill in."""

from typing import Annotated, Any, Final

from pydantic import Field

from crds import fields
from crds.base import Lax, Model, map_list
from crds.scheduledmachine import MachineTemplate, NodeTaints
from crds.selector import NamespaceSelector

SETTABLE: Final = (
    *("priority", "graceful_shutdown_timeout", "node_drain_timeout", "provisioning_timeout"),
    *("kill_if_commands", "node_taints"),
)
"""Fields that a ScheduledMachine takes from its class as a whole, if it does not have them itself."""


class ClassParameter(Model):
    """A parameter that users of the class fill in."""

    name: fields.ParameterName = Field(description="Name of the parameter; the specs name it as $(params.NAME).")
    json_schema: fields.Payload = Field(
        default_factory=dict,
        alias="schema",
        description="JSON schema (2020-12) that values have to meet, without $ref. Regular expressions take linear "
        "time, and have no look-around.",
    )
    default: fields.Anything = Field(
        default=None, description="Value for users who give none; without it, they have to give one."
    )


class ClassProviderSpec(Model):
    """A bootstrap or infrastructure object with parameters in its spec."""

    api_version: fields.APIVersion = Field(
        description="Group and version of the object, for example bootstrap.cluster.x-k8s.io/v1beta1."
    )
    kind: fields.Kind = Field(description="Kind of the object, for example K0sWorkerConfig.")
    spec: fields.Payload = Field(
        description="Spec of the object. A text that is $(params.NAME) and nothing else becomes the parameter, with "
        "its type; within a longer text it becomes the parameter's text. $$( stands for $(."
    )

    @property
    def group(self) -> str:
        """The API group."""
        return self.api_version.partition("/")[0]


class ClassSpec(Model):
    """What machines of the class are, and in which namespaces it may be used."""

    namespace_selector: NamespaceSelector = Field(
        description="Namespaces whose ScheduledMachines may name the class, by their labels; {} means all."
    )
    parameters: Annotated[tuple[ClassParameter, ...], Lax] = Field(
        default=(),
        max_length=fields.PARAMETERS_MAX,
        json_schema_extra={**map_list("name"), "nullable": True},
        description="What users fill in, at most 64 parameters and 64 KiB together.",
    )
    bootstrap_spec: ClassProviderSpec = Field(
        description="The bootstrap object. An edit applies when the next Machine is created."
    )
    infrastructure_spec: ClassProviderSpec = Field(
        description="The infrastructure object. An edit applies when the next Machine is created."
    )
    machine_template: MachineTemplate | None = Field(
        default=None, description="What the created Cluster API Machines carry in addition."
    )
    priority: fields.Priority | None = Field(default=None, description="Priority of machines that have none.")
    graceful_shutdown_timeout: fields.Timeout | None = Field(
        default=None, description="Time for the whole shutdown of machines that have none; at most 24h."
    )
    node_drain_timeout: fields.Timeout | None = Field(
        default=None, description="Time for draining the Node of machines that have none; at most 24h."
    )
    provisioning_timeout: fields.Timeout | None = Field(
        default=None, description="Time until the Node is Ready for machines that have none; at most 24h."
    )
    kill_if_commands: fields.Commands | None = Field(
        default=None, description="Commands that reclaim machines that have none of their own."
    )
    node_taints: NodeTaints | None = Field(
        default=None,
        json_schema_extra=map_list("key", "effect"),
        description="Taints for the Nodes of machines that have none of their own.",
    )

    def defaults(self) -> dict[str, Any]:
        """The fields that the class sets for machines that have none, by their names in the models."""
        given = {name: getattr(self, name) for name in SETTABLE}
        return {name: value for name, value in given.items() if value is not None}
