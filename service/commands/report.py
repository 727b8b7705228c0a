"""`5spot report`: what machines did over a period, and what that saved against machines that are always on."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0  the report is printed
  2  wrong usage, or the cluster or Prometheus cannot be read

Examples:
  5spot report -A --since 7d                         the last week, all namespaces
  5spot report -n team-a -o html > report.html       a page to send or print
  5spot report -A --since 90d --prometheus http://prometheus:9090"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Reports hours served and hours for which hosts were free, punctuality (Ready within a minute of the opening),
        time to Ready by kind, drains cut short, reclaims, overrides, and cost where machines have the annotation
        5spot.finos.org/hourly-cost.

        The figures come from the history in the statuses, which keeps the last ten services of each machine. For a
        longer time --prometheus takes them from the operator's metrics. Reads with your kubeconfig and rights.
    """),
    epilog=EPILOG,
)
def report(  # noqa: PLR0913 - one parameter for each option
    *,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="How far back: 30d, 2w or 12h.")] = "30d",
    output: Annotated[
        Literal["table", "json", "csv", "html"],
        typer.Option("-o", "--output", metavar="table|json|csv|html", help="How to print."),
    ] = "table",
    prometheus: Annotated[
        str | None,
        typer.Option("--prometheus", metavar="URL", help="Take the figures from this Prometheus, for all machines."),
    ] = None,
    namespace: options.FleetNamespace = None,
    all_namespaces: options.AllNamespaces = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Print the report."""
    from service.commands import fleet, reports  # noqa: PLC0415 - help does not wait for pydantic

    back = reports.length(since)
    if prometheus is not None:
        from service.commands.prometheus import read_report  # noqa: PLC0415

        reports.check_scope(namespace, output)
        period = reports.period(back, datetime.now(UTC))
        return reports.print_report(asyncio.run(read_report(prometheus, period)), output)
    access = options.ClusterChoice(kubeconfig, context)
    scope = fleet.scope(access, namespace, [], all_namespaces=all_namespaces)
    period = reports.period(back, scope.clock.now())
    raws = asyncio.run(fleet.read_machines(access, scope))
    return reports.print_report(reports.made(raws, period), output)
