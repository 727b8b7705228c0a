"""Server-sent events: what changed, collected for a moment, as rows that a page can use at once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import orjson

from service.clock import Clock
from service.console.viewer import Viewer
from service.fleet.live import Bell
from service.fleet.timeline import milliseconds
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.key import Key

TOGETHER_SECONDS: Final = 0.15
"""Changes within this time go out together: thousands at a window's opening are few messages."""
SILENCE_SECONDS: Final = 15.0
"""A message at least this often, so that both ends notice a dead connection."""
MANY: Final = 1000
"""With more changes than this a page reads everything again."""

FIRST_ID: Final = b"id: 1\n"
"""A browser that connects again by itself repeats the id in a header, and so says that its page was open before."""
RESUMED: Final = "last-event-id"


class Feed:
    """What one open page has not been sent yet; `resumed` says that it missed what changed since its last feed."""

    def __init__(self, viewer: Viewer, *, resumed: bool = False) -> None:
        self._viewer = viewer
        self._resumed = resumed
        self._bell = Bell()
        self._machines: set[Key] = set()
        self._kinds: set[str] = set()

    async def messages(self) -> AsyncIterator[bytes]:
        """Messages, until the page is closed."""
        self._viewer.listen(self._changed)
        try:
            yield FIRST_ID + self._message(everything=self._resumed)
            while not self._viewer.ended:
                await self._bell.wait(SILENCE_SECONDS)
                await asyncio.sleep(TOGETHER_SECONDS)
                yield self._message()
        finally:
            self._viewer.unlisten(self._changed)

    def _changed(self, kind: str, key: Key) -> None:
        if kind == SCHEDULED_MACHINES.kind:
            self._machines.add(key)
        elif kind:
            self._kinds.add(kind)
        self._bell.ring()

    def _message(self, *, everything: bool = False) -> bytes:
        machines, kinds = self._machines, self._kinds
        self._machines, self._kinds = set(), set()
        shown = self._viewer.machines.shown
        head = {**clock_data(self._viewer.clock), "kinds": sorted(kinds), "problem": self._viewer.problem}
        if everything or len(machines) > MANY:
            return b"data: " + orjson.dumps({**head, "all": True}) + b"\n\n"
        gone = [str(key) for key in machines if key not in shown]
        rows = b",".join(shown[key] for key in machines if key in shown)
        return b"data: " + orjson.dumps({**head, "gone": gone})[:-1] + b',"rows":[' + rows + b"]}\n\n"


def clock_data(clock: Clock) -> dict[str, float]:
    """The time of schedules, and how fast it runs."""
    second = clock.real_seconds(timedelta(hours=1)) / 3600
    return {"now": milliseconds(clock.now()), "speed": 1 / second if second else 1.0}
