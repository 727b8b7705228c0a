"""The report's figures, against a month that is simulated and measured independently, minute by minute."""

import random
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

import pytest

from crds import names
from crds.overrides import Override, OverrideState
from service.decide.world import Role
from service.fleet.usage import ReportPeriod, Spread, hourly_cost, machine_use, report_of
from tests.service.decide.builders import MINUTE, MONDAY, SECOND, pod, raw_spec
from tests.service.decide.simulation import Simulation

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MONTH = ReportPeriod(MONDAY, MONDAY + 30 * DAY)
TWICE_A_WEEK = {"daysOfWeek": ["tue", "fri"], "hoursOfDay": ["9-17"]}


def stored(sim: Simulation, name: str = "desk", created=MONDAY - DAY, cost: str | None = None):
    annotations = {names.ANNOTATION_HOURLY_COST: cost} if cost else {}
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-of-{name}",
        "creationTimestamp": created.isoformat(),
        "annotations": annotations,
    }
    return {"metadata": metadata, "spec": sim.spec, "status": sim.status.to_json()}


@dataclass
class Measured:
    """What a stop-watch beside the machine says; it looks at Machine and Node and knows nothing of the history."""

    served: timedelta = timedelta(0)
    in_use: timedelta = timedelta(0)
    services: int = 0
    punctual: int = 0
    cut_short: int = 0
    reclaims: int = 0
    overridden: int = 0
    to_ready: list[float] = field(default_factory=list)


