"""`5spot adopt`: makes a ScheduledMachine that was restored from a backup the owner of its Machine again."""

import asyncio
import json
import sys
from typing import Annotated, Final

import typer

from crds import names
from service.commands import options
from service.commands.help import ReadableCommand, paragraphs
from service.commands.table import FAILED, UsageError

app = typer.Typer(add_completion=False)

DESCRIPTION: Final = f"""
After a restore, objects have new uids. The operator does not recognise the Machine that it created before: it reports
ForeignObject and changes nothing. This command adds owner references, so that the ScheduledMachine owns its Machine and
provider objects again, and the operator continues with them.

An object is adopted only if it has the labels {names.LABEL_OWNER}=NAME and {names.LABEL_MANAGED_BY}={names.MANAGED_BY},
is not being deleted, has no other controller, and does not belong to another ScheduledMachine.
"""
EPILOG: Final = """
Exit codes:
  0  every object is adopted, or there is nothing to adopt
  1  an object may not be adopted, or the API server refused it
  2  wrong usage

Examples:
  5spot adopt desk-7 -n team-a            one ScheduledMachine
  5spot adopt --all -n team-a --dry-run   look at a namespace first
  5spot adopt --all -A                    the whole cluster"""


@app.command(cls=ReadableCommand, help=paragraphs(DESCRIPTION), epilog=EPILOG)
def adopt(  # noqa: PLR0913 - one parameter for each option
    *,
    wanted: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="ScheduledMachines whose objects are adopted.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All ScheduledMachines of the namespace.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be adopted; change nothing.")] = False,
    output: options.Output = "text",
    namespace: Annotated[
        str | None,
        options.of_cluster("-n", "--namespace", text="Namespace of the ScheduledMachines. Default: the context's."),
    ] = None,
    all_namespaces: Annotated[
        bool, options.of_cluster("-A", "--all-namespaces", text="With --all: in every namespace.")
    ] = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Adopt what may be adopted, and print the result for each object."""
    if bool(wanted) == every or (all_namespaces and not every):
        raise UsageError("name ScheduledMachines, or give --all, with -n NAMESPACE or -A")
    from service.commands import adoption, cluster  # noqa: PLC0415 - help does not wait for the client

    access = options.ClusterChoice(kubeconfig, context)
    scope = None if all_namespaces else namespace or cluster.default_namespace(access)
    results = asyncio.run(adoption.adopt(wanted or (), scope, access, dry_run=dry_run))
    if output == "json":
        sys.stdout.write(f"{json.dumps([each.to_json() for each in results], indent=2)}\n")
    else:
        sys.stdout.write("".join(f"{each}\n" for each in results) or "there is nothing to adopt\n")
    return FAILED if any(each.failed for each in results) else 0
