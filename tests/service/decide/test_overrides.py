"""What overrides do to a machine: the rules ask for the effective state, the status and Events tell of it."""

from dataclasses import replace

import pytest

from crds.overrides import Override, OverrideState
from crds.providers import DEFAULT_POLICY
from crds.status import Phase
from service.decide.intent import Sources, read_intent
from service.decide.lifecycle import decide
from service.decide.reasons import Reason
from tests.service.decide.builders import (
    CLOSES,
    EVENING,
    MINUTE,
    MORNING,
    OPENS,
    TOMORROW,
    broken_spec,
    cluster,
    identity,
    intent,
    legible,
    pod,
    raw_spec,
    running_world,
    status,
    stored,
    world,
)
from tests.service.decide.simulation import Simulation, running

HOUR = 60 * MINUTE
OPEN, CLOSED, SCHEDULED = OverrideState.OPEN, OverrideState.CLOSED, OverrideState.SCHEDULED


def override(state=OPEN, begins=CLOSES, ends=CLOSES + 4 * HOUR, **fields):
    return Override(**{"name": "tonight", "state": state, "begins": begins, "ends": ends, "created": OPENS, **fields})


def overridden(sim: Simulation, **fields) -> Simulation:
    sim.overrides = (override(**fields),)
    return sim


def conditions(sim: Simulation) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in sim.status.conditions}


def test_an_open_override_keeps_the_machine_after_the_window_closes():
    sim = overridden(running(), requested_by="alice", reason="release night")
    sim.now = CLOSES + HOUR
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE
    assert (sim.status.in_schedule, conditions(sim)["Scheduled"][0]) == (False, "False")
    assert conditions(sim)["Overridden"] == ("True", Reason.OVERRIDE_OPEN)
    assert sim.status.override is not None
    assert sim.status.override.to_json() == {
        "name": "tonight",
        "state": "Open",
        "until": "2026-03-02T22:00:00Z",
        "by": "alice",
        "reason": "release night",
    }


def test_a_machine_leaves_when_its_override_ends():
    sim = overridden(running())
    sim.now = CLOSES + 4 * HOUR
    sim.settle()
    assert sim.status.phase is Phase.SHUTTING_DOWN
    assert sim.status.override is None
    assert "Overridden" not in conditions(sim)


def test_the_controller_looks_again_when_an_override_begins_and_ends():
    late = replace(intent(), overrides=(override(begins=MORNING + HOUR),))
    assert decide(late, running_world(), MORNING).requeue_at == MORNING + HOUR
    assert decide(late, running_world(), CLOSES).requeue_at == CLOSES + 4 * HOUR


def test_a_closed_override_shuts_a_machine_down_within_its_window():
    sim = overridden(running(), state=CLOSED, begins=MORNING, ends=MORNING + HOUR)
    sim.settle()
    assert sim.status.phase is Phase.SHUTTING_DOWN
    assert sim.status.in_schedule
    deleted = [event.message for event in sim.events if event.reason == Reason.MACHINE_DELETED]
    assert deleted == ["Deleting Machine desk-machine: override tonight is in force."]


def test_an_override_that_comes_during_a_shutdown_cancels_it():
    sim = running()
    sim.now = CLOSES
    sim.guarded, sim.pods = {"web"}, [pod()]
    sim.step()
    assert sim.status.shutdown_started_at == CLOSES
    overridden(sim).settle()
    assert sim.status.phase is Phase.ACTIVE
    assert Reason.SHUTDOWN_CANCELLED in sim.event_reasons()


def test_events_tell_when_an_override_begins_and_ends():
    sim = overridden(running(), requested_by="alice", reason="release night")
    sim.now = CLOSES
    sim.settle()
    sim.overrides = ()
    sim.settle()
    messages = [event.message for event in sim.events if event.reason in (Reason.OVERRIDE_BEGAN, Reason.OVERRIDE_ENDED)]
    until = "2026-03-02 22:00:00 UTC"
    assert messages == [
        f"ScheduleOverride tonight (Open) is in force until {until}, requested by alice: release night",
        "ScheduleOverride tonight (Open) is no longer in force.",
    ]