class Month:
    """A machine over a month, in which chance decides how long things take and what goes wrong."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sim = Simulation(spec=raw_spec(schedule=TWICE_A_WEEK), now=MONDAY)
        self.measured = Measured()
        self.sim.settle()

    def move(self, to) -> None:
        """Time passes; the stop-watch counts what is there meanwhile."""
        span = to - self.sim.now
        if Role.MACHINE in self.sim.objects:
            self.measured.in_use += span
        node = self.sim.node
        serves = node is not None and node.ready and not node.unschedulable
        if serves and Role.MACHINE in self.sim.objects and not self.leaving:
            self.measured.served += span
        self.sim.now = to
        self.sim.settle()

    @property
    def leaving(self) -> bool:
        return "deletionTimestamp" in self.sim.objects[Role.MACHINE]["metadata"]

    def run(self) -> Measured:
        while (opens := self.sim.status.next_activation) is not None and opens < MONTH.until - DAY:
            self.move(opens)
            self.serve()
            if self.sim.status.phase == "Disabled":
                self.move(self.sim.now + HOUR)
                self.sim.edit(schedule={"enabled": True})
                self.move(self.sim.now + 12 * HOUR)
        self.move(MONTH.until)
        return self.measured

    def serve(self) -> None:
        delay = self.chance.choice([20, 45, 60, 61, 90, 400]) * SECOND
        self.measured.services += 1
        self.move(self.sim.now + delay)
        self.sim.provision()
        self.sim.settle()
        self.measured.to_ready.append(delay.total_seconds())
        self.measured.punctual += delay <= MINUTE
        what = self.chance.choice(["drained", "drained", "stuck", "reclaim", "sent home", "stays late"])
        self.sim.pods = [pod()]
        self.sim.guarded = {"web"} if what == "stuck" else set()
        if what == "reclaim":
            self.move(self.sim.now + 2 * HOUR)
            self.sim.ask_back()
            self.measured.reclaims += 1
        elif what in ("sent home", "stays late"):
            self.override(OverrideState.CLOSED if what == "sent home" else OverrideState.OPEN)
        else:
            self.move(self.sim.status.next_cleanup)
        if what == "stuck":
            self.move(self.sim.now + 5 * MINUTE)
            self.measured.cut_short += 1
        self.sim.let_pods_go()
        self.sim.settle()
        self.move(self.sim.now + self.chance.choice([30, 200]) * SECOND)
        self.sim.finish_deletion()
        self.sim.settle()

    def override(self, state: OverrideState) -> None:
        """From two hours after the Node was Ready until an hour after the close."""
        self.move(self.sim.now + 2 * HOUR)
        closes = self.sim.status.next_cleanup
        assert closes is not None
        ends = closes + HOUR
        self.sim.overrides = (Override("today", state, self.sim.now, ends, created=self.sim.now),)
        self.sim.settle()
        self.measured.overridden += 1
        if state is OverrideState.OPEN:
            self.move(ends)


@pytest.mark.parametrize("seed", range(8))
def test_a_simulated_month_is_reported_as_it_was_measured(seed):
    month = Month(seed)
    measured = month.run()
    found = machine_use(stored(month.sim), MONTH)
    assert found.services == measured.services <= 10
    assert found.served == measured.served
    assert found.in_use == measured.in_use
    assert found.hours == 30 * DAY
    assert found.free == 30 * DAY - measured.in_use
    assert (found.due, found.punctual) == (measured.services, measured.punctual)
    assert list(found.to_ready) == measured.to_ready
    assert found.cut_short == measured.cut_short
    assert found.reclaims == measured.reclaims
    assert found.overridden == measured.overridden
    assert not found.cut


def test_totals_are_the_sums_and_cost_follows_the_annotation():
    first, second = Month(1), Month(2)
    one, two = first.run(), second.run()
    report = report_of([stored(first.sim, "a", cost="2.50"), stored(second.sim, "b")], MONTH)
    assert report.totals.machines == 2
    assert report.totals.hours == 1440.0
    assert report.totals.served == round((one.served + two.served) / HOUR, 2)
    assert report.totals.services == one.services + two.services
    assert report.totals.punctuality == (one.punctual + two.punctual) / (one.services + two.services)
    assert report.totals.cost == Decimal(str(round(one.in_use / HOUR * 2.5, 2)))
    assert report.totals.saved == Decimal("1800.00") - report.totals.cost
    spread = report.totals.to_ready["RemoteMachine"]
    assert spread.count == len(one.to_ready) + len(two.to_ready)


def served_since(opens, *, records=1, every=DAY):
    history = [
        {
            "opened": (opens + number * every).isoformat(),
            "requested": (opens + number * every).isoformat(),
            "ready": (opens + number * every + 30 * SECOND).isoformat(),
            "shutdown": (opens + number * every + 9 * HOUR).isoformat(),
            "gone": (opens + number * every + 10 * HOUR).isoformat(),
            "reason": "WindowClosed",
        }
        for number in range(records)
    ]
    return {
        "metadata": {"name": "desk", "namespace": "team", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": raw_spec(),
        "status": {"history": history},
    }


def test_a_history_that_does_not_reach_back_counts_only_for_what_it_covers():
    raw = served_since(MONTH.until - 10 * DAY, records=10)
    found = machine_use(raw, MONTH)
    assert found.cut
    assert found.hours == 10 * DAY
    assert found.in_use == 100 * HOUR
    (note,) = report_of([raw], MONTH).notes
    assert "1 of 1 machines" in note


def test_a_shorter_period_cuts_a_service_at_its_beginning():
    opens = MONTH.until - 12 * HOUR
    found = machine_use(served_since(opens), ReportPeriod(opens + 4 * HOUR, MONTH.until))
    assert (found.served, found.in_use) == (5 * HOUR, 6 * HOUR)
    assert (found.due, found.to_ready) == (0, ()), "it began before the period"


def test_a_service_under_way_counts_until_now():
    opens = MONTH.until - 3 * HOUR
    raw = served_since(opens)
    raw["status"]["history"][0] = {key: raw["status"]["history"][0][key] for key in ("opened", "requested", "ready")}
    found = machine_use(raw, MONTH)
    assert (found.served, found.in_use) == (3 * HOUR - 30 * SECOND, 3 * HOUR)


def test_a_window_whose_machine_never_was_ready_is_not_punctual_once_the_minute_is_over():
    opens = MONTH.until - 30 * SECOND
    raw = served_since(opens)
    raw["status"]["history"][0] = {key: raw["status"]["history"][0][key] for key in ("opened", "requested")}
    assert machine_use(raw, MONTH).due == 0
    late = machine_use(raw, ReportPeriod(MONTH.since, MONTH.until + MINUTE))
    assert (late.due, late.punctual) == (1, 0)


def test_an_object_that_was_created_inside_its_window_could_not_be_punctual():
    raw = served_since(MONTH.until - 20 * HOUR)
    raw["metadata"]["creationTimestamp"] = (MONTH.until - 19 * HOUR).isoformat()
    assert machine_use(raw, MONTH).due == 0


def test_a_machine_without_a_history_was_free_all_the_time():
    raw = served_since(MONDAY, records=0)
    found = machine_use(raw, MONTH)
    assert (found.free, found.services, found.kind) == (30 * DAY, 0, "RemoteMachine")


@pytest.mark.parametrize(
    ("text", "cost"),
    [("1.25", Decimal("1.25")), (" 3 ", Decimal(3)), ("-1", None), ("NaN", None), ("1e99", None), ("a lot", None)],
)
def test_a_cost_is_a_number_that_makes_sense(text, cost):
    assert hourly_cost({names.ANNOTATION_HOURLY_COST: text}) == cost


def test_a_spread_is_exact_for_known_values():
    assert Spread.of([float(value) for value in range(1, 101)]) == Spread(100, 50.5, 90.1, 99.0)
    assert Spread.of([7.0]) == Spread(1, 7.0, 7.0, 7.0)


def test_the_json_has_numbers_as_numbers_and_amounts_as_text():
    found = report_of([served_since(MONTH.until - DAY)], MONTH).to_json()
    assert found["totals"]["servedHours"] == 8.99
    assert found["totals"]["punctuality"] == 1.0
    assert found["totals"]["cost"] is None
    assert found["machines"][0]["windowsDue"] == 1


@pytest.mark.parametrize("status", [{}, {"infrastructureRef": {"kind": "RemoteMachine"}}])
def test_a_machine_of_a_class_is_counted_by_its_class_whether_its_objects_are_there_or_not(status) -> None:
    sim = Simulation(spec=raw_spec(schedule=TWICE_A_WEEK), now=MONDAY)
    raw = stored(sim)
    raw["spec"] = {"schedule": TWICE_A_WEEK, "classRef": {"name": "lab-host"}}
    raw["status"].pop("infrastructureRef", None)
    raw["status"] |= status
    assert machine_use(raw, MONTH).kind == "class lab-host"
