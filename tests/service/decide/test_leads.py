"""Leads: a machine is requested before its window opens and shut down before it closes; fixed, or learnt."""

from datetime import timedelta
from typing import Any

import pytest

from crds.history import EndReason, ServiceRecord
from crds.leads import Auto
from crds.providers import DEFAULT_POLICY
from crds.status import LeadTimes, Phase
from service.decide.effective import NO_LEADS, Leads
from service.decide.intent import Sources, read_intent
from service.decide.leads import LeadRules, Usual, time_needed, times_to_gone, times_to_ready
from service.decide.reasons import Reason
from service.decide.world import Role
from tests.service.decide.builders import (
    CLOSES,
    GRACE,
    MINUTE,
    OPENS,
    SECOND,
    TOMORROW,
    intent,
    legible,
    pod,
    raw_spec,
    stored,
)
from tests.service.decide.simulation import Simulation
from tests.service.decide.test_history import freed, served

HOUR = 60 * MINUTE
AUTO = {"startEarly": "Auto", "stopEarly": "Auto"}
EIGHT_MINUTES = {"startEarly": "8m", "stopEarly": "8m"}


def scheduled(**schedule: Any) -> dict[str, Any]:
    return raw_spec(schedule=schedule)


def leads_of(sim: Simulation) -> LeadTimes:
    assert sim.status.leads is not None
    return sim.status.leads


def waiting(*, at=OPENS - HOUR, **schedule: Any) -> Simulation:
    sim = Simulation(spec=scheduled(**schedule), now=at)
    sim.settle()
    return sim


# What a user fixes


def test_the_machine_is_requested_that_long_before_the_opening():
    sim = waiting(**EIGHT_MINUTES)
    assert sim.status.next_activation == OPENS - 8 * MINUTE
    assert sim.plan().requeue_at == OPENS - 8 * MINUTE
    sim.now = OPENS - 8 * MINUTE - SECOND
    sim.settle()
    assert (sim.status.phase, sim.objects) == (Phase.INACTIVE, {})
    sim.now += SECOND
    sim.settle()
    assert (sim.status.phase, sim.status.in_schedule) == (Phase.ACTIVE, False)
    assert sim.status.window is not None
    assert (sim.status.window.opens, sim.status.window.closes) == (OPENS, CLOSES)
    assert sim.status.next_cleanup == CLOSES - 8 * MINUTE


def test_the_shutdown_begins_that_long_before_the_close():
    sim = waiting(at=OPENS, **EIGHT_MINUTES)
    sim.provision()
    sim.pods = [pod()]
    sim.now = CLOSES - 8 * MINUTE - SECOND
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE
    sim.now += SECOND
    sim.settle()
    assert (sim.status.phase, sim.status.in_schedule) == (Phase.SHUTTING_DOWN, True)
    assert sim.status.next_cleanup == CLOSES - 8 * MINUTE + GRACE
    freed(sim)
    assert sim.status.machine_ref is None
    record = sim.status.history.records[-1]
    assert (record.shutdown, record.closed) == (CLOSES - 8 * MINUTE, CLOSES)
    deletion = next(event for event in sim.events if event.reason is Reason.MACHINE_DELETED)
    assert "the window closes at 2026-03-02 18:00:00 UTC" in deletion.message


def test_a_machine_that_is_free_early_is_not_requested_again_in_the_same_window():
    sim = served(spec=scheduled(**EIGHT_MINUTES))
    assert CLOSES - 8 * MINUTE < sim.now < CLOSES
    assert (sim.status.phase, sim.status.next_activation) == (Phase.INACTIVE, TOMORROW - 8 * MINUTE)


def test_a_gap_that_is_not_longer_than_the_lead_is_bridged():
    sim = Simulation(spec=scheduled(hoursOfDay=["9-10,12-17"], startEarly="1h"), now=OPENS)
    sim.settle()
    sim.provision()
    sim.settle()
    created = sim.objects[Role.MACHINE]["metadata"]["uid"]
    for now in (OPENS + 2 * HOUR, OPENS + 2 * HOUR + 30 * MINUTE, OPENS + 4 * HOUR):
        sim.now = now
        sim.settle()
        assert sim.status.phase is Phase.ACTIVE
    assert sim.objects[Role.MACHINE]["metadata"]["uid"] == created
    assert sim.status.shutdown_started_at is None


