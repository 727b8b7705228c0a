from pathlib import Path

from agent.polling import PollingSource
from agent.proc import ProcTable
from tests.agent.proctree import add


class Counted(ProcTable):
    """A process table whose inodes are given by the test."""

    def __init__(self, **_: object) -> None:
        super().__init__()
        self.alive: dict[int, int] = {}

    def identities(self):
        yield from self.alive.items()


def source(*pids: int, interval: float = 0.25) -> tuple[PollingSource, Counted]:
    table = Counted()
    table.alive = {pid: pid for pid in pids}
    made = PollingSource(table, interval)
    made.open()
    return made, table


def aged(*pids: int) -> tuple[PollingSource, Counted]:
    """All pids old, the last full look at 20 s."""
    made, table = source(*pids)
    for now in (0.0, 5.0, 10.0, 15.0, 20.0):
        made.candidates(now)
    return made, table


def test_the_first_poll_reads_every_process():
    made, _ = source(1, 2, 3)
    assert made.candidates(100.0) == [1, 2, 3]


def test_between_two_polls_nothing_is_read():
    made, _ = source(1)
    made.candidates(100.0)
    assert made.candidates(100.2) == []
    assert round(made.wait(100.2) or 0, 3) == 0.05


def test_an_ordinary_poll_reads_new_and_young_processes_only():
    made, table = aged(1, 2)
    table.alive[3] = 3
    assert made.candidates(20.25) == [3]
    assert made.candidates(20.5) == [3]


def test_a_process_stays_young_for_ten_seconds():
    made, table = aged(1)
    table.alive[3] = 3
    assert made.candidates(21.0) == [3]
    made.candidates(25.0)
    assert made.candidates(29.9) == [3]
    made.candidates(30.2)
    assert made.candidates(31.1) == []


def test_every_five_seconds_all_are_read():
    made, _ = aged(1, 2)
    assert made.candidates(24.9) == []
    assert made.candidates(25.2) == [1, 2]
    assert made.candidates(25.5) == []


def test_a_pid_that_is_used_again_is_a_new_process():
    made, table = aged(1, 2)
    table.alive[2] = 99
    assert made.candidates(20.25) == [2]


def test_processes_that_ended_are_forgotten():
    made, table = aged(1, 2)
    del table.alive[2]
    assert made.candidates(25.0) == [1]


def test_opening_again_starts_afresh():
    made, _ = aged(1, 2)
    made.open()
    assert made.candidates(20.01) == [1, 2]


def test_real_directories_give_each_process_an_identity(tmp_path: Path):
    add(tmp_path, 7, "a")
    made = PollingSource(ProcTable(str(tmp_path)), 0.25)
    made.open()
    assert made.candidates(0.0) == [7]
    assert made.fileno() is None
    made.close()
