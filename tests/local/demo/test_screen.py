"""The live view, on terminals of different sizes."""

import io

import pytest
from rich.console import Console

from local.demo.expectations import NIGHT_TAINTS, PODS, expectations
from local.demo.screen import Screen
from local.demo.show import console, schedules
from local.examples import BROKEN, OFFICE
from tests.local.demo.telling import Telling, at, day_of


@pytest.fixture
def friday() -> Telling:
    telling = day_of(OFFICE, PODS[OFFICE], comes=9, leaves=18)
    for hour in range(9, 18):
        telling.event(hour, OFFICE, f"Event{hour}", "Something happened.")
    telling.machine(12, BROKEN, "Error", "Failed", message="The provider says: " + "no, " * 60)
    return telling


def drawn(telling: Telling, hours: float, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(Screen(expectations(), schedules(), 720.0).frame(telling.chronicle, at(hours), width, height))
    return [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (120, 40), (200, 60)])
def test_a_frame_fits_the_terminal(friday: Telling, width: int, height: int) -> None:
    frame = drawn(friday, 19, width, height)
    assert len(frame) <= height
    assert max(map(len, frame)) <= width


def test_on_a_narrow_terminal_taints_squeeze_nothing() -> None:
    telling = Telling()
    telling.node(6, "night-shift-infra", cordoned="yes", taints=NIGHT_TAINTS)
    telling.pod(6, "batch-1", "night-shift-infra", "leaving")
    frame = drawn(telling, 6.1, 80, 24)
    row = next(number for number, line in enumerate(frame) if "night-shift-infra" in line)
    assert frame[row].split("  ")[:3] == [" night-shift-infra", "Ready, cordoned", "batch-1 leaving"]
    for line, taint in zip(frame[row:], NIGHT_TAINTS.split(", "), strict=False):
        assert taint in line


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_file_gets_lines_and_no_screen_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", term)
    assert not console().is_interactive
    assert not console().is_terminal


def test_the_bar_shows_what_was_and_what_will_be(friday: Telling) -> None:
    rows = {line.split()[0]: line for line in drawn(friday, 19, 120, 40) if line.strip()}
    assert rows[OFFICE].endswith("·█████████▒")
    assert rows[BROKEN].endswith("!!!!!!!░")


def test_a_tall_terminal_lists_what_is_expected_and_a_short_one_counts(friday: Telling) -> None:
    assert any("weekend" in line and "by cron" in line for line in drawn(friday, 19, 120, 40))
    assert "3 of 9 things have happened as expected" in "".join(drawn(friday, 19, 120, 24))
