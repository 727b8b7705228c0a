"""The table of `docs/reliability.md`, made from results."""

import re
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.case import Result
from tests.chaos.faults import Fault
from tests.chaos.scenarios import SCENARIOS

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"


def table(results: Sequence[Result], *, completed: bool = False) -> str:
    """Cases by fault and scenario: how many there were and, where it differs, how many were survived."""
    met = [result for result in results if result.met and result.strike]
    survived, real = sum(result.survived for result in met), sum(_fault(result).is_real for result in met)
    head = (
        f"| at one write | {' | '.join(one.name for one in SCENARIOS)} | all |\n|---|{'---:|' * (len(SCENARIOS) + 1)}\n"
    )
    rows = "".join(_row(fault.meaning, [one for one in met if _fault(one) is fault]) for fault in Fault)
    legend = "".join(f"- *{one.name}*: {one.about}\n" for one in SCENARIOS)
    which = "Last run, some cases of it played again" if completed else "Last run"
    return (
        f"{which}: {len(met)} cases, {survived} survived, {len(met) - survived} not; {real} of them with a real "
        f"process and SIGKILL.\n\n{head}{rows}{_row('**all**', met)}\n{legend}"
    )


def _row(name: str, results: list[Result]) -> str:
    cells = [_cell([one for one in results if one.scenario is scenario]) for scenario in SCENARIOS]
    return f"| {name} | {' | '.join(cells)} | {_cell(results)} |\n"


def _cell(results: list[Result]) -> str:
    survived = sum(result.survived for result in results)
    return str(survived) if survived == len(results) else f"**{survived} of {len(results)}**"


def _fault(result: Result) -> Fault:
    assert result.strike is not None
    return result.strike.fault


def write(results: Sequence[Result], page: Path = PAGE, *, completed: bool = False) -> None:
    """Puts the table between its marks."""
    text = page.read_text(encoding="utf-8")
    block = f"{BEGIN}\n{table(results, completed=completed)}{END}"
    page.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: block, text, flags=re.DOTALL), encoding="utf-8")
