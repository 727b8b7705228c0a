"""What the demo exits with, and what it says at the end."""

import io

import pytest
from rich.console import Console

from local import examples
from local.demo import show
from local.demo.expectations import PODS, Expectation, expectations
from local.demo.owner import HostOwner
from local.demo.show import INTERRUPTED, Show
from local.examples import CLASSROOM, OFFICE
from local.plane import ControlPlane
from service.clock import ManualClock
from tests.local.demo.chronicles import at, day_of
from tests.service.fleet.test_usage import served_since

OFFICES: tuple[Expectation, ...] = tuple(each for each in expectations() if each.who == OFFICE)


@pytest.fixture
def paper() -> io.StringIO:
    return io.StringIO()


def demo(paper: io.StringIO, *, leaves: float = 18, once: bool = True) -> Show:
    """The end of a day at the office."""
    chronicle = day_of(OFFICE, PODS[OFFICE], comes=9, leaves=leaves).chronicle
    plane = ControlPlane.__new__(ControlPlane)
    owner = HostOwner.__new__(HostOwner)
    return Show(plane, ManualClock(at(30)), 720.0, OFFICES, Console(file=paper, width=100), once, owner, chronicle)


def played(monkeypatch: pytest.MonkeyPatch, show_: Show, ends_with: type[BaseException] | None = None) -> int:
    async def play(_self: Show) -> None:
        if ends_with is not None:
            raise ends_with

    monkeypatch.setattr(Show, "play", play)
    return show._play(show_)


def test_a_day_as_expected_ends_with_0(monkeypatch: pytest.MonkeyPatch, paper: io.StringIO) -> None:
    assert played(monkeypatch, demo(paper)) == 0
    assert "3 of 3 things happened as expected." in paper.getvalue()


def test_a_day_on_which_something_went_wrong_ends_with_1_and_says_what(
    monkeypatch: pytest.MonkeyPatch, paper: io.StringIO
) -> None:
    assert played(monkeypatch, demo(paper, leaves=26)) == 1
    assert "1 of 3 things happened as expected." in paper.getvalue()
    assert "too late; due Fri 18:00" in paper.getvalue()


@pytest.mark.parametrize(("once", "code"), [(True, INTERRUPTED), (False, 0)])
def test_ctrl_c_is_how_a_view_ends_but_no_way_to_end_a_check(
    monkeypatch: pytest.MonkeyPatch, paper: io.StringIO, *, once: bool, code: int
) -> None:
    assert played(monkeypatch, demo(paper, once=once), KeyboardInterrupt) == code
    assert "3 of 3 things happened as expected." in paper.getvalue()


def test_the_end_has_the_report_of_the_demos_days(paper: io.StringIO) -> None:
    shown = demo(paper)
    shown.machines.append(served_since(at(9)))
    shown.summarise()
    lines = [line.split() for line in paper.getvalue().splitlines()]
    assert ["always", "on", "22.0", "h"] in lines, "since the start of the demo, whenever the object was created"
    assert ["served", "9.0", "h", "(40.9", "%)"] in lines


def test_without_machines_there_is_no_report(paper: io.StringIO) -> None:
    demo(paper).summarise()
    assert "5spot report" not in paper.getvalue()


def test_the_schedule_that_a_calendar_closes_has_no_window_on_the_demos_friday() -> None:
    friday = show.schedules()[CLASSROOM].windows(at(0), at(24))
    monday = show.schedules()[CLASSROOM].windows(at(72), at(96))
    assert (list(friday), len(list(monday))) == ([], 1)


def test_no_two_machines_of_the_demo_have_the_same_host() -> None:
    specs = [examples.load(name)["spec"] for name in examples.ALL]
    hosts = [(each.get("parameters") or each["infrastructureSpec"]["spec"])["address"] for each in specs]
    assert len(set(hosts)) == len(examples.ALL)
