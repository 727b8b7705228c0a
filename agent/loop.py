"""The agent's main loop: one thread that waits, looks and writes, so that only one thing happens at a time."""

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from agent.api import ApiError
from agent.backoff import backoff
from agent.claim import Claimant, WrongHost
from agent.examine import Examiner, Match
from agent.log import log
from agent.mailbox import Mailbox
from agent.netlink import EventsUnavailable
from agent.sources import ProcessSource
from agent.trigger import Failed, Matched, TriggerState, needs_scan, step, stored

RETRY_CAP = 5.0
WRONG_HOST_CAP = 60.0


class Agent:
    """Drives the state machine with events of the host and of the API server."""

    def __init__(
        self,
        state: TriggerState,
        mailbox: Mailbox,
        source: ProcessSource,
        examiner: Examiner,
        claimant: Claimant,
        *,
        fall_back: Callable[[str], ProcessSource],
    ) -> None:
        self.state = state
        self.mailbox = mailbox
        self.source = source
        self.examiner = examiner
        self.claimant = claimant
        self._fall_back = fall_back
        self._last_problem = ""

    def run(self) -> None:
        """Runs until a signal or the death of a thread ends it."""
        try:
            while True:
                self.turn()
                self.mailbox.sleep(self._patience(time.monotonic()), self.source.fileno())
        finally:
            self.source.close()

    def turn(self) -> None:
        """Take the new letters, then scan or write."""
        for letter in self.mailbox.take():
            if isinstance(letter, Exception):
                raise letter
            self._become(step(self.state, letter, time.monotonic()))
        if self.state.watching:
            self._examine(self._candidates())
        if self.state.due(time.monotonic()):
            self._fire()

    def _become(self, after: TriggerState) -> None:
        before, self.state = self.state, after
        _announce(before, after)
        if before.watching and not after.watching:
            self.source.close()
        if needs_scan(before, after):
            self._scan(reopen=not before.watching)

    def _scan(self, *, reopen: bool) -> None:
        if reopen:
            self._open_source()
        self._examine(self.examiner.table.pids())

    def _open_source(self) -> None:
        try:
            self.source.open()
        except EventsUnavailable as error:
            self._degrade(str(error))

    def _degrade(self, why: str) -> None:
        self.source.close()
        self.source = self._fall_back(why)
        self.source.open()

    def _candidates(self) -> Iterable[int]:
        try:
            return self.source.candidates(time.monotonic())
        except EventsUnavailable as error:
            self._degrade(str(error))
            return self.examiner.table.pids()

    def _examine(self, pids: Iterable[int]) -> None:
        for pid in pids:
            found = self.examiner.examine(pid, self.state.patterns)
            if found is not None:
                log("info", "match", pid=found.pid, pattern=found.pattern, reason=found.reason)
                self._become(step(self.state, Matched(found), time.monotonic()))
                return

    def _fire(self) -> None:
        match = self.state.held
        if match is None:
            return
        try:
            node = self.claimant.request(match)
        except WrongHost as error:
            self._failed("refused-wrong-host", str(error), WRONG_HOST_CAP)
        except ApiError as error:
            self._failed("request-delayed", str(error), RETRY_CAP)
        else:
            self._fired(match, stored(self.state, node, time.monotonic()))

    def _failed(self, event: str, problem: str, cap: float) -> None:
        if problem != self._last_problem:
            log("error", event, node=self.claimant.node, problem=problem, next="trying again; the match is kept")
        self._last_problem = problem
        delay = backoff(self.state.attempts + 1, cap, random.random())  # noqa: S311 - jitter
        self._become(step(self.state, Failed(delay), time.monotonic()))

    def _fired(self, match: Match, after: TriggerState) -> None:
        self._last_problem = ""
        log("info", "requested", node=self.claimant.node, reason=match.reason)
        self._become(after)

    def _patience(self, now: float) -> float | None:
        if self.state.held is not None:
            return max(0.0, self.state.try_at - now)
        return self.source.wait(now) if self.state.watching else None


def _announce(before: TriggerState, after: TriggerState) -> None:
    if before.patterns != after.patterns:
        log("info", "config", patterns=list(after.patterns.entries), inert=not after.patterns)
    if before.requested and not after.requested:
        log("info", "cleared", next="looking again")
    if before.held is not None and after == replace(before, patterns=after.patterns, held=None):
        log("info", "match-dropped", pattern=before.held.pattern, why="its pattern was removed")
