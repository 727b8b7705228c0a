"""What the command line says will happen."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.fleet import forecast
from service.fleet.overriding import Draft, extension, resumption, skip, suspension
from tests.service.fleet.fleet_overrides import (
    NOON,
    at,
    desk,
    london_desk,
    punctual_desk,
    stored,
    unreadable_desk,
)

TWO_HOURS = timedelta(hours=2)


def test_an_extension_says_until_when_and_what_then() -> None:
    machine = desk()
    assert forecast.after_draft(machine, extension(machine, TWO_HOURS, NOON), NOON) == [
        "desk-7 stays in service until 19:00 UTC.",
        "Then it is out of service until Mon 09:00 UTC.",
    ]


def test_a_suspension_that_ends_within_a_window_says_that_the_machine_returns() -> None:
    machine = desk()
    assert forecast.after_draft(machine, suspension(machine, TWO_HOURS, NOON), NOON) == [
        "desk-7 leaves service now and stays out until 14:00 UTC.",
        "Then it is in service until 17:00 UTC.",
    ]


def test_a_skip_says_that_the_current_window_is_as_before() -> None:
    machine = desk()
    said = forecast.after_draft(machine, skip(machine, NOON), NOON)
    assert said == [
        "desk-7 is in service until 17:00 UTC, as before.",
        "desk-7 skips the window from Mon 09:00 UTC until Mon 17:00 UTC.",
        "Then it is out of service until Tue 09:00 UTC.",
    ]


def test_a_return_to_the_schedule_says_what_that_is() -> None:
    machine = desk(stored("mine", "Closed", at(15)))
    said = forecast.after_resumption(machine, resumption(machine, NOON), NOON)
    assert said == ["desk-7 follows its schedule: it is in service until 17:00 UTC."]


def test_what_outranks_the_override_is_said() -> None:
    machine = desk(annotations={"cluster.x-k8s.io/paused": ""})
    said = forecast.after_draft(machine, extension(machine, TWO_HOURS, NOON), NOON)
    assert said[-1].startswith("It is paused")


def test_an_override_for_longer_than_operators_accept_by_default_says_so() -> None:
    machine = desk()
    said = forecast.after_draft(machine, extension(machine, timedelta(days=40), NOON), NOON)
    assert "more than 31 days ahead" in said[-1]


def test_nothing_to_end_says_what_the_schedule_does() -> None:
    assert forecast.unchanged(desk(), NOON) == "desk-7 has no override to end: it is in service until 17:00 UTC."


def test_a_machine_whose_schedule_cannot_be_read_may_run_and_leaves_by_an_override() -> None:
    machine = unreadable_desk()
    assert forecast.after_draft(machine, suspension(machine, TWO_HOURS, NOON), NOON) == [
        "desk-7 leaves service now and stays out until 14:00 UTC.",
        "What happens then is not known: there is no ScheduleCalendar holidays in this namespace.",
    ]


def test_what_a_schedule_that_cannot_be_read_says_is_not_guessed_at() -> None:
    machine = unreadable_desk(stored("mine", "Closed", at(15)))
    unknown = "what its schedule says is not known: there is no ScheduleCalendar holidays in this namespace."
    said = forecast.after_resumption(machine, resumption(machine, NOON), NOON)
    assert said == [f"desk-7 follows its schedule: {unknown}"]
    assert forecast.unchanged(unreadable_desk(), NOON) == f"desk-7 has no override to end: {unknown}"


# With leads


def test_a_service_that_stop_early_ends_before_its_close_says_when() -> None:
    machine = punctual_desk()
    assert forecast.after_draft(machine, extension(machine, TWO_HOURS, NOON), NOON) == [
        "desk-7 stays in service until 19:00 UTC; its shutdown begins at 18:30 UTC.",
        "Then it is out of service until Mon 09:00 UTC.",
    ]
    assert forecast.after_draft(machine, suspension(machine, TWO_HOURS, NOON), NOON) == [
        "desk-7 leaves service now and stays out until 14:00 UTC.",
        "Then it is in service until 17:00 UTC; its shutdown begins at 16:30 UTC.",
    ]


def test_an_extension_that_ends_in_the_lead_of_the_next_window_says_that_the_machine_stays() -> None:
    machine, seven = punctual_desk(), at(7)
    assert forecast.after_draft(machine, extension(machine, at(8, 55), seven), seven) == [
        "desk-7 goes into service now and stays until 08:55 UTC.",
        "Then it is in service until 17:00 UTC; its shutdown begins at 16:30 UTC.",
    ]


def test_a_skip_of_the_window_for_which_the_machine_was_requested_early_says_that_it_leaves() -> None:
    machine, early = punctual_desk(), at(8, 55)
    assert forecast.after_draft(machine, skip(machine, early), early) == [
        "desk-7 leaves service now: it was requested early, for the window that it skips.",
        "desk-7 skips the window from 09:00 UTC until 17:00 UTC.",
        "Then it is out of service until Mon 09:00 UTC.",
    ]


def test_a_skip_of_a_window_that_was_to_follow_without_a_gap_in_service_says_when_the_machine_leaves() -> None:
    machine = punctual_desk(hoursOfDay=["9-10", "12-16"], startEarly="1h", stopEarly=None)
    said = forecast.after_draft(machine, skip(machine, at(10)), at(10))
    assert said[0] == "desk-7 is in service until 11:00 UTC."


def test_a_machine_that_stop_early_shuts_down_is_out_of_service_until_the_window_after() -> None:
    assert forecast.unchanged(punctual_desk(), at(16, 40)) == (
        "desk-7 has no override to end: it is out of service until Mon 09:00 UTC."
    )


# What the guides quote

DOCS = Path(__file__).parents[3] / "docs"
HALF_PAST_TWO = datetime(2026, 11, 18, 14, 30, 12, 51_000, tzinfo=UTC)


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of the user."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
def test_stay_late_quotes_what_the_command_says() -> None:
    machine = london_desk(daysOfWeek=["mon-fri"], hoursOfDay=["9-17"])
    draft = extension(machine, datetime(2026, 11, 18, 22, tzinfo=UTC), HALF_PAST_TWO)
    assert quoted("stay-late.md", draft) == forecast.after_draft(machine, draft, HALF_PAST_TWO)


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("zone", ["Europe/London"], indirect=True)
def test_skip_a_night_quotes_what_the_command_says() -> None:
    machine = london_desk(windows=[{"days": ["mon-fri"], "from": "18:30", "to": "07:00"}])
    draft = skip(machine, HALF_PAST_TWO)
    assert quoted("skip-a-night.md", draft) == forecast.after_draft(machine, draft, HALF_PAST_TWO)


def quoted(page: str, draft: Draft) -> list[str]:
    """What a guide says that the command prints, without its last line, which names the override."""
    *said, made = (DOCS / page).read_text(encoding="utf-8").partition("```text\n")[2].partition("\n```")[0].splitlines()
    name = draft.body("alice", HALF_PAST_TWO)["metadata"]["name"]
    assert made == f"Created ScheduleOverride {name}; undo it with: 5spot resume desk-7 -n team-a"
    return said
