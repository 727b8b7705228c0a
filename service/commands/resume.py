"""`5spot resume`: returns a machine to its schedule."""

from typing import Final

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0  the machine follows its schedule
  1  you may not delete or create an override, or acknowledge the reclaim
  2  wrong usage, or the machine cannot be read

Examples:
  5spot resume desk-7 -n team-a    end what extend, suspend or skip began"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Deletes the ScheduleOverrides in force that name only this machine. An override that also names or selects other
        machines stays; a new one with state Scheduled returns this machine to its schedule. If no override is in force,
        deletes those that the operator did not accept; if there is none, those that begin later, such as one that skips
        a window.

        Acknowledges an emergency reclaim, where the operator demands that (reclaimReenable: Acknowledged).
    """),
    epilog=EPILOG,
)
def resume(
    *,
    name: options.MachineName,
    reason: options.OverrideReason = "",
    namespace: options.MachineNamespace = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> int:
    """End the overrides, and print what will happen."""
    from service.commands import fleet, overriding  # noqa: PLC0415 - help does not wait for pydantic
    from service.fleet import overriding as overrides  # noqa: PLC0415

    access = options.ClusterChoice(kubeconfig, context)
    asked = fleet.scope(access, namespace, [name])
    return overriding.resume(access, asked, lambda machine, now: overrides.resumption(machine, now, reason))
