"""Options that several commands share, as Typer reads them. Light: nothing here imports pydantic or a client."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from crds.providers import (
    DEFAULT_BOOTSTRAP_GROUPS,
    DEFAULT_BOOTSTRAP_KINDS,
    DEFAULT_INFRASTRUCTURE_GROUPS,
    DEFAULT_INFRASTRUCTURE_KINDS,
    DEFAULT_REFUSED_KINDS,
    kind_patterns,
)

FILES_HELP: Final = "A YAML or JSON file, a directory, or a pattern such as 'machines/*.yaml'; - is standard input."
POLICY: Final = "Policy of the operator, if not the default (LIST: a,b,c)"
CLUSTER: Final = "The cluster"
OPERATOR_NAMESPACE: Final = "5spot-system"


def of_cluster(*flags: str, text: str, metavar: str = "NAME") -> Any:
    """An option that chooses a cluster or a part of it."""
    return typer.Option(*flags, metavar=metavar, help=text, rich_help_panel=CLUSTER)


Files = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", metavar="FILE", help="The same as FILE, as in kubectl; may be repeated."),
]
Recursive = Annotated[bool, typer.Option("-R", "--recursive", help="Read subdirectories too.")]
Kubeconfig = Annotated[
    Path | None,
    of_cluster(
        "--kubeconfig",
        text="Default: $KUBECONFIG, or the pod's service account, or ~/.kube/config.",
        metavar="FILE",
    ),
]
Context = Annotated[str | None, of_cluster("--context", text="Default: the kubeconfig's current context.")]
Output = Annotated[
    Literal["text", "json"], typer.Option("-o", "--output", metavar="text|json", help="How to print the result.")
]
TableOutput = Annotated[
    Literal["table", "json", "yaml"],
    typer.Option("-o", "--output", metavar="table|json|yaml", help="How to print."),
]
FleetNamespace = Annotated[
    str | None, of_cluster("-n", "--namespace", text="Namespace to look at. Default: the context's.")
]
AllNamespaces = Annotated[bool, of_cluster("-A", "--all-namespaces", text="Every namespace.")]

MachineName = Annotated[str, typer.Argument(metavar="NAME", help="The ScheduledMachine.")]
MachineNamespace = Annotated[
    str | None, of_cluster("-n", "--namespace", text="Namespace of the machine. Default: the context's.")
]
OverrideUntil = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Until a time on your clock: 22:00, or 2026-11-20T22:00."),
]
OverrideLength = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="For how long instead: 2h, or 1h30m.")
]
OverrideReason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="The reason, for people to read.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """Which cluster a command talks to; `service.commands.cluster` connects to it."""

    kubeconfig: Path | None
    context: str | None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _kinds(text: str) -> tuple[str, ...]:
    return kind_patterns(_listed(text))


def _policy(flag: str, text: str) -> Any:
    parser = _kinds if flag.endswith("-kinds") else _listed
    return typer.Option(flag, metavar="LIST", parser=parser, help=text, show_default=False, rich_help_panel=POLICY)


# Typer hands over what the parser made of the text: a tuple.
BootstrapGroups = Annotated[Any, _policy("--bootstrap-groups", "API groups allowed in bootstrapSpec.")]
InfrastructureGroups = Annotated[Any, _policy("--infrastructure-groups", "API groups allowed in infrastructureSpec.")]
BootstrapKinds = Annotated[Any, _policy("--bootstrap-kinds", "Kinds allowed in bootstrapSpec; * matches any text.")]
InfrastructureKinds = Annotated[Any, _policy("--infrastructure-kinds", "Kinds allowed in infrastructureSpec.")]
RefusedKinds = Annotated[Any, _policy("--refused-kinds", "Kinds refused even if the lists above allow them.")]
MaxOverrideDays = Annotated[
    float,
    typer.Option(
        "--max-override-days",
        metavar="DAYS",
        min=0,
        max=366,
        help="How many days after its acceptance an override may end.",
        show_default=False,
        rich_help_panel=POLICY,
    ),
]

MAX_OVERRIDE_DAYS: Final = 31.0
BOOTSTRAP_GROUPS: Final = ",".join(sorted(DEFAULT_BOOTSTRAP_GROUPS))
INFRASTRUCTURE_GROUPS: Final = ",".join(sorted(DEFAULT_INFRASTRUCTURE_GROUPS))
BOOTSTRAP_KINDS: Final = ",".join(DEFAULT_BOOTSTRAP_KINDS)
INFRASTRUCTURE_KINDS: Final = ",".join(DEFAULT_INFRASTRUCTURE_KINDS)
REFUSED_KINDS: Final = ",".join(DEFAULT_REFUSED_KINDS)
