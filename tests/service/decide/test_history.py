"""What the status keeps of the services of a machine."""

from dataclasses import replace

import pytest

from crds.history import HISTORY_MAX, EndReason, History, ServiceRecord
from crds.overrides import Override, OverrideState
from crds.status import Phase
from service.decide.world import Role
from tests.service.decide.builders import CLOSES, MINUTE, MORNING, OPENS, SECOND, TOMORROW, pod, raw_spec
from tests.service.decide.simulation import Simulation, running

DAY = TOMORROW - OPENS


def newest(sim: Simulation) -> ServiceRecord:
    return sim.status.history.records[-1]


def freed(sim: Simulation, took=2 * MINUTE) -> Simulation:
    """The shutdown ends: pods leave, Cluster API deletes what it has to."""
    sim.settle()
    sim.let_pods_go()
    sim.settle()
    sim.after(took)
    sim.finish_deletion()
    sim.settle()
    return sim


def served(days: int = 1, **fields) -> Simulation:
    """A machine after so many days of service, each Ready a minute and gone two minutes after they began."""
    sim = Simulation(now=OPENS, **fields)
    for day in range(days):
        sim.now = sim.status.next_activation or OPENS
        sim.settle()
        sim.after(MINUTE)
        sim.provision()
        sim.settle()
        sim.now = sim.status.next_cleanup or CLOSES + day * DAY
        freed(sim)
    return sim


def test_a_service_is_recorded_from_its_creation_until_its_objects_are_gone():
    sim = Simulation(now=OPENS)
    sim.settle()
    assert newest(sim) == ServiceRecord(opened=OPENS, requested=OPENS)
    sim.after(MINUTE)
    sim.provision()
    sim.settle()
    assert newest(sim) == ServiceRecord(opened=OPENS, requested=OPENS, ready=OPENS + MINUTE)
    sim.now = CLOSES
    sim.settle()
    begun = ServiceRecord(
        opened=OPENS,
        requested=OPENS,
        ready=OPENS + MINUTE,
        shutdown=CLOSES,
        closed=CLOSES,
        reason=EndReason.WINDOW_CLOSED,
    )
    assert newest(sim) == begun
    freed(sim)
    assert newest(sim) == begun.model_copy(update={"gone": CLOSES + 2 * MINUTE})
    assert sim.status.history.current is None


def test_a_shutdown_that_is_cancelled_leaves_no_trace():
    sim = running(pods=[pod()])
    sim.guarded = {"web"}
    sim.now = CLOSES
    sim.settle()
    assert newest(sim).reason is EndReason.WINDOW_CLOSED
    sim.edit(schedule={"hoursOfDay": ["9-20"]})
    sim.settle()
    assert (newest(sim).shutdown, newest(sim).closed, newest(sim).reason) == (None, None, None)


def kill(sim: Simulation) -> None:
    sim.edit(killSwitch=True)


def reclaim(sim: Simulation) -> None:
    sim.ask_back()


def unhealthy(sim: Simulation) -> None:
    conditions = [{"type": "HealthCheckSucceeded", "status": "False"}, {"type": "OwnerRemediated", "status": "False"}]
    sim.objects[Role.MACHINE]["status"]["conditions"] += conditions


def cluster_goes(sim: Simulation) -> None:
    sim.cluster = None


def deleted(sim: Simulation) -> None:
    sim.ask_deletion_of(Role.MACHINE)


def closed_tonight(sim: Simulation) -> None:
    sim.overrides = (Override("quiet", OverrideState.CLOSED, sim.now, CLOSES, created=OPENS),)


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (kill, EndReason.KILL_SWITCH),
        (reclaim, EndReason.RECLAIMED),
        (unhealthy, EndReason.REPLACED),
        (cluster_goes, EndReason.CLUSTER_GONE),
        (deleted, EndReason.MACHINE_DELETED),
        (closed_tonight, EndReason.OVERRIDE_CLOSED),
    ],
)
def test_the_record_says_why_a_service_ended(ends, reason):
    sim = running()
    ends(sim)
    freed(sim)
    record = sim.status.history.records[0]
    assert (record.reason, record.gone, record.closed) == (reason, MORNING + 2 * MINUTE, None)


