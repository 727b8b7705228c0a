"""`5spot release`: removes the operator's finalizer from ScheduledMachines, for a team that uninstalls the operator."""

import asyncio
from typing import Annotated, Final

import typer

from crds import names
from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

DESCRIPTION: Final = f"""
Removes the finalizer {names.FINALIZER} from ScheduledMachines, so that they can be deleted after the operator is
uninstalled. Nothing else changes: ScheduledMachines stay, finalizers of other programs stay, and so do Machines. The
output names the Machines, because no operator deletes them afterwards.

Stop the operator first. The command refuses to work while an operator renews its Leases: it would add the finalizer
again, or delete Machines.
"""
EPILOG: Final = """
Exit codes:
  0  every finalizer is removed
  1  an operator is running, or a finalizer could not be removed
  2  wrong usage, or not confirmed

Examples:
  5spot release --dry-run             look at the whole cluster first
  5spot release --yes                 release everything
  5spot release -n team-a             one namespace, after a question
  5spot release team-a/worker --yes   one ScheduledMachine"""


@app.command(cls=ReadableCommand, help=paragraphs(DESCRIPTION), epilog=EPILOG)
def release(  # noqa: PLR0913 - one parameter for each option
    *,
    wanted: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMESPACE/]NAME", help="ScheduledMachines to release. Default: all.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask the API server; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Release even while an operator is running.")] = False,
    output: options.Output = "text",
    namespace: Annotated[
        str | None,
        options.of_cluster("-n", "--namespace", text="Namespace of the ScheduledMachines. Default: all."),
    ] = None,
    operator_namespace: Annotated[
        str | None,
        options.of_cluster(
            "--operator-namespace", text="Namespace in which to look for a running operator. Default: all."
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Find, ask, release and report."""
    from service.commands import uninstall  # noqa: PLC0415 - help does not wait for the client

    request = uninstall.ReleaseRequest(
        wanted=uninstall.parsed(wanted or (), namespace),
        namespace=namespace,
        operator_namespace=operator_namespace,
        dry_run=dry_run,
        confirmed=yes,
        force=force,
        output=output,
    )
    return asyncio.run(uninstall.uninstall(request, options.ClusterChoice(kubeconfig, context)))
