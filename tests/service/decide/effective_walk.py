"""An oracle for `service.decide.effective`: walks minute by minute, by the letter of docs/leads.md.

Shares no code with it: it paints minutes, finds their runs and moves the ends of those.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from crds.overrides import Override

MINUTE = timedelta(minutes=1)


class Walk(NamedTuple):
    """What holds for each minute of a period."""

    since: datetime
    wanted: list[bool]

    def at(self, moment: datetime) -> int:
        return (moment - self.since) // MINUTE

    def flips_after(self, moment: datetime) -> datetime | None:
        """The first minute that differs from the one given, if the period has one."""
        place = self.at(moment)
        for later in range(place + 1, len(self.wanted)):
            if self.wanted[later] != self.wanted[place]:
                return self.since + later * MINUTE
        return None

    def starts_after(self, moment: datetime) -> datetime | None:
        """The first minute after the one given that is wanted while the one before it is not."""
        for later in range(self.at(moment) + 1, len(self.wanted)):
            if self.wanted[later] and not self.wanted[later - 1]:
                return self.since + later * MINUTE
        return None


def walk(
    covers: Callable[[datetime], bool],
    overrides: Sequence[Override],
    leads: tuple[int, int],
    since: datetime,
    end: datetime,
) -> Walk:
    """Minutes from `since` to `end`; leads are minutes before the opening and before the close."""
    minutes = [since + place * MINUTE for place in range((end - since) // MINUTE)]
    states = _states(overrides, since, len(minutes))
    target = [_painted(state, covers(minute)) for state, minute in zip(states, minutes, strict=True)]
    wanted = [False] * len(minutes)
    for first, last, opens in _chains(_runs(target), states, leads[0]):
        stops = last - leads[1]
        if stops > opens:
            wanted[first:stops] = [True] * (stops - first)
    return Walk(since, wanted)


def _states(overrides: Sequence[Override], since: datetime, count: int) -> list[str]:
    """The state of the newest in force: each in turn paints over the older ones."""
    states = ["Scheduled"] * count
    for each in sorted(overrides, key=lambda one: (one.created, one.name)):
        first, last = ((moment - since) // MINUTE for moment in (each.begins, each.ends))
        states[first:last] = [str(each.state)] * (last - first)
    return states


def _painted(state: str, scheduled: bool) -> bool:
    return {"Open": True, "Closed": False}.get(state, scheduled)


def _runs(target: Sequence[bool]) -> list[tuple[int, int]]:
    edges = [place for place in range(1, len(target)) if target[place] != target[place - 1]]
    starts = [0, *edges] if target[0] else edges
    marks = starts if len(starts) % 2 == 0 else [*starts, len(target)]
    return list(zip(marks[::2], marks[1::2], strict=True))


def _chains(runs: list[tuple[int, int]], states: Sequence[str], lead: int) -> list[tuple[int, int, int]]:
    """First minute, last minute and opening of each group of runs whose gaps are bridged."""
    found: list[tuple[int, int, int]] = []
    for opens, closes in runs:
        first = opens
        while first > max(0, opens - lead) and states[first - 1] != "Closed":
            first -= 1
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], closes, found[-1][2])
        else:
            found.append((first, closes, opens))
    return found
