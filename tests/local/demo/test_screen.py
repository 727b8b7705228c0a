"""The live view, on terminals of different sizes."""

import io

import pytest
from rich.console import Console

from local.demo.expectations import NIGHT_TAINTS, PODS, expectations
from local.demo.screen import Screen
from local.demo.show import console, schedules
from local.examples import ALL, BROKEN, OFFICE
from tests.local.demo.chronicles import ChronicleBuilder, at, day_of


@pytest.fixture
def friday() -> ChronicleBuilder:
    builder = day_of(OFFICE, PODS[OFFICE], comes=9, leaves=18)
    for hour in range(9, 18):
        builder.event(hour, OFFICE, f"Event{hour}", "Something happened.")
    builder.machine(12, BROKEN, "Error", "Failed", message="The provider says: " + "no, " * 60)
    return builder


def drawn(builder: ChronicleBuilder, hours: float, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(Screen(expectations(), schedules(), 720.0).frame(builder.chronicle, at(hours), width, height))
    return [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (120, 40), (200, 60)])
def test_a_frame_fits_the_terminal(friday: ChronicleBuilder, width: int, height: int) -> None:
    for name in ALL[1:]:
        friday.machine(18.5, name, "Inactive", opens="2026-03-09T09:00:00Z")
    friday.machine(18.6, BROKEN, "Error", "Failed", message="The provider says: " + "no, " * 20)
    frame = drawn(friday, 19, width, height)
    assert len(frame) <= height
    assert max(map(len, frame)) <= width


def test_on_a_narrow_terminal_taints_squeeze_nothing() -> None:
    builder = ChronicleBuilder()
    builder.node(6, "night-shift-infra", cordoned="yes", taints=NIGHT_TAINTS)
    builder.pod(6, "batch-1", "night-shift-infra", "leaving")
    frame = drawn(builder, 6.1, 80, 24)
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


def test_the_bar_shows_what_was_and_what_will_be(friday: ChronicleBuilder) -> None:
    rows = {line.split()[0]: line for line in drawn(friday, 19, 120, 40) if line.strip()}
    assert rows[OFFICE].endswith("·█████████▒")
    assert rows[BROKEN].endswith("!!!!!!!░")


def test_a_tall_terminal_lists_what_is_expected_and_a_short_one_counts(friday: ChronicleBuilder) -> None:
    assert any("weekend" in line and "by cron" in line for line in drawn(friday, 19, 120, 40))
    assert "3 of 16 things have happened as expected" in "".join(drawn(friday, 19, 120, 24))


def test_the_screen_ends_with_the_address_of_the_console(friday: ChronicleBuilder) -> None:
    address = "http://127.0.0.1:40000/#token=0123456789012345678901"
    console = Console(file=io.StringIO(), width=80, height=24, color_system=None)
    with console.capture() as capture:
        console.print(Screen(expectations(), schedules(), 720.0, address).frame(friday.chronicle, at(19), 80, 24))
    lines = capture.get().rstrip().splitlines()
    assert lines[-1].strip() == f"Console: {address}"
    assert len(lines) <= 24
