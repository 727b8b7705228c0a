"""Works out calendars in subprocesses, one at a time, and remembers the results by content.

The controller calls it for each version of a calendar, `preview` and `validate` for the files that they are given.
"""

import asyncio
import json
import signal
import sys
from collections import OrderedDict
from datetime import date
from hashlib import sha256
from typing import Final
from weakref import WeakValueDictionary

from crds.calendars import CalendarDates, CalendarProblem, UnreadableCalendar
from crds.expansion import Computed, ExpansionRequest, Horizon, expanded, request_for
from crds.schedulecalendar import CalendarSpec
from service.calendars.worker import CPU_SECONDS, INPUT_MAX

WORKER: Final = ("-I", "-m", "service.calendars.worker")
WALL_SECONDS: Final = 60.0
"""Far more than a worker may compute; on a machine that is busy it has to wait."""
BROKEN_REMEMBERED: Final = 1000
NO_CONFIG_MAP: Final = "the ConfigMap or key that spec.ics.configMapKeyRef names does not exist or cannot be read"

_TOO_LARGE: Final = "is too large to be read; make it smaller"
_TOO_SLOW: Final = f"takes more than {CPU_SECONDS} s of processor time to read; make it smaller"


class _NoTurnError(Exception):
    """The worker got too little of a busy machine's processor time; its calendar may be as good as any."""


class Expander:
    """Turns calendars into dates."""

    def __init__(self, python: str = sys.executable, wall_seconds: float = WALL_SECONDS) -> None:
        self._python = python
        self._wall_seconds = wall_seconds
        self._turn = asyncio.Lock()
        self._read: WeakValueDictionary[bytes, CalendarDates] = WeakValueDictionary()
        """By content, as long as the caller keeps the dates: what no calendar holds any more takes no memory."""
        self._broken: OrderedDict[bytes, str] = OrderedDict()

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
        try:
            async with self._turn:
                found = await self._worked_out(spec, request)
        except _NoTurnError:
            return _broken(who, f"could not be read within {self._wall_seconds:g} s on a busy machine", passing=True)
        return _broken(who, f"spec.ics {found}") if isinstance(found, str) else found

    async def _worked_out(self, spec: CalendarSpec, request: ExpansionRequest) -> CalendarDates | str:
        content = _digest(spec, request)
        known = self._read.get(content) or self._broken.get(content)
        if known is not None:
            return known
        computed = await self._ask(request)
        if isinstance(computed, Computed):
            found = self._read[content] = expanded(spec, computed)
            return found
        self._broken[content] = computed
        while len(self._broken) > BROKEN_REMEMBERED:
            self._broken.popitem(last=False)
        return computed

    async def _ask(self, request: ExpansionRequest) -> Computed | str:
        question = json.dumps(request.to_json()).encode()
        if len(question) > INPUT_MAX:
            return _TOO_LARGE
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
                output, _ = await worker.communicate(question)
        except TimeoutError:
            raise _NoTurnError from None
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()
        return _understood(worker.returncode, output)


def _digest(spec: CalendarSpec, request: ExpansionRequest) -> bytes:
    """Says what a calendar holds; the text itself may be a mebibyte, and is not kept."""
    plain = spec.model_copy(update={"ics": None, "holidays": None})
    return sha256(json.dumps([plain.to_json(), request.to_json()]).encode()).digest()


def _understood(code: int | None, output: bytes) -> Computed | str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return _TOO_SLOW
    try:
        answer = json.loads(output) if code == 0 else {"error": f"cannot be read: its reader ended with {code}"}
    except ValueError:
        return "cannot be read: its reader gave no answer"
    return str(answer["error"]) if "error" in answer else Computed.of(answer)


def _broken(who: str, message: str, *, passing: bool = False) -> UnreadableCalendar:
    return UnreadableCalendar(CalendarProblem.INVALID, f"{who}: {message}", passing=passing)
