"""`5spot preview`: when the windows of a schedule open and close, from manifests or from a cluster."""

from datetime import date
from typing import Annotated, Final, Literal

import typer

from crds import names
from crds.providers import ProviderPolicy
from service.clock import SystemClock
from service.commands import options
from service.commands.help import ReadableCommand, paragraphs
from service.commands.times import DAYS_MAX, first_instant

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0   the windows of every ScheduledMachine are shown
  1   a ScheduledMachine or an override is rejected, or a calendar in use cannot be read; why is shown instead
  2   wrong usage, a file that cannot be read, or no ScheduledMachine
  70  a bug in 5spot

Examples:
  5spot preview machines/                       every manifest in a directory
  5spot preview desk-7.yaml --from 2026-03-28   from that day on
  5spot preview desk-7.yaml holidays.yaml       with the calendar that it names
  5spot preview desk-7 -n team-a                desk-7 in a cluster
  5spot preview -n team-a                       a whole namespace"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Shows the windows of each ScheduledMachine's schedule, enabled or not, over a number of 24-hour days.

        The table ends with the last day in the schedule's time zone. … marks a window that opens before the period or
        closes after it. JSON has exactly the period; `cut` names the ends of a window that lie outside it.

        Leads (startEarly, stopEarly) and the gaps that they bridge have a shade of their own, with a line that says how
        long they are; Auto is what the status says, or else its default. So has what ScheduleOverrides, from the same
        files or from the cluster, add to the windows and remove from them. JSON has the windows alone.

        A machine that names a class is shown without it; with -f class.yaml its parameters are checked, too. Calendars
        that a schedule names come from the same files, with the ConfigMaps beside them, or from the cluster,
        with your rights. Dates on which an exception decides are marked, with their names.
    """),
    epilog=EPILOG,
)
def preview(  # noqa: PLR0913 - one parameter for each option
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|NAME", help=f"{options.FILES_HELP} Or the NAME of an object in a cluster."),
    ] = None,
    files: options.Files = None,
    recursive: options.Recursive = False,
    start: Annotated[
        date | None,
        typer.Option(
            "--from",
            metavar="TIME",
            parser=first_instant,
            help="Start of the period: a time such as 2026-03-08T00:00:00Z, or a date such as 2026-03-08, which is "
            "midnight in the schedule's time zone. Default: now.",
        ),
    ] = None,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=DAYS_MAX, help="Length of the period in days.")] = 7,
    output: Annotated[
        Literal["table", "json"], typer.Option("-o", "--output", metavar="table|json", help="How to print the windows.")
    ] = "table",
    namespace: Annotated[
        str | None,
        options.of_cluster(
            "-n",
            "--namespace",
            text="Read from a cluster: the objects named, or the whole namespace. Default: the context's.",
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    operator_namespace: Annotated[
        str,
        options.of_cluster(
            "--operator-namespace", text="Where the ConfigMaps of ClusterScheduleCalendars are.", metavar="NAME"
        ),
    ] = options.OPERATOR_NAMESPACE,
    bootstrap_groups: options.BootstrapGroups = options.BOOTSTRAP_GROUPS,
    infrastructure_groups: options.InfrastructureGroups = options.INFRASTRUCTURE_GROUPS,
    bootstrap_kinds: options.BootstrapKinds = options.BOOTSTRAP_KINDS,
    infrastructure_kinds: options.InfrastructureKinds = options.INFRASTRUCTURE_KINDS,
    refused_kinds: options.RefusedKinds = options.REFUSED_KINDS,
) -> int:
    """Print the windows of all ScheduledMachines asked for."""
    from service.commands import printing, verdicts, windows  # noqa: PLC0415 - help does not wait for pydantic

    policy = ProviderPolicy(
        bootstrap_groups=frozenset(bootstrap_groups),
        infrastructure_groups=frozenset(infrastructure_groups),
        bootstrap_kinds=bootstrap_kinds,
        infrastructure_kinds=infrastructure_kinds,
        refused_kinds=refused_kinds,
    )
    paths, in_cluster = windows.sorted_out(what or [], files or [], namespace)
    if paths:
        span = windows.DayRange.starting(start, days, SystemClock())
        reading = verdicts.judge_all(paths, policy, recursive=recursive, wanted=(names.KIND,))
        found = windows.of_files(reading, span, operator_namespace)
        return printing.print_windows(found, span, output, readable=reading.readable)
    from service.commands import storedwindows  # noqa: PLC0415 - files need no client

    access = options.ClusterChoice(kubeconfig, context)
    place = storedwindows.Stored(in_cluster, namespace, operator_namespace)
    span = windows.DayRange.starting(start, days, storedwindows.clock(place, access))
    found = storedwindows.of_cluster(place, access, policy, span)
    return printing.print_windows(found, span, output)
