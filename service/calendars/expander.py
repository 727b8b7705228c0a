"""Works out calendars in subprocesses, one at a time, and remembers the results by content.

The controller calls it for each version of a calendar, `preview` and `validate` for the files that they are given.
"""

import asyncio
import json
import signal
import sys
from collections import OrderedDict
from datetime import date
from typing import Final

from crds.calendars import CalendarDates, CalendarProblem, UnreadableCalendar
from crds.expansion import Computed, ExpansionRequest, Horizon, expanded, request_for
from crds.schedulecalendar import CalendarSpec
from service.calendars.worker import CPU_SECONDS

WORKER: Final = ("-I", "-m", "service.calendars.worker")
WALL_SECONDS: Final = 60.0
"""Far more than a worker may compute; on a machine that is busy it has to wait."""
REMEMBERED: Final = 256
NO_CONFIG_MAP: Final = "the ConfigMap or key that spec.ics.configMapKeyRef names does not exist or cannot be read"

_TOO_SLOW: Final = f"takes more than {CPU_SECONDS} s of processor time to read; make it smaller"


class Expander:
    """Turns calendars into dates."""

    def __init__(self, python: str = sys.executable, wall_seconds: float = WALL_SECONDS) -> None:
        self._python = python
        self._wall_seconds = wall_seconds
        self._turn = asyncio.Lock()
        self._known: OrderedDict[ExpansionRequest, Computed | str] = OrderedDict()

    async def dates(
        self, who: str, spec: CalendarSpec, today: date, config_map: str | None = None
    ) -> CalendarDates | UnreadableCalendar:
        """The dates of a calendar, or what is wrong with it.

        `who` is its kind and name for messages; `config_map` the text under the key that `spec.ics` names, None if it
        cannot be read.
        """
        if spec.ics and spec.ics.config_map_key_ref and config_map is None:
            return _broken(who, NO_CONFIG_MAP)
        horizon = Horizon.around(today)
        request = request_for(spec, config_map, horizon)
        if request is None:
            return expanded(spec)
        computed = await self._computed(request)
        return _broken(who, f"spec.ics {computed}") if isinstance(computed, str) else expanded(spec, computed, horizon)

    async def _computed(self, request: ExpansionRequest) -> Computed | str:
        async with self._turn:
            if request not in self._known:
                self._known[request] = await self._ask(request)
            self._known.move_to_end(request)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            return self._known[request]

    async def _ask(self, request: ExpansionRequest) -> Computed | str:
        worker = await asyncio.create_subprocess_exec(
            self._python,
            *WORKER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
        )
        try:
            async with asyncio.timeout(self._wall_seconds):
                output, _ = await worker.communicate(json.dumps(request.to_json()).encode())
        except TimeoutError:
            return _TOO_SLOW
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()
        return _understood(worker.returncode, output)


def _understood(code: int | None, output: bytes) -> Computed | str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return _TOO_SLOW
    try:
        answer = json.loads(output) if code == 0 else {"error": f"cannot be read: its reader ended with {code}"}
    except ValueError:
        return "cannot be read: its reader gave no answer"
    return str(answer["error"]) if "error" in answer else Computed.of(answer)


def _broken(who: str, message: str) -> UnreadableCalendar:
    return UnreadableCalendar(CalendarProblem.INVALID, f"{who}: {message}")
