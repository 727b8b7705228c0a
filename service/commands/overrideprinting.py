"""Reads overrides and prints them for people, or as JSON or YAML for programs; for `5spot overrides`."""

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from crds.text import one_line
from service.commands import fleet, machineprinting
from service.commands.fleet import Scope
from service.commands.options import ClusterChoice
from service.fleet import times
from service.fleet.overrides import ListedOverride, Standing
from service.fleet.snapshot import list_overrides

REASON_MAX = 60
ORDER = tuple(Standing)
STYLES = {Standing.IN_FORCE: "green", Standing.TO_COME: "cyan", Standing.OVER: "dim", Standing.NOT_ACCEPTED: "bold red"}


async def read(access: ClusterChoice, asked: Scope) -> tuple[ListedOverride, ...]:
    """The overrides of a namespace, of a machine in it, or of all namespaces."""
    now = asked.clock.now()
    async with await fleet.connected(access) as client:
        with fleet.readable("ScheduleOverrides"):
            listed = await list_overrides(client, asked.namespace, now)
        if not asked.wanted or asked.namespace is None:
            return listed.found
        raw = await fleet.read_machine(client, asked, asked.wanted[0])
    return listed.concerning(asked.namespace, asked.wanted[0], raw["metadata"].get("labels") or {})


def show(found: Sequence[ListedOverride], scope: Scope, output: str) -> int:
    """Prints a line for each: in force first, of these the newest, which decides."""
    now = scope.clock.now()
    shown = sorted(found, key=lambda each: (each.stored.created, each.name), reverse=True)
    shown.sort(key=lambda each: ORDER.index(each.standing(now)))
    if output != "table":
        return machineprinting.print_data([each.to_json(now) for each in shown], output)
    with machineprinting.output_console() as console:
        if shown:
            console.print(_table(shown, now, with_namespace=scope.namespace is None))
        else:
            console.print(Text(_none(scope)))
    return 0


def _none(scope: Scope) -> str:
    where = f"in namespace {scope.namespace}" if scope.namespace else "in any namespace"
    about = f" about {scope.wanted[0]}" if scope.wanted else ""
    return f"There is no ScheduleOverride{about} {where}."


def _table(shown: Sequence[ListedOverride], now: datetime, *, with_namespace: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    heads = ["NAMESPACE"] * with_namespace + ["NAME", "MACHINES", "STATE", "", "FROM", "UNTIL", "BY", "REASON"]
    for head in heads:
        table.add_column(head, no_wrap=head not in ("MACHINES", "REASON"))
    for each in shown:
        table.add_row(*[each.namespace] * with_namespace, each.name, each.target, *_cells(each, now))
    return table


def _cells(listed: ListedOverride, now: datetime) -> list[str | Text]:
    spec, standing = listed.stored.spec, listed.standing(now)
    word = Text(standing.value, STYLES[standing])
    if spec is None:
        return ["", word, "", "", "", one_line(listed.problem, REASON_MAX)]
    begins = times.clock(spec.begins, now) if spec.begins else ""
    why = listed.problem or spec.reason or ""
    until = times.clock(spec.until, now)
    by = one_line(spec.requested_by or "", REASON_MAX)
    return [spec.state.value, word, begins, until, by, one_line(why, REASON_MAX)]
