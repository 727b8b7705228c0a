"""What the commands for overrides share: they read a machine, send an override, and print what will happen.

What an override says is worked out in `service.fleet.overriding`; the rights are the user's.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from crds.values import InvalidValue, parse_duration
from service.commands import fleet
from service.commands.options import OPERATOR_NAMESPACE, ClusterChoice
from service.commands.table import UsageError
from service.commands.times import end_instant
from service.fleet import forecast, requests
from service.fleet.overriding import LONGEST, Draft, Ending, OverridableMachine, Resumption
from service.kube.client import Client


def ending(until: str | None, length: str | None) -> Ending:
    """What --until or --for says."""
    if (until is None) == (length is None):
        raise UsageError("give either --until, such as --until 22:00, or --for, such as --for 2h")
    try:
        return end_instant(until, datetime.now(UTC)) if until is not None else parse_duration(length, LONGEST)
    except InvalidValue as error:
        raise UsageError(f"--for: {error}") from None
    except ValueError as error:
        raise UsageError(f"--until: {error}") from None


def override(
    access: ClusterChoice, namespace: str | None, name: str, drafted: Callable[[OverridableMachine, datetime], Draft]
) -> int:
    """Creates the override that `drafted` makes of a machine, and prints what will happen."""
    asked = fleet.scope(access, namespace, [name])
    return asyncio.run(_with_machine(access, asked, lambda client, found: _create(client, found, drafted)))


def resume(
    access: ClusterChoice,
    namespace: str | None,
    name: str,
    drafted: Callable[[OverridableMachine, datetime], Resumption],
) -> int:
    """Returns a machine to its schedule, and prints what will happen."""
    asked = fleet.scope(access, namespace, [name])
    return asyncio.run(_with_machine(access, asked, lambda client, found: _resume(client, found, drafted)))


async def _with_machine(
    access: ClusterChoice, asked: fleet.Scope, act: Callable[[Client, OverridableMachine], Awaitable[Sequence[str]]]
) -> int:
    async with await fleet.connected(access) as client:
        raw = await fleet.read_machine(client, asked, asked.wanted[0])
        now = datetime.now(UTC)
        stored = await fleet.read_calendars(client, raw)
        shelf = await stored.shelf(now.date(), OPERATOR_NAMESPACE)
        with fleet.readable("ScheduleOverrides"):
            machine = await requests.read_machine(client, raw, shelf, now)
        lines = await act(client, machine)
    sys.stdout.write("".join(f"{line}\n" for line in lines if line))
    return 0


async def _create(
    client: Client, machine: OverridableMachine, drafted: Callable[[OverridableMachine, datetime], Draft]
) -> Sequence[str]:
    now = datetime.now(UTC)
    draft = drafted(machine, now)
    created = await requests.create(client, draft, now)
    undo = f"5spot resume {machine.name} -n {machine.namespace}"
    made = f"Created ScheduleOverride {created.name}; undo it with: {undo}"
    return [*forecast.after_draft(machine, draft, now), made, *created.warnings]


async def _resume(
    client: Client, machine: OverridableMachine, drafted: Callable[[OverridableMachine, datetime], Resumption]
) -> Sequence[str]:
    now = datetime.now(UTC)
    found = drafted(machine, now)
    if found.is_empty:
        return [forecast.unchanged(machine, now), *machine.outranked, *machine.notes]
    warnings = await requests.resume(client, machine, found, now)
    deleted = [f"Deleted ScheduleOverride {each.name}." for each in found.delete]
    return [*forecast.after_resumption(machine, found, now), *deleted, *warnings]
