"""Runs `5spot top`: a watch fills the list, keys change the view, and both redraw the screen."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rich.console import Console
from rich.live import Live

from service import log
from service.commands import fleet, keys
from service.commands.fleet import Scope
from service.commands.options import OPERATOR_NAMESPACE, ClusterChoice
from service.commands.table import UsageError
from service.commands.topscreen import Size, frame
from service.fleet import forecast, requests
from service.fleet.board import Board, Wish, pressed
from service.fleet.live import Bell, LiveView
from service.fleet.overriding import PointlessError, extension, skip
from service.fleet.requests import RefusedError
from service.fleet.summary import Summary
from service.kube.client import Client
from service.kube.errors import KubeError
from service.kube.resource import SCHEDULED_MACHINES

FIRST_LIST_SECONDS: Final = 20.0
EXTENSION: Final = timedelta(hours=1)
REDRAW_SECONDS: Final = 1.0
"""Clocks on the screen move on without news."""
NOT_A_TERMINAL: Final = "5spot top needs a terminal; for a file or another program use 5spot status"


async def show(access: ClusterChoice, scope: Scope) -> None:
    """Shows the machines until the user quits."""
    if not sys.stdout.isatty():
        raise UsageError(NOT_A_TERMINAL)
    log.configure("critical")  # the screen says what is wrong
    async with await fleet.connected(access) as client:
        view = LiveView(client, SCHEDULED_MACHINES, _summary, namespace=scope.namespace)
        watching = asyncio.create_task(view.run())
        try:
            with fleet.readable("ScheduledMachines"):
                await view.synced(FIRST_LIST_SECONDS)
            await Top(client, access, scope, view).run()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


def _summary(raw: fleet.Raw) -> Summary:
    return Summary.read(raw).without_details()


class Top:
    """The screen and its keys."""

    def __init__(self, client: Client, access: ClusterChoice, scope: Scope, view: LiveView[Summary]) -> None:
        self._client = client
        self._access = access
        self._scope = scope
        self._view = view
        self._bell = Bell()
        self._board = Board()
        self._quit = False
        self._work: set[asyncio.Task[None]] = set()
        view.listen(self._bell.ring)

    async def run(self) -> None:
        """Draws until the user quits."""
        console = Console()
        with Live(console=console, screen=True, auto_refresh=False) as live, keys.reading(self._press):
            while not self._quit:
                size = Size(console.size.width, console.size.height)
                fleet_now = list(self._view.shown.values())
                shown = self._board.filter.chosen(fleet_now)
                now = self._scope.clock.now()
                live.update(frame(self._board, fleet_now, shown, now, size, self._view.problem), refresh=True)
                await self._bell.wait(REDRAW_SECONDS)

    def _shown(self) -> Sequence[Summary]:
        return self._board.filter.chosen(self._view.shown.values())

    def _press(self, key: str) -> None:
        shown = self._shown()
        self._board, wish = pressed(self._board, key, shown)
        chosen = self._board.chosen(shown)
        if wish is Wish.QUIT:
            self._quit = True
        elif wish is not None and chosen is not None:
            task = asyncio.create_task(self._fulfil(wish, chosen))
            self._work.add(task)
            task.add_done_callback(self._work.discard)
        self._bell.ring()

    async def _fulfil(self, wish: Wish, chosen: Summary) -> None:
        self._note("…")
        asked = replace(self._scope, namespace=chosen.namespace, wanted=(chosen.name,))
        try:
            self._note(*await (self._explained(asked) if wish is Wish.WHY else self._overridden(wish, asked)))
        except KubeError as error:
            self._note(error.message)
        except (UsageError, PointlessError, RefusedError) as error:
            self._note(str(error))

    async def _overridden(self, wish: Wish, asked: Scope) -> Sequence[str]:
        raw = await fleet.read_machine(self._client, asked, asked.wanted[0])
        stored = await fleet.read_calendars(self._client, raw)
        now = self._scope.clock.now()
        shelf = await stored.shelf(now.date(), OPERATOR_NAMESPACE)
        machine = await requests.read_machine(self._client, raw, shelf, now)
        draft = extension(machine, EXTENSION, now) if wish is Wish.EXTEND else skip(machine, now)
        created = await requests.create(self._client, draft, now)
        return [*forecast.after_draft(machine, draft, now), *created.warnings]

    async def _explained(self, asked: Scope) -> Sequence[str]:
        found = await fleet.read_explanation(self._access, asked)
        rule = [f"Rule: {found.rule}: {found.does}"] if found.rule else [f"Not read: {each}" for each in found.unread]
        return [found.headline, *rule, *(f"→ {each}" for each in found.changes)]

    def _note(self, *lines: str) -> None:
        self._board = replace(self._board, notes=lines)
        self._bell.ring()
