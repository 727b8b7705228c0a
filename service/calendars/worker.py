"""The subprocess that works out holidays and ICS: `python -m service.calendars.worker`, JSON in, JSON out.

It limits itself before it looks at its input, so that a hostile calendar costs its bound and nothing more.
"""

import json
import math
import resource
import signal
import sys
import time
from datetime import date
from typing import Any, Final

CPU_SECONDS: Final = 2
MEMORY_BYTES: Final = 256 * 1024 * 1024
INPUT_MAX: Final = 8 * 1024 * 1024
ENTRIES_MAX: Final = 10_000


def main() -> int:
    """Answer one request."""
    request = json.loads(sys.stdin.buffer.read(INPUT_MAX))
    sys.stdout.write(json.dumps(_answer(request)))
    return 0


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return _worked_out(request)
    except MemoryError:
        return {"error": f"takes more than {MEMORY_BYTES // 2**20} MB of memory to read; make it smaller"}
    except RecursionError:
        return {"error": "is nested too deeply"}


def _worked_out(request: dict[str, Any]) -> dict[str, Any]:
    first, last = date.fromisoformat(request["first"]), date.fromisoformat(request["last"])
    days: list[list[Any]] = []
    events: list[list[Any]] = []
    known_until = last
    if request["country"] is not None:
        from service.calendars import publicholidays  # noqa: PLC0415 - only who needs it pays for it

        days += publicholidays.holidays_of(request["country"], request["subdivision"], first, last)
        known_until = publicholidays.known_until(request["country"], first, last)
    if request["ics"] is not None:
        from service.calendars.ics import BrokenCalendar, dates_of  # noqa: PLC0415

        _limit()
        try:
            found = dates_of(request["ics"], first, last)
        except BrokenCalendar as error:
            return {"error": str(error)}
        days, events = days + found[0], events + found[1]
    if len(days) + len(events) > ENTRIES_MAX:
        return {"error": f"names more than {ENTRIES_MAX} dates in the years {first.year} to {last.year}"}
    return {"days": days, "events": events, "last": known_until.isoformat()}


def _limit() -> None:
    """From here on: so much processor time and memory, no files and no core dump."""
    used = math.ceil(time.process_time())
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (used + CPU_SECONDS, used + CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
