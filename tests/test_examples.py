"""Every example would be stored, and is in service when its comment says so."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crds.rules import check
from service.commands.documents import read

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
# Hours of service in the week from Monday 2 March 2026 (UTC), and the first opening within it.
SERVICE = {
    "cron": (58, "2026-03-06T20:00"),
    "emergency-reclaim": (7 * 24, None),
    "night-shift": (7 * 9, "2026-03-02T21:00"),
    "office-hours": (5 * 9, "2026-03-02T14:00"),
    "weekend": (48, "2026-03-06T15:00"),
}


def only(path: Path):
    (document,) = read(str(path))
    return document.content


def test_there_is_an_example_for_each_way_to_use_it():
    assert {path.stem for path in EXAMPLES} == set(SERVICE)


def test_the_overview_names_every_example():
    assert all(f"[{path.name}]({path.name})" in (FOLDER / "README.md").read_text() for path in EXAMPLES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_allowed(path):
    verdict = check(only(path))
    assert verdict.allowed, [str(violation) for violation in verdict.violations]
    assert all("killIfCommands" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_in_service_when_it_says(path):
    hours, first = SERVICE[path.stem]
    schedule = check(only(path)).model.spec.schedule.compiled
    week = [window.cut(MONDAY, MONDAY + 168 * HOUR) for window in schedule.windows(MONDAY, MONDAY + 168 * HOUR)]
    assert sum((window.length for window in week), timedelta()) == hours * HOUR
    opened = [window.opens for window in week if window.opens > MONDAY]
    assert (opened[0].strftime("%Y-%m-%dT%H:%M") if opened else None) == first
