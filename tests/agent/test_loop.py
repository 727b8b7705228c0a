"""The loop with sources and claimants that the test steers; the real ones are joined in tests/integration."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.api import Unreachable
from agent.claim import WrongHost
from agent.examine import Examiner, Match
from agent.loop import Agent
from agent.mailbox import Mailbox
from agent.netlink import EventsUnavailable
from agent.patterns import NO_PATTERNS, Patterns
from agent.proc import ProcTable
from agent.trigger import ConfigSeen, NodeSeen, TriggerState
from tests.agent.proctree import add

IDEA = ConfigSeen(Patterns(("idea",)))


class Steered:
    """A source that names what the test puts in, and remembers whether it is open."""

    name = "steered"

    def __init__(self) -> None:
        self.is_open = False
        self.next: list[int] = []
        self.broken: str | None = None

    def open(self) -> None:
        self._break()
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def fileno(self) -> int | None:
        return None

    def wait(self, now: float) -> float | None:
        return 0.5

    def candidates(self, now: float) -> list[int]:
        self._break()
        return self.next

    def _break(self) -> None:
        if self.broken is not None:
            raise EventsUnavailable(self.broken)


class Desk:
    """A claimant that writes to nowhere."""

    node = "ws-1"

    def __init__(self) -> None:
        self.requests: list[Match] = []
        self.failure: Exception | None = None

    def request(self, match: Match) -> NodeSeen:
        if self.failure is not None:
            raise self.failure
        self.requests.append(match)
        return NodeSeen("u", str(len(self.requests) * 10), requested=True)


@pytest.fixture
def bench(tmp_path: Path):
    made = Bench(tmp_path)
    yield made
    made.mailbox.close()


class Bench:
    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self").symlink_to("500")
        self.mailbox, self.source, self.spare, self.desk = Mailbox(), Steered(), Steered(), Desk()
        examiner = Examiner(ProcTable(str(root)), now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.agent = Agent(
            TriggerState(refire=0.0),
            self.mailbox,
            self.source,
            examiner,
            self.desk,  # type: ignore[arg-type]
            fall_back=self.fall_back,
        )

    def fall_back(self, why: str) -> Steered:
        return self.spare

    def turn(self, *letters: object) -> list[int]:
        for letter in letters:
            self.mailbox.put(letter)  # type: ignore[arg-type]
        self.agent.turn()
        return [match.pid for match in self.desk.requests]


def test_nothing_is_open_while_there_is_nothing_to_look_for(bench: Bench):
    add(bench.root, 7, "idea")
    assert bench.turn(ConfigSeen(NO_PATTERNS)) == []
    assert not bench.source.is_open
    assert bench.agent._patience(0.0) is None


def test_what_runs_already_is_asked_for_in_the_same_turn(bench: Bench):
    add(bench.root, 7, "idea")
    assert bench.turn(IDEA) == [7]
    assert not bench.source.is_open


def test_a_candidate_is_examined_and_its_host_requested(bench: Bench):
    bench.turn(IDEA)
    assert bench.source.is_open
    assert bench.agent._patience(0.0) == 0.5
    add(bench.root, 7, "idea")
    bench.source.next = [6, 7]
    assert bench.turn() == [7]


def test_after_clearing_the_source_is_opened_and_everything_scanned(bench: Bench):
    add(bench.root, 7, "idea")
    bench.turn(IDEA)
    assert bench.turn(NodeSeen("u", "11", requested=False)) == [7, 7]


def test_a_source_that_breaks_is_replaced_without_missing_a_process(bench: Bench):
    bench.turn(IDEA)
    add(bench.root, 7, "idea")
    bench.source.broken = "gone"
    assert bench.turn() == [7]
    assert bench.agent.source is bench.spare


def test_a_source_that_cannot_be_opened_any_more_is_replaced(bench: Bench):
    bench.source.broken = "gone"
    bench.turn(IDEA)
    assert bench.agent.source is bench.spare
    assert bench.spare.is_open


@pytest.mark.parametrize("failure", [Unreachable("away"), WrongHost("another host")])
def test_a_failure_keeps_the_match_and_retries_soon(bench: Bench, failure: Exception, capsys):
    add(bench.root, 7, "idea")
    bench.desk.failure = failure
    assert bench.turn(IDEA) == []
    waits = bench.agent._patience(bench.agent.state.try_at - 0.1)
    assert waits is not None
    assert round(waits, 3) == 0.1
    bench.desk.failure = None
    (bench.root / "7" / "comm").write_text("gone\n")
    while not bench.turn():
        bench.mailbox.sleep(0.01)
    assert bench.turn() == [7]
    last = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()][-1]
    assert last == "requested"


def test_the_death_of_a_watching_thread_ends_the_loop_and_closes_the_source(bench: Bench):
    bench.turn(IDEA)
    bench.mailbox.put(RuntimeError("thread died"))
    with pytest.raises(RuntimeError, match="thread died"):
        bench.agent.run()
    assert not bench.source.is_open


def test_a_match_whose_pattern_is_removed_meanwhile_is_dropped_and_logged(bench: Bench, capsys):
    add(bench.root, 7, "idea")
    bench.desk.failure = Unreachable("away")
    bench.turn(IDEA, ConfigSeen(NO_PATTERNS))
    bench.desk.failure = None
    assert bench.turn() == []
    assert '"match-dropped"' in capsys.readouterr().err


def test_the_examiner_leaves_this_very_process_alone():
    me = os.getpid()
    assert Examiner(ProcTable()).examine(me, Patterns(("pytest", "python"))) is None
