"""`5spot status`: the machines of a namespace or a cluster at a glance, or one of them in detail."""

import asyncio
from dataclasses import replace
from typing import Annotated, Final, Literal

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)
LIMIT: Final = 200

EPILOG: Final = """
Exit codes:
  0  the machines are shown
  2  wrong usage, or the cluster cannot be read

Examples:
  5spot status                      the context's namespace
  5spot status -A --attention       what needs attention in the whole cluster
  5spot status -A --sort next       what happens next, first
  5spot status desk-7 -n team-a     one machine in detail
  5spot status -n team-a -o json    for programs"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Shows what each ScheduledMachine does now, since when, and what comes next, in your time zone. What needs
        attention comes first.

        With a NAME: its schedule, next change, Machine, Node, conditions and latest events. Reads with your kubeconfig
        and rights, and changes nothing.
    """),
    epilog=EPILOG,
)
def status(  # noqa: PLR0913 - one parameter for each option
    *,
    wanted: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="ScheduledMachines in detail.")] = None,
    attention: Annotated[bool, typer.Option("--attention", help="Only what needs attention.")] = False,
    phase: Annotated[
        list[str] | None, typer.Option("--phase", metavar="PHASE", help="Only this phase; may be repeated.")
    ] = None,
    of_cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="NAME", help="Only machines of this Cluster.")
    ] = None,
    selector: Annotated[
        str | None, typer.Option("-l", "--selector", metavar="LABELS", help="Only machines with these labels.")
    ] = None,
    sort: Annotated[
        Literal["attention", "name", "next", "since"],
        typer.Option("--sort", metavar="attention|name|next|since", help="What comes first."),
    ] = "attention",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="Lines of a table at most; 0 shows all.")
    ] = LIMIT,
    output: options.TableOutput = "table",
    namespace: options.FleetNamespace = None,
    all_namespaces: options.AllNamespaces = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Print the machines asked for."""
    from service.commands import fleet, machineprinting  # noqa: PLC0415 - help does not wait for pydantic
    from service.fleet.filters import Filter, Sort  # noqa: PLC0415

    access = options.ClusterChoice(kubeconfig, context)
    scope = replace(fleet.scope(access, namespace, wanted or [], all_namespaces=all_namespaces), labels=selector)
    if wanted:
        return machineprinting.print_details(asyncio.run(fleet.read_details(access, scope)), scope, output)
    found = asyncio.run(fleet.read_summaries(access, scope))
    chosen = Filter(attention=attention, phases=tuple(phase or ()), cluster=of_cluster or "", sort=Sort(sort))
    return machineprinting.print_fleet(found, chosen.chosen(found), scope, machineprinting.View(output, limit))
