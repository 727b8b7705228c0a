"""`5spot extend`: keeps a machine in service beyond its window, or puts it into service now."""

from typing import Final

import typer

from service.commands import options
from service.commands.help import ReadableCommand, paragraphs

app = typer.Typer(add_completion=False)

EPILOG: Final = """
Exit codes:
  0  the override is created
  1  it would change nothing, or you may not override the machine
  2  wrong usage, or the machine cannot be read

Examples:
  5spot extend desk-7 --until 22:00               stay until ten tonight
  5spot extend desk-7 --for 2h -n team-a          two hours beyond the close
  5spot extend desk-7 --until 2026-11-20T22:00    until a time on your clock"""


@app.command(
    cls=ReadableCommand,
    help=paragraphs("""
        Creates a ScheduleOverride that keeps the machine in service until the given time, whatever its schedule says.
        The schedule itself does not change.

        --until is a time on your clock, tomorrow if it has passed today. --for counts from the close of the window,
        or from now if none is open. Needs the verb override on the ScheduledMachine.
    """),
    epilog=EPILOG,
)
def extend(  # noqa: PLR0913 - one parameter for each option
    *,
    name: options.MachineName,
    until: options.OverrideUntil = None,
    length: options.OverrideLength = None,
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
    end = overriding.ending(until, length, asked)
    return overriding.override(access, asked, lambda machine, now: overrides.extension(machine, end, now, reason))
