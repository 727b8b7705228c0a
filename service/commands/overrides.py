"""`5spot overrides`: the overrides of a namespace, a machine or a cluster."""

import asyncio
from typing import Annotated, Final

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0  the overrides are shown
  2  wrong usage, or the cluster cannot be read

Examples:
  5spot overrides                      the context's namespace
  5spot overrides desk-7 -n team-a     those about one machine
  5spot overrides -A -o json           for programs"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Shows ScheduleOverrides: their machines, the state that these get, begin and end, the user who requested it, and
        whether they are in force. Times are on your clock.

        With a NAME: those that name or select this ScheduledMachine, the one that decides first. Reads with your
        kubeconfig and rights, and changes nothing.
    """),
    epilog=EPILOG,
)
def overrides(
    *,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A ScheduledMachine.")] = None,
    output: options.TableOutput = "table",
    namespace: options.FleetNamespace = None,
    all_namespaces: options.AllNamespaces = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Print the overrides asked for."""
    from service.commands import fleet, overrideprinting  # noqa: PLC0415 - help does not wait for pydantic

    access = options.ClusterChoice(kubeconfig, context)
    scope = fleet.scope(access, namespace, [] if name is None else [name], all_namespaces=all_namespaces)
    found = asyncio.run(overrideprinting.read(access, scope))
    return overrideprinting.show(found, scope, output)
