"""A machine that was made for a window stays, whatever a clock says that is a little behind."""

from datetime import timedelta

import pytest

from crds import names
from crds.status import Phase
from service.decide.openings import latest_window
from service.decide.situation import Situation
from service.decide.world import Role
from tests.service.decide import builders
from tests.service.decide.builders import (
    CLOSES,
    MINUTE,
    OPENS,
    SECOND,
    child,
    intent,
    machine,
    new_machine,
    running_status,
    running_world,
    world,
)
from tests.service.decide.simulation import Crash, Simulation

NOTE = {names.ANNOTATION_WINDOW_OPENS: "2026-03-02T09:00:00Z"}
NOTED = {"annotations": {**child(Role.MACHINE).annotations, **NOTE}}


def just_made() -> Simulation:
    sim = Simulation(now=OPENS)
    sim.settle()
    return sim


def test_all_three_objects_say_for_which_window_they_were_made():
    notes = [raw["metadata"]["annotations"][names.ANNOTATION_WINDOW_OPENS] for raw in just_made().objects.values()]
    assert notes == ["2026-03-02T09:00:00Z"] * 3


def test_a_machine_that_comes_late_says_when_its_window_opened():
    sim = Simulation(now=OPENS + 17 * MINUTE)
    sim.settle()
    assert latest_window(sim.world()) == OPENS


def test_a_window_that_has_always_been_open_leaves_no_note():
    sim = Simulation(spec=builders.raw_spec(schedule={"daysOfWeek": ["mon-sun"], "hoursOfDay": []}))
    sim.settle()
    assert len(sim.objects) == 3
    assert latest_window(sim.world()) is None


@pytest.mark.parametrize("behind", [SECOND, 10 * SECOND, 5 * MINUTE - SECOND])
def test_a_successor_that_is_a_little_behind_leaves_it_alone(behind):
    sim = just_made()
    made, emitted = dict(sim.objects), sim.event_reasons()
    sim.now = OPENS - behind
    last = sim.settle()
    assert (last.plan.phase, last.plan.actions, sim.objects) == (Phase.ACTIVE, (), made)
    assert sim.status.in_schedule
    assert sim.event_reasons() == emitted


def test_the_status_of_the_first_replica_need_not_have_been_stored():
    sim = Simulation(now=OPENS)
    with pytest.raises(Crash):
        sim.step(crash_after=4)
    assert set(sim.objects) == set(Role)
    assert sim.status.machine_ref is None
    sim.now = OPENS - 10 * SECOND
    last = sim.settle()
    assert (last.plan.phase, set(sim.objects)) == (Phase.ACTIVE, set(Role))


def test_what_was_half_made_is_completed_by_a_successor_that_is_behind():
    sim = Simulation(now=OPENS)
    with pytest.raises(Crash):
        sim.step(crash_after=2)
    first = sim.objects[Role.BOOTSTRAP]["metadata"]["uid"]
    sim.now = OPENS - 10 * SECOND
    sim.settle()
    assert set(sim.objects) == set(Role)
    assert sim.objects[Role.BOOTSTRAP]["metadata"]["uid"] == first


@pytest.mark.parametrize("behind", [5 * MINUTE, timedelta(hours=2)])
def test_a_clock_that_is_far_behind_closes_the_window(behind):
    seen = running_world(machine=new_machine(of=NOTED))
    assert not Situation.at(intent(), seen, OPENS - behind).open
    assert Situation.at(intent(), seen, OPENS - MINUTE).open


def test_a_shutdown_that_began_since_counts_more_than_the_opening():
    shut = running_status(shutdown_started_at=OPENS + MINUTE)
    seen = running_world(machine=machine(of=NOTED), status=shut)
    asked = intent(schedule={"daysOfWeek": [], "hoursOfDay": [], "cron": "0 9 * * *", "duration": "1m"})
    at = Situation.at(asked, seen, OPENS - 10 * SECOND)
    assert (at.now, at.open) == (OPENS + MINUTE, False)


@pytest.mark.parametrize("note", ["", "soon", "2026-03-02T09:00:00", "9" * 300])
def test_a_note_that_says_nothing_is_ignored(note):
    annotations = {names.ANNOTATION_WINDOW_OPENS: note}
    assert latest_window(running_world(machine=machine(of={"annotations": annotations}))) is None


def test_notes_of_objects_that_are_not_ours_do_not_count():
    assert latest_window(world(machine=machine(of={**NOTED, "ours": False}))) is None


def test_the_close_of_its_window_still_removes_it():
    sim = just_made()
    sim.now = CLOSES
    sim.step()
    assert sim.status.phase is Phase.SHUTTING_DOWN
