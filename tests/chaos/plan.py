"""Which cases there are: every fault at every write, as the clean passes found them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.chaos.faults import Fault, Moment, Strike
from tests.chaos.scenarios import Scenario

EVENT_FAULTS = frozenset({Fault.CRASH_AFTER, Fault.FAILED, Fault.SILENT})
"""An Event only reports what was done, so faults of watches and lists do not concern it."""
KILLED_AT = 3
"""How many writes of each scenario meet a real SIGKILL, before and after; spread over its length."""
EVENTS = "POST events "


@dataclass(frozen=True, slots=True)
class Selection:
    """`SCENARIO`, `/FAULT` or `SCENARIO/FAULT`; empty parts mean all."""

    scenario: str = ""
    fault: str = ""

    @classmethod
    def read(cls, text: str) -> "Selection":
        scenario, _, fault = text.partition("/")
        return cls(scenario, fault)

    def takes(self, scenario: Scenario, fault: Fault) -> bool:
        return self.scenario in ("", scenario.name) and self.fault in ("", fault)


def strikes(scenario: Scenario, moments: list[Moment], only: Iterable[Selection] = ()) -> Iterator[Strike]:
    """All cases of a scenario, or those selected."""
    chosen = tuple(only) or (Selection(),)
    for fault in Fault:
        if any(selection.takes(scenario, fault) for selection in chosen):
            yield from (Strike(fault, moment) for moment in _at(moments, fault))


def _at(moments: list[Moment], fault: Fault) -> list[Moment]:
    events = [moment for moment in moments if moment.label.startswith(EVENTS)]
    others = [moment for moment in moments if moment not in events]
    if fault.is_real:
        return spread(others, KILLED_AT)
    return others + events if fault in EVENT_FAULTS else others


def spread(moments: list[Moment], count: int) -> list[Moment]:
    """This many of them, evenly spread."""
    if len(moments) <= count:
        return moments
    return [moments[index * len(moments) // count] for index in range(count)]