def test_a_window_that_the_lead_uses_up_is_skipped_with_one_event():
    sim = waiting(hoursOfDay=["9"], stopEarly="1h")
    sim.now = OPENS
    sim.settle()
    sim.now += 30 * MINUTE
    sim.settle()
    assert (sim.status.phase, sim.objects) == (Phase.INACTIVE, {})
    assert sim.event_reasons().count(Reason.WINDOW_SKIPPED) == 1
    sim.now = OPENS + HOUR
    sim.settle()
    sim.now = TOMORROW
    sim.settle()
    assert sim.event_reasons().count(Reason.WINDOW_SKIPPED) == 2


def test_a_shorter_lead_does_not_remove_a_machine_that_was_requested():
    sim = waiting(at=OPENS - 30 * MINUTE, startEarly="30m")
    created = sim.objects[Role.MACHINE]["metadata"]["uid"]
    sim.edit(schedule={"startEarly": "5m"})
    sim.after(MINUTE)
    sim.settle()
    assert sim.objects[Role.MACHINE]["metadata"]["uid"] == created
    assert sim.status.phase is Phase.ACTIVE


def test_an_invalid_spec_keeps_its_leads():
    assert legible(raw_spec(priority="high", schedule=EIGHT_MINUTES)).leads == Leads(8 * MINUTE, 8 * MINUTE)


def test_without_leads_nothing_is_stored():
    sim = served(3)
    assert (sim.intent.leads, sim.status.leads) == (NO_LEADS, None)
    assert served(3, spec=scheduled(**EIGHT_MINUTES)).status.leads is None


# Auto


def test_auto_begins_with_five_minutes_and_the_grace_period():
    assert intent(schedule=AUTO).leads == Leads(5 * MINUTE, GRACE)
    assert intent(schedule=AUTO, gracefulShutdownTimeout="3h").leads.stop == HOUR
    sim = waiting(**AUTO)
    assert leads_of(sim) == LeadTimes(start_early=5 * MINUTE, stop_early=GRACE)
    assert sim.status.next_activation == OPENS - 5 * MINUTE


def closed(sim: Simulation) -> Simulation:
    """The machine after the close of the window that it has left."""
    assert sim.status.window is not None
    sim.now = sim.status.window.closes or sim.now
    sim.settle()
    return sim


def test_auto_learns_from_three_services():
    two = closed(served(2, spec=scheduled(**AUTO)))
    assert leads_of(two) == LeadTimes(start_early=5 * MINUTE, stop_early=GRACE)
    sim = closed(served(3, spec=scheduled(**AUTO)))
    assert leads_of(sim) == LeadTimes(start_early=MINUTE, stop_early=2 * MINUTE)
    next_start = OPENS + 3 * (TOMORROW - OPENS) - MINUTE
    assert (sim.status.next_activation, sim.plan().requeue_at) == (next_start, next_start)


def test_a_shorter_lead_does_not_bring_a_machine_back_that_has_left_its_window():
    sim = served(3, spec=scheduled(**AUTO))
    assert (sim.status.window and sim.status.window.closes) == sim.now + 3 * MINUTE
    assert leads_of(sim).stop_early == GRACE, "with the two minutes that it needed, it would return for one"
    assert (sim.status.phase, sim.plan().actions) == (Phase.INACTIVE, ())


def test_a_service_that_ends_after_the_close_teaches_at_once():
    sim = served(2, spec=scheduled(startEarly="Auto"))
    sim.now = sim.status.next_activation or OPENS
    sim.settle()
    sim.provision()
    sim.settle()
    sim.now = sim.status.next_cleanup or CLOSES
    freed(sim)
    assert leads_of(sim) == LeadTimes(start_early=MINUTE)


def test_what_was_learnt_costs_no_further_status_write():
    sim = closed(served(3, spec=scheduled(**AUTO)))
    written = sim.status
    sim.step()
    assert sim.status == written


