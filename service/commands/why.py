"""`5spot why`: why a machine is, or is not, in its cluster, and what would change that."""

import asyncio
from typing import Annotated, Final, Literal

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0  the explanation is shown
  2  wrong usage, or the machine cannot be read

Examples:
  5spot why desk-7 -n team-a           why is desk-7 not in the cluster?
  5spot why desk-7 -n team-a -o json   for programs"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Explains what the operator reports of a ScheduledMachine: the rule that decides, what the rule looks at, and
        what would change it.

        The rules are asked again only if you may read everything that they look at: the ScheduledMachine, its
        calendars, its Cluster, its Machine and provider objects. What you may not read is named, and the explanation
        rests on the reported status.
    """),
    epilog=EPILOG,
)
def why(
    *,
    name: options.MachineName,
    output: Annotated[
        Literal["text", "json", "yaml"], typer.Option("-o", "--output", metavar="text|json|yaml", help="How to print.")
    ] = "text",
    namespace: options.MachineNamespace = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Print the explanation."""
    from service.commands import fleet, machineprinting  # noqa: PLC0415 - help does not wait for pydantic

    access = options.ClusterChoice(kubeconfig, context)
    scope = fleet.scope(access, namespace, [name])
    return machineprinting.print_explanation(asyncio.run(fleet.read_explanation(access, scope)), output)
