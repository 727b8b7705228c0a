"""The command `5spot demo`: seven schedules at work on a throw-away control plane, a day in two minutes."""

import sys
from typing import Annotated, Final

import typer

from local.arguments import speed
from local.errors import LocalError
from service.commands.help import ReadableCommand, paragraphs
from service.commands.table import FAILED

app = typer.Typer(add_completion=False)

SPEED: Final = 720.0
DESCRIPTION: Final = """
Starts two real Kubernetes clusters with Cluster API and simulated hosts on this machine, runs the operator on a fast
clock, and shows seven ScheduledMachines from a Friday morning to Saturday noon: one for office hours, one that is due
at the same time and waits for its turn, one for the night with taints, one for the weekend by cron, one that its
provider rejects, one that is out for a holiday, and one whose owner takes it back: a process starts on this machine,
and the real agent finds it. At the end it prints what 5spot report says of them.

On a terminal the demo runs until Ctrl-C; elsewhere, or with --once, it ends by itself. It stops everything that it
started. The first run builds the programs, which takes several minutes.
"""
EPILOG: Final = """
Exit codes:
  0    everything happened as expected
  1    something did not happen, or the control plane could not start
  130  stopped by Ctrl-C

Examples:
  5spot demo                      until Ctrl-C
  5spot demo --once --speed 360   one day in four minutes"""


@app.command(cls=ReadableCommand, help=paragraphs(DESCRIPTION), epilog=EPILOG)
def demo(
    *,
    once: Annotated[bool, typer.Option("--once", help="End when everything has happened.")] = False,
    factor: Annotated[
        float,
        typer.Option(
            "--speed",
            metavar="N",
            parser=speed,
            help=f"How many times faster time passes. Default: {SPEED:g}.",
            show_default=False,
        ),
    ] = SPEED,
) -> int:
    """Show everything, then stop everything."""
    # Only now: help does not wait for these libraries.
    from local.demo.show import show  # noqa: PLC0415

    try:
        return show(factor, once=once or not sys.stdout.isatty())
    except LocalError as error:  # its message may have several lines, such as the end of a log
        typer.echo(f"5spot: {error}", err=True)
        return FAILED
