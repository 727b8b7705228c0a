"""`5spot run`: the operator itself."""

import argparse
import asyncio
from typing import Any

import uvloop

from service import app, log
from service.controller import wiring
from service.runtime import memory
from service.settings import add_flags, from_flags

# The controller and whatever else runs beside the servers; see `service.app.Component`.
FACTORIES: tuple[app.Factory, ...] = (wiring.component,)


def register(subparsers: Any) -> None:
    """Adds the command and a flag for every setting."""
    parser = subparsers.add_parser(
        "run",
        description="Runs the operator: admission webhooks, controller, health and metrics in one process.",
        epilog="Each flag can also be given as the environment variable in brackets; the flag wins.",
        allow_abbrev=False,
    )
    add_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Runs until a signal ends it."""
    settings = from_flags(args)
    log.configure(settings.log_level, settings.log_format)
    memory.configure()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(app.run(settings, FACTORIES if settings.controller else ()))
    return 0
