"""What the commands for overrides share: they read a machine, send an override, and print what will happen.

What an override says is worked out in `service.fleet.overriding`; the rights are the user's.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from crds.values import InvalidValue, parse_duration
from service.clock import Clock
from service.commands import fleet
from service.commands.fleet import Scope
from service.commands.options import OPERATOR_NAMESPACE, ClusterChoice
from service.commands.table import UsageError
from service.commands.times import end_instant
from service.fleet import forecast, requests
from service.fleet.overriding import LONGEST, Draft, Ending, OverridableMachine, Resumption
from service.kube.client import Client

_Act = Callable[[Client, OverridableMachine, datetime], Awaitable[Sequence[str]]]
CLOCKS_DIFFER: Final = timedelta(seconds=5)


def ending(until: str | None, length: str | None, asked: Scope) -> Ending:
    """What --until or --for says."""
    if (until is None) == (length is None):
        raise UsageError("give either --until, such as --until 22:00, or --for, such as --for 2h")
    try:
        return end_instant(until, asked.clock.now()) if until is not None else parse_duration(length, LONGEST)
    except InvalidValue as error:
        raise UsageError(f"--for: {error}") from None
    except ValueError as error:
        raise UsageError(f"--until: {error}") from None


def override(access: ClusterChoice, asked: Scope, drafted: Callable[[OverridableMachine, datetime], Draft]) -> int:
    """Creates the override that `drafted` makes of a machine, and prints what will happen."""
    return asyncio.run(_with_machine(access, asked, lambda client, found, now: _create(client, found, drafted, now)))


def resume(access: ClusterChoice, asked: Scope, drafted: Callable[[OverridableMachine, datetime], Resumption]) -> int:
    """Returns a machine to its schedule, and prints what will happen."""
    return asyncio.run(_with_machine(access, asked, lambda client, found, now: _resume(client, found, drafted, now)))


async def _with_machine(access: ClusterChoice, asked: Scope, act: _Act) -> int:
    async with await fleet.connected(access) as client:
        raw = await fleet.read_machine(client, asked, asked.wanted[0])
        now = _now(client, asked.clock)
        stored = await fleet.read_calendars(client, raw)
        shelf = await stored.shelf(now.date(), OPERATOR_NAMESPACE)
        with fleet.readable("ScheduleOverrides"):
            machine = await requests.read_machine(client, raw, shelf, now)
        lines = await act(client, machine, now)
    sys.stdout.write("".join(f"{line}\n" for line in lines if line))
    return 0


async def _create(
    client: Client, machine: OverridableMachine, drafted: Callable[[OverridableMachine, datetime], Draft], now: datetime
) -> Sequence[str]:
    draft = drafted(machine, now)
    created = await requests.create(client, draft, now)
    undo = f"5spot resume {machine.name} -n {machine.namespace}"
    made = f"Created ScheduleOverride {created.name}; undo it with: {undo}"
    return [*forecast.after_draft(machine, draft, now), made, *created.warnings]


async def _resume(
    client: Client,
    machine: OverridableMachine,
    drafted: Callable[[OverridableMachine, datetime], Resumption],
    now: datetime,
) -> Sequence[str]:
    found = drafted(machine, now)
    if found.is_empty:
        return [forecast.unchanged(machine, now), *machine.outranked, *machine.notes]
    warnings = await requests.resume(client, machine, found, now)
    deleted = [f"Deleted ScheduleOverride {each.name}." for each in found.delete]
    return [*forecast.after_resumption(machine, found, now), *deleted, *warnings]


def _now(client: Client, clock: Clock) -> datetime:
    """The API server's time: by a clock that is behind, the window that has just opened is still the next one."""
    now, ahead = clock.now(), timedelta(seconds=client.skew_seconds or 0)
    return now - ahead if abs(ahead) > CLOCKS_DIFFER else now
