from datetime import UTC, datetime, timedelta

import pytest

from crds.history import History, ServiceRecord
from crds.status import Condition, ObjectReference, Phase, Reclaim, ScheduledMachineStatus
from service import metrics
from service.act.measure import measure
from service.clock import SimulatedClock
from service.decide import plan as actions
from service.decide.drain import Drain
from service.decide.outcome import Blocker, Outcome
from service.decide.plan import Plan
from service.decide.reasons import Reason
from service.decide.world import Pod, Role

NINE = datetime(2026, 3, 6, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
CREATE = actions.Create(role=Role.MACHINE, manifest={})
PODS = tuple(Pod("default", name, name, None, mirror=False, finished=False, deleting=False) for name in "abc")


def value(metric, suffix="_total", **labels):
    name = next(iter(metric.describe())).name + suffix
    return next(
        (
            one.value
            for family in metric.collect()
            for one in family.samples
            if (one.name, one.labels) == (name, labels)
        ),
        0.0,
    )


def done(action, *, before=None, at=NINE, speed=1.0, plan=None, blockers=()):
    chosen = plan or Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message", actions=(action,))
    clock = SimulatedClock.starting(at, speed)
    known = before or ScheduledMachineStatus()
    measure(known, known, chosen, Outcome(done=(action,), blockers=blockers), clock)


def test_how_late_a_machine_was_requested_counts_from_the_boundary_in_real_seconds():
    count, total = (value(metrics.ACTIVATION_LATENESS, suffix) for suffix in ("_count", "_sum"))
    announced = ScheduledMachineStatus(next_activation=NINE - timedelta(minutes=10))
    done(CREATE, before=announced, speed=60)
    assert value(metrics.ACTIVATION_LATENESS, "_count") == count + 1
    assert value(metrics.ACTIVATION_LATENESS, "_sum") - total == pytest.approx(10, abs=1)


@pytest.mark.parametrize("announced", [None, NINE + timedelta(days=1)], ids=["a new object", "an edit"])
def test_a_machine_created_without_an_announced_opening_is_not_measured_as_late(announced):
    count = value(metrics.ACTIVATION_LATENESS, "_count")
    done(CREATE, before=ScheduledMachineStatus(next_activation=announced))
    assert value(metrics.ACTIVATION_LATENESS, "_count") == count


def test_removal_is_late_against_the_end_of_its_window_and_forgetting_a_shutdown_is_not():
    count = value(metrics.REMOVAL_LATENESS, "_count")
    announced = ScheduledMachineStatus(next_cleanup=NINE)
    done(actions.RecordShutdown(started_at=None), before=announced)
    done(actions.RecordShutdown(started_at=NINE), before=announced)
    assert value(metrics.REMOVAL_LATENESS, "_count") == count + 1


@pytest.mark.parametrize(
    ("undrained", "drain", "result"),
    [(True, None, "timed_out"), (False, Drain((), ()), "completed"), (False, None, "skipped")],
)
def test_drains_are_counted_by_how_they_ended(undrained, drain, result):
    (label,) = metrics.DRAINS._labelnames
    before = value(metrics.DRAINS, **{label: result})
    delete = actions.Delete(role=Role.MACHINE, name="m", uid="u", why="x", undrained=undrained)
    done(delete, plan=Plan(Phase.SHUTTING_DOWN, Reason.MACHINE_RUNNING, "message", drain=drain))
    assert value(metrics.DRAINS, **{label: result}) == before + 1


def test_evictions_are_counted_by_what_the_budgets_said():
    (label,) = metrics.EVICTIONS._labelnames
    before = [value(metrics.EVICTIONS, **{label: result}) for result in ("accepted", "blocked")]
    done(actions.Evict(pods=PODS), blockers=(Blocker(PODS[0], "a budget"),))
    after = [value(metrics.EVICTIONS, **{label: result}) for result in ("accepted", "blocked")]
    assert [now - then for then, now in zip(before, after, strict=True)] == [2, 1]


@pytest.mark.parametrize(("phase", "counted"), [(Phase.TERMINATED, 1), (Phase.SHUTTING_DOWN, 0)])
def test_a_machine_that_the_kill_switch_takes_away_is_counted(phase, counted):
    before = value(metrics.KILL_SWITCHES)
    parts = (actions.Delete(role=role, name="m", uid="u", why="x") for role in Role)
    for delete in parts:
        done(delete, plan=Plan(phase, Reason.MACHINE_RUNNING, "message"))
    assert value(metrics.KILL_SWITCHES) == before + counted


def test_a_machine_whose_owner_asks_for_it_is_counted_when_that_is_stored():
    before = value(metrics.EMERGENCY_RECLAIMS)
    asked = Reclaim(requested_at=NINE, reason="idea", node="node-7", machine_uid="u")
    for action in (actions.RecordReclaim(asked), actions.DisableSchedule()):
        done(action, plan=Plan(Phase.EMERGENCY_REMOVE, Reason.MACHINE_RUNNING, "message"))
    assert value(metrics.EMERGENCY_RECLAIMS) == before + 1


def ready_status(**fields):
    host = ObjectReference(api_version="x/v1", kind="RemoteMachine", name="m", namespace="n")
    known = {"infrastructure_ref": host, "last_scheduled_time": NINE, "first_ready_time": NINE + timedelta(minutes=4)}
    return ScheduledMachineStatus(**{**known, **fields})


def measured(before, after, speed=1.0):
    """How many times to Ready were observed, and their sum."""

    def seen():
        return [value(metrics.TIME_TO_READY, suffix, kind="RemoteMachine") for suffix in ("_count", "_sum")]

    first = seen()
    plan = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message")
    measure(before, after, plan, Outcome(), SimulatedClock.starting(NINE, speed))
    return tuple(now - then for then, now in zip(first, seen(), strict=True))


def test_the_time_to_ready_counts_from_the_creation_of_the_machine_in_real_seconds():
    assert measured(ready_status(first_ready_time=None), ready_status(), speed=60) == (1, pytest.approx(4))


def test_each_machine_is_measured_once():
    assert measured(ready_status(), ready_status()) == (0, 0)


def test_a_machine_that_was_ready_before_that_was_written_down_is_not_measured():
    ready = Condition(type="Ready", status="True", reason="MachineRunning", last_transition_time=NINE)
    assert measured(ready_status(first_ready_time=None, conditions=(ready,)), ready_status()) == (0, 0)


def test_a_clock_that_was_set_back_makes_no_negative_time():
    assert measured(ready_status(first_ready_time=None), ready_status(last_scheduled_time=NINE + HOUR)) == (1, 0)


def test_the_label_kind_of_metrics_takes_a_bounded_number_of_values(monkeypatch):
    monkeypatch.setattr(metrics, "_kinds", set())
    labels = [metrics.kind_label(f"Kind{number}") for number in range(40)]
    assert len(set(labels)) == metrics.KINDS_MAX + 1
    assert labels[-1] == "other"
    assert metrics.kind_label("Kind0") == "Kind0"


def service(**fields):
    return ServiceRecord(**{"opened": NINE, "requested": NINE - timedelta(minutes=10), **fields})


def punctuality(before, after, speed=1.0):
    """How often each was measured, and the sums of lateness and of service."""

    def seen():
        lateness = [(metrics.READY_LATENESS, "_count"), (metrics.READY_LATENESS, "_sum")]
        lateness += [(metrics.GONE_LATENESS, "_count"), (metrics.GONE_LATENESS, "_sum")]
        return [value(metric, suffix) for metric, suffix in lateness] + [value(metrics.SERVED_SECONDS)]

    first = seen()
    plan = Plan(Phase.ACTIVE, Reason.MACHINE_RUNNING, "message")
    then, now = (ScheduledMachineStatus(history=History().added(each)) for each in (before, after))
    measure(then, now, plan, Outcome(), SimulatedClock.starting(NINE, speed))
    return [later - sooner for sooner, later in zip(first, seen(), strict=True)]


MINUTES = timedelta(minutes=1)


@pytest.mark.parametrize(("ready", "late"), [(NINE - MINUTES, 0), (NINE + 2 * MINUTES, 120)])
def test_ready_is_late_against_the_opening(ready, late):
    assert punctuality(service(), service(ready=ready)) == [1, pytest.approx(late), 0, 0, 0]


def test_a_machine_that_was_requested_long_after_the_opening_is_not_late_for_it():
    edited = {"requested": NINE + HOUR}
    assert punctuality(service(**edited), service(**edited, ready=NINE + 2 * HOUR)) == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(("gone", "late"), [(-MINUTES, 0), (2 * MINUTES, 2)])
def test_gone_is_late_against_the_close_and_the_service_counts_until_its_shutdown(gone, late):
    closed = NINE + 9 * HOUR
    known = {"ready": NINE, "shutdown": closed - 10 * MINUTES, "closed": closed}
    found = punctuality(service(**known), service(**known, gone=closed + gone), speed=60)
    assert found == [0, 0, 1, pytest.approx(late), pytest.approx(9 * 60 - 10)]


def test_a_service_that_no_close_ended_is_not_late_for_one():
    assert punctuality(service(), service(gone=NINE)) == [0, 0, 0, 0, 0]