def test_an_override_during_a_service_is_noted_also_when_it_is_over():
    sim = running()
    sim.overrides = (Override("late", OverrideState.OPEN, sim.now, sim.now + MINUTE, created=OPENS),)
    sim.settle()
    assert newest(sim).overridden
    sim.overrides = ()
    sim.after(2 * MINUTE)
    sim.settle()
    assert (newest(sim).overridden, newest(sim).reason) == (True, None)


def test_a_service_that_an_override_begins_is_noted():
    sim = Simulation(now=CLOSES + MINUTE)
    sim.settle()
    sim.overrides = (Override("late", OverrideState.OPEN, sim.now, sim.now + 60 * MINUTE, created=OPENS),)
    sim.settle()
    assert newest(sim).overridden


def test_a_kill_switch_during_a_shutdown_is_the_reason():
    sim = running(pods=[pod()])
    sim.guarded = {"web"}
    sim.now = CLOSES
    sim.settle()
    kill(sim)
    freed(sim)
    assert newest(sim).reason is EndReason.KILL_SWITCH


def test_a_replaced_machine_begins_a_record_of_its_own():
    sim = running()
    unhealthy(sim)
    freed(sim)
    assert [each.is_over for each in sim.status.history.records] == [True, False]
    assert newest(sim).requested == MORNING + 2 * MINUTE


def test_a_drain_that_was_cut_short_is_noted():
    sim = running(pods=[pod()])
    sim.guarded = {"web"}
    sim.now = CLOSES
    sim.settle()
    sim.after(10 * MINUTE)
    freed(sim)
    assert newest(sim).undrained


def test_only_the_last_services_are_kept():
    sim = served(HISTORY_MAX + 2)
    assert len(sim.status.history.stored) == HISTORY_MAX
    assert newest(sim).opened == OPENS + 15 * DAY  # two weekends lie between


def test_the_history_changes_only_with_something_else_in_the_status():
    sim = Simulation(now=OPENS - SECOND, spec=raw_spec(schedule={"startEarly": "10m", "stopEarly": "Auto"}))
    for step in range(400):
        before = sim.status
        sim.step()
        if sim.status.history != before.history or sim.status.leads != before.leads:
            same = {"history": before.history, "leads": before.leads}
            assert sim.status.model_copy(update=same) != before, "a status write of its own"
        sim.after(4 * MINUTE)
        if step % 10 == 3 and Role.MACHINE in sim.objects and sim.node is None:
            sim.provision()
        sim.let_pods_go()
        if step % 7 == 0:
            sim.finish_deletion()


def test_records_that_cannot_be_read_do_not_count():
    history = History.of([{"requested": "noon"}, "nothing", {"requested": "2026-03-02T09:00:00Z"}])
    assert [each.requested for each in history.records] == [OPENS]
    assert History.of([{"requested": "noon"}]).current is None


def test_a_machine_from_before_there_was_a_history_gets_no_record():
    sim = running()
    sim.status = sim.status.model_copy(update={"history": History()})
    sim.now = CLOSES
    freed(sim)
    assert (sim.status.phase, sim.status.history) == (Phase.INACTIVE, History())


def test_a_service_is_over_when_its_machine_is_gone_in_whatever_phase():
    sim = replace(running(), paused=True)
    sim.objects.clear()
    sim.node = None
    sim.settle()
    assert newest(sim).reason is EndReason.MACHINE_DELETED
    assert newest(sim).is_over


def test_a_service_that_ended_for_a_reason_of_a_newer_version_still_counts():
    stored = {"requested": "2026-03-02T09:00:00Z", "gone": "2026-03-02T18:00:00Z", "reason": "Evaporated"}
    (record,) = History.of([stored, {"requested": "whenever"}]).records
    assert (record.requested, record.gone, record.reason) == (OPENS, CLOSES, None)
