"""`5spot run`: the operator itself."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Final

from service.imports import import_libraries, without_collection
from service.settings import Settings, add_flags, from_flags

DESCRIPTION: Final = "Runs the operator: admission webhooks, controller, health and metrics in one process."
EPILOG: Final = """
Each flag can also be set by the environment variable in brackets. The flag wins.

Examples:
  5spot run --log-format console                logs for people
  5spot run --no-webhooks --namespaces team-a   one namespace, without webhooks"""


def parser() -> argparse.ArgumentParser:
    """One flag for every setting."""
    made = argparse.ArgumentParser(
        prog="5spot run", usage="%(prog)s [OPTIONS]", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False
    )
    add_flags(made)
    return made


def main(argv: Sequence[str]) -> int:
    """Runs the operator until a signal ends it."""
    _run(from_flags(parser().parse_args(argv)))
    return 0


def _run(settings: Settings) -> None:
    # Only now: help and completion do not wait for the servers and the controller.
    with without_collection():
        import_libraries()
        import uvloop  # noqa: PLC0415

        from service import app, log  # noqa: PLC0415
        from service.runtime import memory  # noqa: PLC0415

    log.configure(settings.log_level, settings.log_format)
    memory.configure()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(app.run(settings))
