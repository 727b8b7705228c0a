"""Prints the windows of ScheduledMachines as a table or as JSON; for `5spot preview`."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from crds.base import rfc3339
from crds.calendars import CalendarReference, Calendars, Undecidable
from crds.leads import Auto, Lead
from crds.overrides import Override, OverrideSource, OverrideState
from crds.partial import read_partial
from crds.rules import Verdict
from crds.schedule import Schedule, Window
from crds.schedulespec import ExceptionOn, ScheduleSpec
from crds.text import one_line
from crds.values import format_duration
from service.commands.bars import SIGNS, Period, Shade, drawn, local_days, sign, to_midnight
from service.commands.calendars import AvailableCalendars
from service.commands.verdicts import ALLOWED, REJECTED, Judged, exit_code, print_json, verdict_lines
from service.commands.windows import DayRange, PreviewInput
from service.decide.effective import NO_LEADS, Effective, Leads
from service.decide.leads import rules_of, stored_leads
from service.decide.overridden import Opening, Overridden, Span, spans
from service.observe.overrides import labels_of

NAME_MAX: Final = 60
"""How much of a date's name the table shows."""


def print_windows(found: PreviewInput, span: DayRange, output: str, *, readable: bool = True) -> int:
    """Prints the windows of each ScheduledMachine, or why they cannot be known; returns the exit code."""
    shown = [_resolved(each, found.calendars, found.overrides, span) for each in found.judged]
    if output == "json":
        print_json([_data(each) for each in shown])
    else:
        sys.stdout.write("\n".join(_picture(each) for each in shown))
    for refused in found.refused:
        sys.stderr.write("".join(f"{line}\n" for line in verdict_lines(refused)))
    code = exit_code(found.judged, readable=readable)
    undecidable = any(isinstance(each, Unclear) for each in shown)
    return REJECTED if (undecidable or found.refused) and code == ALLOWED else code


@dataclass(frozen=True, slots=True)
class Clear:
    """A schedule whose windows are known."""

    judged: Judged
    spec: ScheduleSpec
    schedule: Schedule
    period: Period
    calendars: Calendars
    leads: Leads = NO_LEADS
    overrides: tuple[Override, ...] = ()

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

    @property
    def lead_times(self) -> Iterator[Window]:
        """When a machine is there before its window or between two, and when it leaves before the close."""
        if self.leads == NO_LEADS:
            return
        start, end = self.period
        plan = Overridden(self.schedule, self.overrides)
        for service in Effective(self.schedule, self.overrides, self.leads).services(start):
            if service.starts >= end:
                return
            first, last = max(service.starts, start), min(service.closes, end)
            found = [] if service.is_skipped else list(_gaps(first, _opening_before(last, plan.openings(first))))
            found.append(Window(max(service.stops, service.opens), service.closes))
            yield from (each for each in found if each.opens < min(each.closes, end) and each.closes > start)

    @property
    def deciding(self) -> Iterator[Span]:
        """The parts of the period during which an override decides."""
        start, end = self.period
        for span in spans(self.overrides):
            if span.override is not None and span.begins < end and span.ends > start:
                yield span._replace(begins=max(span.begins, start), ends=min(span.ends, end))

    def changed(self, state: OverrideState) -> Iterator[Window]:
        """What overrides of a state change: Open adds what lies between windows, Closed removes windows."""
        for span in self.deciding:
            windows = self.schedule.windows(span.begins, span.ends, cut=True)
            if span.state is state is OverrideState.OPEN:
                yield from _gaps(span.begins, [*windows, Window(span.ends, span.ends)])
            elif span.state is state is OverrideState.CLOSED:
                yield from windows


@dataclass(frozen=True, slots=True)
class Unclear:
    """A schedule that names calendars which cannot be read."""

    judged: Judged
    spec: ScheduleSpec
    problems: tuple[tuple[CalendarReference, str], ...]


Resolved = Clear | Unclear | Judged


def _resolved(judged: Judged, source: AvailableCalendars, overrides: OverrideSource, span: DayRange) -> Resolved:
    spec = judged.schedule
    if spec is None:
        return judged
    seen = source.seen_by(judged, spec)
    schedule = spec.resolved(seen)
    if isinstance(schedule, Undecidable):
        return Unclear(judged, spec, tuple(source.explained(judged, schedule)))
    raw = judged.document.content
    leads = rules_of(spec, _grace(judged)).in_force(stored_leads(raw))
    about = overrides.about(judged.namespace, judged.name, labels_of(raw))
    return Clear(judged, spec, schedule, span.period(spec.timezone), seen, leads, about)


def _opening_before(end: datetime, openings: Iterable[Opening]) -> Iterator[Window]:
    for opening in openings:
        if opening.window.opens >= end:
            return
        yield opening.window


def _gaps(start: datetime, windows: Iterable[Window]) -> Iterator[Window]:
    """What lies between a start and the windows after it."""
    for window in windows:
        if start < window.opens:
            yield Window(start, window.opens)
        start = window.closes


def _grace(judged: Judged) -> timedelta:
    """The time that a shutdown takes at most: what the machine says, with its class if that is there."""
    model = judged.verdict.model if isinstance(judged.verdict, Verdict) else None
    if model is not None:
        return model.spec.graceful_shutdown_timeout
    return read_partial(judged.document.content).graceful_shutdown_timeout


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
    shades = {
        Shade.LEAD: longer.lead_times,
        Shade.ADDED: longer.changed(OverrideState.OPEN),
        Shade.REMOVED: longer.changed(OverrideState.CLOSED),
    }
    plain = _plain()
    yield from drawn(longer.windows, zone, longer.period, notes, shades=shades, plain=plain)
    yield from _legend(longer, plain=plain)


def _legend(shown: Clear, *, plain: bool) -> Iterator[str]:
    """What the shades mean."""
    parts = []
    if shown.leads.start:
        parts.append(f"requested {_lead(shown.spec.start_early, shown.leads.start)} before an opening")
    if shown.leads.stop:
        parts.append(f"shut down {_lead(shown.spec.stop_early, shown.leads.stop)} before a close")
    if parts:
        yield f"{sign(Shade.LEAD, plain=plain)} {', '.join(parts)}"
    names = dict.fromkeys(span.override.name for span in shown.deciding if span.override)
    if names:
        added, removed = (sign(shade, plain=plain) for shade in (Shade.ADDED, Shade.REMOVED))
        by = one_line(", ".join(names), NAME_MAX)
        yield f"{added} in service by an override, {removed} out of service by one: {by}"


def _lead(said: Lead | None, amounts_to: timedelta) -> str:
    text = format_duration(amounts_to)
    return f"{text} (Auto)" if said is Auto.AUTO else text


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
