"""Plays many cases, several at a time."""

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

from tests.chaos.case import Arena, Result, play
from tests.chaos.faults import Strike
from tests.chaos.plan import Selection, strikes
from tests.chaos.scenarios import SCENARIOS, Scenario

ATTEMPTS = 3
"""A write that depends on timing may not come in every run: how many status patches there are, for instance."""
REAL_AT_ONCE = 1
"""An operator of its own takes a core for two seconds to start."""


@dataclass(frozen=True)
class Order:
    """What to play: all cases or those selected, of these one part in so many."""

    only: tuple[Selection, ...] = ()
    part: int = 0
    parts: int = 1
    jobs: int = 4
    verbose: bool = False

    def takes(self, scenario: Scenario, strike: Strike) -> bool:
        """Whether a case is in this part; the same in every run."""
        return crc32(f"{scenario.name} {strike}".encode()) % self.parts == self.part


class Run:
    """Plays an order."""

    def __init__(self, arena: Arena, order: Order, report: Callable[[str], None]) -> None:
        self._arena = arena
        self._order = order
        self._only = order.only
        self._report = report
        self._verbose = order.verbose
        self._slots, self._real = asyncio.Semaphore(order.jobs), asyncio.Semaphore(REAL_AT_ONCE)
        self.results: list[Result] = []

    async def all(self) -> list[Result]:
        wanted = [one for one in SCENARIOS if not self._only or any(s.scenario in ("", one.name) for s in self._only)]
        clean = await asyncio.gather(*(self.clean(scenario) for scenario in wanted))
        planned = [
            (passed, strike)
            for passed in clean
            if passed.survived
            for strike in strikes(passed.scenario, passed.moments, self._only)
            if self._order.takes(passed.scenario, strike)
        ]
        self._report(f"{len(planned)} cases in {len(wanted)} scenarios")
        await asyncio.gather(*(self._case(passed, strike, len(planned)) for passed, strike in planned))
        return [*(one for one in clean if one.breaches), *self.results]

    async def clean(self, scenario: Scenario) -> Result:
        """Without a fault: what is written, and what the status says in the end."""
        async with self._slots:
            result = await self._played(scenario, None, None)
        self._report(f"{scenario.name}: {len(result.moments)} writes, {result.seconds:.1f} s")
        if result.breaches:
            self._report(str(result))
        return result

    async def _case(self, clean: Result, strike: Strike, total: int) -> None:
        async with self._real if strike.fault.is_real else self._slots:
            for _ in range(ATTEMPTS):
                result = await self._played(clean.scenario, strike, clean)
                if result.met or result.breaches:
                    break
        self.results.append(result)
        if self._verbose or result.breaches:
            self._report(f"{result} ({result.seconds:.1f} s)")
        if len(self.results) % 50 == 0:
            failed = sum(bool(one.breaches) for one in self.results)
            self._report(f"... {len(self.results)} of {total}, {failed} failed")

    async def _played(self, scenario: Scenario, strike: Strike | None, clean: Result | None) -> Result:
        try:
            return await play(self._arena, scenario, strike, clean)
        except Exception:  # noqa: BLE001 - one case must not end the others
            return Result(scenario, strike, breaches=[f"the case itself broke: {traceback.format_exc()}"], struck="?")
