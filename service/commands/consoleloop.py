"""Runs `5spot console` until Ctrl-C."""

import asyncio
import contextlib
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from service import log
from service.commands import fleet
from service.commands.options import OPERATOR_NAMESPACE, ClusterChoice
from service.commands.table import UsageError
from service.console.local import serving
from service.console.viewer import ViewPlace


async def serve(access: ClusterChoice, scope: fleet.Scope, port: int, *, open_browser: bool) -> None:
    """Serves until a signal ends it."""
    log.configure("error", "console")
    client = await fleet.connected(access)
    place = ViewPlace(client, scope.clock, scope.namespace, OPERATOR_NAMESPACE)
    try:
        with fleet.readable("ScheduledMachines"):
            async with serving(place, port) as entrance:
                with _opened(entrance.address) if open_browser else contextlib.nullcontext():
                    sys.stdout.write(f"The console: {entrance.address}\nIt opens once, in one browser. Ctrl-C ends.\n")
                    sys.stdout.flush()
                    await ended_by_signal()
    except OSError as error:
        raise UsageError(error.strerror or str(error)) from None


@contextlib.contextmanager
def _opened(address: str) -> Iterator[None]:
    """Opens a browser by way of a file that only the user can read: command lines are visible to everyone."""
    with tempfile.TemporaryDirectory(prefix="5spot-") as folder:
        page = Path(folder) / "console.html"
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">')
        webbrowser.open(page.as_uri())
        yield


async def ended_by_signal() -> None:
    """Waits for Ctrl-C, or for the signal that ends a pod."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, ended.set)
    await ended.wait()
