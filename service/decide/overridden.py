"""The schedule with its overrides: which of them decides when, and the windows that come out of that.

Leads are not part of it; `service.decide.effective` adds them.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple

from crds.overrides import Override, OverrideState
from crds.schedule import EVER, FOREVER, Schedule, Window

_TICK: Final = timedelta(microseconds=1)


class Span(NamedTuple):
    """A time during which the same override decides, or none."""

    begins: datetime
    ends: datetime
    override: Override | None

    @property
    def state(self) -> OverrideState:
        """What decides: an override, or the schedule."""
        return self.override.state if self.override else OverrideState.SCHEDULED


class Opening(NamedTuple):
    """A window, and the earliest moment at which its machine may be requested: not within a closed span."""

    window: Window
    not_before: datetime


@lru_cache(maxsize=1024)
def spans(overrides: tuple[Override, ...]) -> tuple[Span, ...]:
    """All time, cut where another override begins to decide."""
    ranked = sorted(overrides, key=lambda each: each.rank, reverse=True)
    edges = sorted({EVER, FOREVER, *(each.begins for each in overrides), *(each.ends for each in overrides)})
    begun = sorted(range(len(ranked)), key=lambda place: ranked[place].begins, reverse=True)
    in_force: list[int] = []
    found: list[Span] = []
    for begins, ends in pairwise(edges):
        while begun and ranked[begun[-1]].begins <= begins:
            heappush(in_force, begun.pop())
        while in_force and ranked[in_force[0]].ends <= begins:
            heappop(in_force)
        newest = ranked[in_force[0]] if in_force else None
        if found and found[-1].override is newest:
            found[-1] = Span(found[-1].begins, ends, newest)
        else:
            found.append(Span(begins, ends, newest))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Overridden:
    """A schedule, None if it cannot be read, and the overrides of one machine."""

    schedule: Schedule | None
    overrides: tuple[Override, ...] = ()

    def span(self, moment: datetime) -> Span:
        """The span around a moment."""
        return spans(self.overrides)[self._place(moment)]

    def openings(self, since: datetime) -> Iterator[Opening]:
        """The windows from a moment on, merged; one that is open at that moment begins there."""
        if not self.overrides:
            yield from self._unmerged(since)
            return
        pending: Opening | None = None
        for opening in self._unmerged(since):
            if pending is not None and opening.window.opens <= pending.window.closes:
                window = Window(pending.window.opens, opening.window.closes)
                pending = Opening(window, pending.not_before)
                continue
            if pending is not None:
                yield pending
            pending = opening
        if pending is not None:
            yield pending

    def opened(self, moment: datetime) -> datetime:
        """When the window around a moment opened, as far as the known overrides tell."""
        for span in reversed(spans(self.overrides)[: self._place(moment) + 1]):
            window = self._last(span, min(moment, span.ends - _TICK))
            if window is None:
                return span.ends
            if window.opens > span.begins:
                return window.opens
            moment = span.begins
        return EVER

    def _last(self, span: Span, moment: datetime) -> Window | None:
        """The window of a span around a moment, which the span contains."""
        if span.state is OverrideState.OPEN:
            return Window(span.begins, span.ends)
        if span.state is OverrideState.CLOSED or self.schedule is None:
            return None
        return self.schedule.current_window(moment)

    def _unmerged(self, since: datetime) -> Iterator[Opening]:
        known = spans(self.overrides)
        first = self._place(since)
        not_before = EVER
        for span in known[first:]:
            if span.state is OverrideState.CLOSED:
                not_before = span.ends
                continue
            for window in self._windows(span, since):
                yield Opening(window, not_before)

    def _windows(self, span: Span, since: datetime) -> Iterator[Window]:
        begins = max(span.begins, since)
        if span.state is OverrideState.OPEN:
            yield Window(begins, span.ends)
        elif self.schedule is not None:
            yield from self.schedule.windows(begins, span.ends, cut=True)

    def _place(self, moment: datetime) -> int:
        return bisect_right(spans(self.overrides), moment, key=lambda span: span.begins) - 1
