"""`5spot console-server`: the console for many users, as the chart runs it in a cluster."""

import asyncio
from pathlib import Path
from typing import Annotated, Final

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)
PORT: Final = 8082
SERVER: Final = "https://kubernetes.default.svc"

EPILOG: Final = """
Exit codes:
  0  ended by a signal
  2  wrong usage

Examples:
  5spot console-server --origin https://console.example.com
  5spot console-server --origin http://localhost:8082 --certificate-authority ca.crt --server https://10.0.0.1:6443"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Serves the console to many users. It has no rights of its own: each user logs in with a bearer token, or a proxy
        in front sends one with every request, and every request to the API server carries the token of its user.

        The chart runs it with `console.enabled`. It reads no kubeconfig and no service account.
    """),
    epilog=EPILOG,
)
def console_server(  # noqa: PLR0913 - one parameter for each option
    *,
    origins: Annotated[
        list[str],
        typer.Option("--origin", metavar="URL", help="Address in browsers, https://NAME[:PORT]; may be repeated."),
    ],
    listen: Annotated[str, typer.Option("--listen", metavar="ADDRESS", help="Where to listen.")] = "::",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port.")] = PORT,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate", metavar="FILE", help="Serve TLS with this certificate; read again when it changes."
        ),
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", metavar="FILE", help="Its key.")] = None,
    server: Annotated[str, options.of_cluster("--server", text="The API server.", metavar="URL")] = SERVER,
    authority: Annotated[
        Path | None, options.of_cluster("--certificate-authority", text="CA of the API server.", metavar="FILE")
    ] = None,
    operator_namespace: Annotated[
        str, options.of_cluster("--operator-namespace", text="Where ClusterScheduleCalendars have their ConfigMaps.")
    ] = options.OPERATOR_NAMESPACE,
) -> int:
    """Serve until a signal ends it."""
    from service.commands import serverloop  # noqa: PLC0415 - help does not wait for pydantic
    from service.commands.serverloop import ServerFiles, ServerOptions  # noqa: PLC0415

    files = ServerFiles(authority, certificate, key)
    given = ServerOptions(frozenset(origins), listen, port, server, files, operator_namespace)
    asyncio.run(serverloop.serve(given))
    return 0
