"""`5spot top`: the machines of a namespace or a cluster, live, on the whole terminal."""

import asyncio
from typing import Final

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Keys:
  up, down   select a machine
  /          filter by words; Esc ends the filter
  a          only what needs attention
  s          sort by attention, name, next change, last change
  Enter      why is the machine as it is?
  e          keep the machine in service for an hour longer; asks first
  k          skip the next window of the machine; asks first
  q          quit

Examples:
  5spot top                the context's namespace
  5spot top -A             the whole cluster"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Shows ScheduledMachines live on the whole terminal, what needs attention first.

        Works with your kubeconfig and rights: one list, then one watch, and an override where you ask for one.
    """),
    epilog=EPILOG,
)
def top(
    *,
    namespace: options.FleetNamespace = None,
    all_namespaces: options.AllNamespaces = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Show the machines until the user quits."""
    from service.commands import fleet, toploop  # noqa: PLC0415 - help does not wait for pydantic

    access = options.ClusterChoice(kubeconfig, context)
    asyncio.run(toploop.show(access, fleet.scope(access, namespace, [], all_namespaces=all_namespaces)))
    return 0
