"""`5spot skip`: leaves out the next window of a machine."""

from typing import Final

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0  the override is created
  1  no window is ahead, or you may not override the machine
  2  wrong usage, or the machine cannot be read

Examples:
  5spot skip desk-7 -n team-a                   the next window that opens
  5spot skip desk-7 --reason "office closed"    with a reason, for people"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Creates a ScheduleOverride: the machine stays out of service during its next window. A window that is open now
        runs to its end. The schedule itself does not change.

        A window that is skipped already is not the next one: a second call skips the window after it. Needs the verb
        override on the ScheduledMachine.
    """),
    epilog=EPILOG,
)
def skip(
    *,
    name: options.MachineName,
    reason: options.OverrideReason = "",
    namespace: options.MachineNamespace = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """Create the override, and print what will happen."""
    from service.commands import fleet, overriding  # noqa: PLC0415 - help does not wait for pydantic
    from service.fleet import overriding as overrides  # noqa: PLC0415

    access = options.ClusterChoice(kubeconfig, context)
    asked = fleet.scope(access, namespace, [name])
    return overriding.override(access, asked, lambda machine, now: overrides.skip(machine, now, reason))
