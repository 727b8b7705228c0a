"""What will happen to a machine, and until when, in sentences; pure."""

from collections.abc import Iterator
from datetime import datetime

from crds.overriderules import DEFAULT_LONGEST
from crds.overrides import OverrideState
from service.decide.effective import Effective
from service.fleet.overriding import Draft, OverridableMachine, Resumption


def after_draft(machine: OverridableMachine, draft: Draft, now: datetime) -> list[str]:
    """What an override that was just created makes of a machine."""
    effective = draft.added_to(machine.effective, now)
    what = _skipped(machine, effective, draft, now) if draft.begins else _at_once(machine, effective, draft, now)
    return [*what, *_then(machine, effective, draft.until, now), *_cautions(machine, draft.until, now)]


def after_resumption(machine: OverridableMachine, done: Resumption, now: datetime) -> list[str]:
    """What happens to a machine that returns to its schedule."""
    effective = done.applied_to(machine.effective, now)
    found = [f"{machine.name} follows its schedule: {_now(machine, effective, now)}."] if _ends(done) else []
    if done.acknowledge:
        found.append(f"The reclaim of {machine.unacknowledged} is acknowledged.")
    still = () if done.draft is None else _cautions(machine, done.draft.until, now)
    return [*found, *(still or machine.outranked)]


def unchanged(machine: OverridableMachine, now: datetime) -> str:
    """What a machine does that no override decides about."""
    return f"{machine.name} has no override to end: {_now(machine, machine.effective, now)}."


def _ends(done: Resumption) -> bool:
    return bool(done.delete) or done.draft is not None


def _at_once(machine: OverridableMachine, effective: Effective, draft: Draft, now: datetime) -> Iterator[str]:
    known, was = machine.effective.is_known(now), machine.effective.wanted(now)
    if draft.state is OverrideState.OPEN:
        verb = "stays in service" if was else "goes into service now and stays"
        ends_it = effective.closes(now) == draft.until
        until = _end(machine, effective, now, now) if ends_it else machine.clock(draft.until, now)
    else:
        verb = "leaves service now and stays out" if was or not known else "stays out of service"
        until = machine.clock(draft.until, now)
    yield f"{machine.name} {verb} until {until}."


def _skipped(machine: OverridableMachine, effective: Effective, draft: Draft, now: datetime) -> Iterator[str]:
    """What becomes of a machine that is there: the window to skip may be the one that it was requested for."""
    was, closes = machine.effective.closes(now), effective.closes(now)
    if closes is not None:
        same = ", as before" if closes == was else ""
        yield f"{machine.name} is in service until {_end(machine, effective, now, now)}{same}."
    elif was is not None:
        yield f"{machine.name} leaves service now: it was requested early, for the window that it skips."
    begins = machine.clock(draft.begins, now) if draft.begins else ""
    yield f"{machine.name} skips the window from {begins} until {machine.clock(draft.until, now)}."


def _then(machine: OverridableMachine, effective: Effective, until: datetime, now: datetime) -> Iterator[str]:
    """What decides once the override is over."""
    if effective.schedule is None:
        yield f"What happens then is not known: {machine.unreadable}." if machine.unreadable else ""
        return
    yield f"Then it is {_state(machine, effective, until, now)}."


def _now(machine: OverridableMachine, effective: Effective, now: datetime) -> str:
    if not effective.is_known(now):
        return f"what its schedule says is not known: {machine.unreadable}"
    return f"it is {_state(machine, effective, now, now)}"


def _state(machine: OverridableMachine, effective: Effective, at: datetime, now: datetime) -> str:
    """In or out of service at a moment, and for how long."""
    if effective.wanted(at):
        end = _end(machine, effective, at, now)
        return f"in service until {end}" if end else "in service, without an end"
    starts = effective.next_start(at)
    window = effective.window(starts) if starts is not None else None
    return f"out of service until {machine.clock(window.opens, now)}" if window else "out of service for good"


def _end(machine: OverridableMachine, effective: Effective, at: datetime, now: datetime) -> str:
    """When the service around a moment ends and, if stopEarly puts it before that, when its shutdown begins."""
    closes, stops = effective.closes(at), effective.next_change(at)
    if closes is None:
        return ""
    early = f"; its shutdown begins at {machine.clock(stops, now)}" if stops is not None and stops < closes else ""
    return f"{machine.clock(closes, now)}{early}"


def _cautions(machine: OverridableMachine, until: datetime, now: datetime) -> Iterator[str]:
    yield from machine.outranked
    if until - now > DEFAULT_LONGEST:
        days = DEFAULT_LONGEST.days
        yield f"It ends more than {days} days ahead; by default the operator does not accept that. See 5spot overrides."
    yield from machine.notes
