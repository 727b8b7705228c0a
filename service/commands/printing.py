"""Prints the windows of ScheduledMachines as a table or as JSON; for `5spot preview`."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from crds.base import rfc3339
from crds.calendars import CalendarReference, Calendars, Undecidable
from crds.schedule import Schedule, Window
from crds.schedulespec import ExceptionOn, ScheduleSpec
from crds.text import one_line
from service.commands.bars import SIGNS, Period, drawn, local_days, to_midnight
from service.commands.calendars import CalendarSource
from service.commands.verdicts import ALLOWED, REJECTED, Judged, exit_code, print_json, verdict_lines
from service.commands.windows import DayRange, Found

NAME_MAX: Final = 60
"""How much of a date's name the table shows."""


def print_windows(found: Found, span: DayRange, output: str, *, readable: bool = True) -> int:
    """Prints the windows of each ScheduledMachine, or why they cannot be known; returns the exit code."""
    shown = [_resolved(each, found.calendars, span) for each in found.judged]
    if output == "json":
        print_json([_data(each) for each in shown])
    else:
        sys.stdout.write("\n".join(_picture(each) for each in shown))
    code = exit_code(found.judged, readable=readable)
    undecidable = any(isinstance(each, Unclear) for each in shown)
    return REJECTED if undecidable and code == ALLOWED else code


@dataclass(frozen=True, slots=True)
class Clear:
    """A schedule whose windows are known."""

    judged: Judged
    spec: ScheduleSpec
    schedule: Schedule
    period: Period
    calendars: Calendars

    @property
    def exceptions(self) -> Iterator[tuple[date, ExceptionOn]]:
        """The dates of the period on which an exception decides."""
        for day in local_days(self.period, self.spec.timezone) if self.spec.exceptions else ():
            found = self.spec.exception_on(day, self.calendars)
            if found is not None:
                yield day, found

    @property
    def windows(self) -> list[Window]:
        """The windows that touch the period, whole."""
        return list(self.schedule.windows(self.period.start, self.period.end))


@dataclass(frozen=True, slots=True)
class Unclear:
    """A schedule that names calendars which cannot be read."""

    judged: Judged
    spec: ScheduleSpec
    problems: tuple[tuple[CalendarReference, str], ...]


Resolved = Clear | Unclear | Judged


def _resolved(judged: Judged, source: CalendarSource, span: DayRange) -> Resolved:
    machine = judged.machine
    if machine is None:
        return judged
    spec = machine.spec.schedule
    seen = source.seen_by(judged, spec)
    schedule = spec.resolved(seen)
    if isinstance(schedule, Undecidable):
        return Unclear(judged, spec, tuple(source.explained(judged, schedule)))
    return Clear(judged, spec, schedule, span.period(spec.timezone), seen)


def _data(shown: Resolved) -> dict[str, Any]:
    if isinstance(shown, Judged):
        return shown.to_json()
    known = {
        "name": shown.judged.name,
        "namespace": shown.judged.namespace,
        "timezone": str(shown.spec.timezone),
        "enabled": shown.spec.enabled,
    }
    if isinstance(shown, Unclear):
        return known | {"undecidable": [_problem(*each) for each in shown.problems]}
    return known | {
        "windows": [_window(each, shown.period) for each in shown.windows],
        "exceptions": [_exception(*each) for each in shown.exceptions],
    }


def _problem(reference: CalendarReference, message: str) -> dict[str, Any]:
    return {"calendar": {"kind": reference.kind.value, "name": reference.name}, "message": message}


def _exception(day: date, exception: ExceptionOn) -> dict[str, str]:
    shown = {"date": day.isoformat(), "state": exception.state.value}
    return {**shown, "name": exception.name} if exception.name else shown


def _window(window: Window, period: Period) -> dict[str, Any]:
    """The part of a window within the period; `cut` says which of its ends are not the window's own."""
    outside = {"opens": window.opens < period.start, "closes": window.closes > period.end}
    cut = [end for end, is_outside in outside.items() if is_outside]
    part = window.cut(period.start, period.end)
    shown = {"opens": rfc3339(part.opens), "closes": rfc3339(part.closes)}
    return {**shown, "cut": cut} if cut else shown


def _picture(shown: Resolved) -> str:
    if isinstance(shown, Judged):
        return "".join(f"{line}\n" for line in verdict_lines(shown))
    lines = _problem_lines(shown) if isinstance(shown, Unclear) else _table(shown)
    return "".join(f"{line}\n" for line in lines)


def _problem_lines(shown: Unclear) -> Iterator[str]:
    yield f"{shown.judged.namespace}/{shown.judged.name}: its windows cannot be known without all of its calendars"
    yield from (f"  {message}" for _, message in shown.problems)


def _table(shown: Clear) -> Iterator[str]:
    zone = shown.spec.timezone
    paused = "" if shown.spec.enabled else ", disabled"
    yield f"{shown.judged.namespace}/{shown.judged.name}: {shown.schedule.describe()}{paused}"
    longer = replace(shown, period=to_midnight(shown.period, zone))
    notes = {day: _note(exception) for day, exception in longer.exceptions}
    yield from drawn(longer.windows, zone, longer.period, notes, plain=_plain())


def _note(exception: ExceptionOn) -> str:
    """What the table says of a date on which an exception decides."""
    state = exception.state.value.lower()
    return f"{state}: {one_line(exception.name, NAME_MAX)}" if exception.name else state


def _plain() -> bool:
    """Whether the terminal cannot show block characters."""
    try:
        SIGNS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
