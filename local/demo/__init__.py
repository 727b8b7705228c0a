"""The command `5spot demo`: four schedules at work on a throw-away control plane, a day in two minutes."""

import argparse
import sys
from typing import Any

from local.arguments import speed
from local.errors import LocalError

SPEED = 720.0
DESCRIPTION = """\
Starts two real Kubernetes clusters with Cluster API and simulated hosts on this machine, runs the operator on a fast
clock, and shows what becomes of four ScheduledMachines from a Friday morning to Saturday noon: one for office hours,
one for the night with taints, one for the weekend by cron, and one whose provider refuses it. On a terminal it goes on
until Ctrl-C; elsewhere, or with --once, it ends by itself. Nothing is left behind."""


def register(subparsers: Any) -> None:
    """Adds `demo`."""
    parser = subparsers.add_parser(
        "demo", help="watch schedules at work", description=DESCRIPTION, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--once", action="store_true", help="end when everything has happened; exit code 1 if something did not"
    )
    parser.add_argument(
        "--speed", type=speed, default=SPEED, metavar="N", help=f"how much faster time runs (default: {SPEED:g})"
    )


def run(args: argparse.Namespace) -> int:
    """Shows everything and stops everything."""
    # Only now: --help should not wait for the libraries that this pulls in.
    from local.demo.show import show  # noqa: PLC0415

    try:
        return show(args.speed, once=args.once or not sys.stdout.isatty())
    except LocalError as error:
        sys.stderr.write(f"5spot: {error}\n")
        return 1