def test_only_what_is_auto_is_learnt():
    sim = closed(served(3, spec=scheduled(startEarly="8m", stopEarly="Auto")))
    assert leads_of(sim) == LeadTimes(stop_early=2 * MINUTE)
    assert sim.intent.leads == Leads(8 * MINUTE, 2 * MINUTE)


def test_a_lead_stays_as_it_is_while_its_machine_is_there():
    sim = closed(served(3, spec=scheduled(**AUTO)))
    sim.now = sim.status.next_activation or OPENS
    sim.settle()
    known = sim.status.leads
    sim.after(30 * SECOND)
    sim.provision()
    sim.settle()
    assert (sim.status.leads, sim.status.phase) == (known, Phase.ACTIVE)


def test_a_service_that_ends_in_the_lead_of_the_next_teaches_nothing_yet():
    sim = served(2, spec=scheduled(**AUTO))
    sim.now = sim.status.next_activation or OPENS
    sim.settle()
    sim.provision()
    sim.settle()
    sim.ask_deletion_of(Role.MACHINE)
    freed(sim, took=MINUTE)
    assert len([each for each in sim.status.history.records if each.is_over]) == 3
    assert leads_of(sim) == LeadTimes(start_early=5 * MINUTE, stop_early=GRACE)
    assert sim.status.phase is Phase.ACTIVE, "a machine was requested again"


def test_a_schedule_that_is_auto_no_longer_forgets_what_was_learnt():
    sim = closed(served(3, spec=scheduled(**AUTO)))
    sim.edit(schedule={"startEarly": "8m", "stopEarly": None})
    sim.settle()
    assert sim.status.leads is None
    sim.edit(schedule=AUTO)
    sim.settle()
    assert leads_of(sim) == LeadTimes(start_early=MINUTE, stop_early=2 * MINUTE)


class Others:
    def like(self, raw: dict[str, Any]) -> Usual:
        assert raw["spec"]["clusterName"] == "prod"
        return Usual(start=7 * MINUTE)


def test_a_new_machine_takes_what_its_kind_usually_needs():
    raw = stored(scheduled(**AUTO))
    assert read_intent(raw, DEFAULT_POLICY, Sources(usual=Others())).leads == Leads(7 * MINUTE, GRACE)
    learnt = {"leads": {"startEarly": "2m", "stopEarly": "1m"}}
    assert read_intent({**raw, "status": learnt}, DEFAULT_POLICY, Sources(usual=Others())).leads == Leads(
        2 * MINUTE, MINUTE
    )


def test_what_a_status_says_of_leads_is_not_trusted():
    raw = {**stored(scheduled(**AUTO)), "status": {"leads": {"startEarly": "9h", "stopEarly": 7}, "history": "none"}}
    assert read_intent(raw, DEFAULT_POLICY).leads == Leads(5 * MINUTE, GRACE)


# The time needed


@pytest.mark.parametrize(
    ("seconds", "needed"),
    [
        ([60, 60], None),
        ([10, 30, 20], 30),
        (range(1, 11), 9),
        ([0, 0, 0], 1),
        ([-5, 10, 10], None),
        ([7200] * 3, 3600),
        ([1.2, 1.2, 1.2], 2),
    ],
)
def test_the_time_needed_is_that_of_nine_in_ten(seconds, needed):
    found = time_needed([timedelta(seconds=each) for each in seconds])
    assert found == (None if needed is None else timedelta(seconds=needed))


def record(**fields: Any) -> ServiceRecord:
    return ServiceRecord(**{"requested": OPENS, **fields})


def test_services_that_were_cut_short_say_nothing_about_shutdowns():
    ended = [
        record(shutdown=CLOSES, gone=CLOSES + MINUTE, reason=reason)
        for reason in (EndReason.WINDOW_CLOSED, EndReason.KILL_SWITCH, EndReason.RECLAIMED, EndReason.OVERRIDE_CLOSED)
    ]
    assert times_to_gone([*ended, record(), record(shutdown=CLOSES)]) == [MINUTE, MINUTE]
    assert times_to_ready([record(ready=OPENS + MINUTE), record()]) == [MINUTE]


def test_rules_know_whether_anything_is_to_be_learnt():
    assert [LeadRules(start=start).is_auto for start in (None, MINUTE, Auto.AUTO)] == [False, False, True]
