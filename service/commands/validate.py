"""`5spot validate`: the admission webhook's verdict on manifests, offline."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from crds.providers import ProviderPolicy
from service.commands import options
from service.commands.help import ReadableCommand, paragraphs
from service.commands.table import UsageError

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0   every ScheduledMachine, calendar, override and class is allowed
  1   at least one of them is rejected
  2   wrong usage, a file that cannot be read, or nothing to check
  70  a bug in 5spot

Examples:
  5spot validate machines/ -R                    with subdirectories
  5spot validate -f desk-7.yaml -o json          a verdict for programs
  5spot validate desk-7.yaml -f class.yaml       with its class
  kubectl get sm -A -o yaml | 5spot validate -   standard input"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Checks ScheduledMachines, calendars, overrides and ScheduledMachineClasses without a cluster, with the same
        rules as the admission webhook. Objects of other kinds are skipped.

        Parameters are checked if the file of their class is given too. With the manifest of a Namespace, so is what
        its labels allow.

        Of a calendar in the iCalendar format the webhook reads only the size. Here a warning says if no schedule could
        use it; give the file of its ConfigMap too. Another names a calendar without any date, as of a country of which
        no holidays are known.
    """),
    epilog=EPILOG,
)
def validate(  # noqa: PLR0913 - one parameter for each option
    *,
    paths: Annotated[list[str] | None, typer.Argument(metavar="FILE", help=options.FILES_HELP)] = None,
    files: options.Files = None,
    recursive: options.Recursive = False,
    output: options.Output = "text",
    bootstrap_groups: options.BootstrapGroups = options.BOOTSTRAP_GROUPS,
    infrastructure_groups: options.InfrastructureGroups = options.INFRASTRUCTURE_GROUPS,
    bootstrap_kinds: options.BootstrapKinds = options.BOOTSTRAP_KINDS,
    infrastructure_kinds: options.InfrastructureKinds = options.INFRASTRUCTURE_KINDS,
    refused_kinds: options.RefusedKinds = options.REFUSED_KINDS,
    max_override_days: options.MaxOverrideDays = options.MAX_OVERRIDE_DAYS,
) -> int:
    """Check all documents and print the verdicts."""
    from service.commands import verdicts  # noqa: PLC0415 - help does not wait for pydantic

    given = [*(paths or ()), *(files or ())]
    if not given:
        raise UsageError("name at least one FILE, or - for standard input")
    policy = ProviderPolicy(
        bootstrap_groups=frozenset(bootstrap_groups),
        infrastructure_groups=frozenset(infrastructure_groups),
        bootstrap_kinds=bootstrap_kinds,
        infrastructure_kinds=infrastructure_kinds,
        refused_kinds=refused_kinds,
    )
    reading = verdicts.judge_all(given, policy, recursive=recursive)
    now = datetime.now(UTC)
    judged = verdicts.with_vain_ends(reading.judged, now, timedelta(days=max_override_days))
    if any(each.calendar and (each.calendar.ics or each.calendar.holidays) for each in judged):
        from service.commands import calendars  # noqa: PLC0415 - only these need a process of their own

        judged = calendars.with_calendar_warnings(judged, reading.contents, now.date())
    verdicts.print_verdicts(judged, output)
    return verdicts.exit_code(judged, readable=reading.readable)