def test_window_and_next_boundaries_are_those_of_the_overridden_schedule():
    sim = overridden(running())
    sim.settle()
    stored = sim.status
    assert stored.window is not None
    assert (stored.window.opens, stored.window.closes) == (OPENS, CLOSES + 4 * HOUR)
    assert (stored.next_cleanup, stored.next_activation) == (CLOSES + 4 * HOUR, TOMORROW)
    assert stored.next_change == "closes Mon 22:00"


@pytest.mark.parametrize(
    ("of", "seen"),
    [
        (intent(killSwitch=True), running_world()),
        (intent(schedule={"enabled": False}), running_world()),
        (intent(), running_world(me=identity(paused=True))),
        (intent(), running_world(me=identity(deleting_since=EVENING))),
        (intent(), running_world(cluster=cluster(deleting=True))),
        (legible(broken_spec()), running_world()),
    ],
    ids=["kill switch", "disabled", "paused", "being deleted", "Cluster is being deleted", "invalid spec"],
)
def test_what_outranks_an_override_decides_as_without_one(of, seen):
    with_one = replace(of, overrides=(override(),))
    plan, plain = decide(with_one, seen, EVENING), decide(of, seen, EVENING)
    assert (plan.phase, plan.reason, plan.actions) == (plain.phase, plain.reason, plain.actions)


def test_an_outranked_override_is_reported_as_such():
    sim = overridden(running(), begins=MORNING)
    sim.edit(schedule={"enabled": False})
    sim.settle()
    assert conditions(sim)["Overridden"] == ("False", Reason.OVERRIDE_OUTRANKED)


HOLIDAYS = {"calendarRef": {"name": "holidays"}, "state": "Closed"}
UNREADABLE = intent(schedule={"exceptions": [HOLIDAYS]})


def test_an_override_decides_in_spite_of_a_calendar_that_cannot_be_read():
    for state, phase in ((OPEN, Phase.ACTIVE), (CLOSED, Phase.SHUTTING_DOWN)):
        of = replace(UNREADABLE, overrides=(override(state, MORNING, CLOSES),))
        assert decide(of, running_world(), MORNING).phase is phase


def test_a_scheduled_override_needs_the_schedule():
    of = replace(UNREADABLE, overrides=(override(SCHEDULED, MORNING, CLOSES),))
    assert decide(of, running_world(), MORNING).phase is Phase.ERROR


def test_a_machine_stays_when_its_override_ends_and_the_calendar_cannot_be_read():
    of = replace(UNREADABLE, overrides=(override(OPEN, OPENS, MORNING),))
    plan = decide(of, running_world(), MORNING)
    assert (plan.phase, plan.actions) == (Phase.ERROR, ())


class Recorded:
    """An OverrideSource that remembers what it was asked."""

    def __init__(self, *found: Override) -> None:
        self.asked: list[object] = []
        self._found = found

    def about(self, namespace, name, labels):
        self.asked.append((namespace, name, labels))
        return self._found


def test_the_source_is_asked_by_namespace_name_and_labels():
    raw = stored(raw_spec())
    raw["metadata"]["labels"] = {"team": "quant"}
    source = Recorded(override())
    assert read_intent(raw, DEFAULT_POLICY, Sources(overrides=source)).overrides == (override(),)
    assert source.asked == [("team", "desk", {"team": "quant"})]


def test_ends_within_a_second_count_from_its_beginning():
    half = override(ends=CLOSES + 4 * HOUR + MINUTE / 120)
    read = read_intent(stored(raw_spec()), DEFAULT_POLICY, Sources(overrides=Recorded(half)))
    assert read.effective.next_change(MORNING) == CLOSES + 4 * HOUR


def test_an_override_before_the_first_window_makes_a_machine():
    asked = replace(intent(), overrides=(override(begins=EVENING),))
    assert decide(asked, world(status=status()), EVENING).phase is Phase.ACTIVE
