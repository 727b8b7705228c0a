"""`5spot console`: the fleet as web pages on this machine."""

import asyncio
from typing import Annotated, Final

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0  ended with Ctrl-C
  2  wrong usage, or the cluster cannot be read

Examples:
  5spot console               the context's namespace
  5spot console -A --open     the whole cluster, in the browser at once
  5spot console --port 8000   on a port of your choice"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Serves the fleet, its week, calendars, overrides and each machine as web pages on 127.0.0.1.

        The address that it prints opens the console once, in one browser. Pages show what you may read, and offer what
        you may do: the console works with your kubeconfig and rights. Nothing is stored, and nothing is loaded from
        elsewhere.
    """),
    epilog=EPILOG,
)
def console(
    *,
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the console in the browser.")] = False,
    namespace: options.FleetNamespace = None,
    all_namespaces: options.AllNamespaces = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Serve until Ctrl-C."""
    from service.commands import consoleloop, fleet  # noqa: PLC0415 - help does not wait for pydantic

    access = options.ClusterChoice(kubeconfig, context)
    scope = fleet.scope(access, namespace, [], all_namespaces=all_namespaces)
    asyncio.run(consoleloop.serve(access, scope, port, open_browser=open_browser))
    return 0
