"""Overrides on real servers: for a time they decide about a machine instead of its schedule."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from crds import names
from crds.base import rfc3339
from crds.overrideschema import override_definition
from local.crds import apply
from local.provider.kinds import MACHINES
from service import metrics
from service.kube.resource import SCHEDULE_OVERRIDES
from tests.e2e.manifests import EIGHT, NINE, SIX, Raw, condition, machine, moment, says
from tests.e2e.operator import Operator, operating
from tests.waiting import until

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
async def op(op: Operator) -> Operator:
    """With the definition of overrides installed."""
    await apply(op.client, override_definition())
    return op


def override(state: str, until: datetime, name: str = "tonight", *, keep: bool = False, **spec: Any) -> Raw:
    given: Raw = {"machines": ["worker"], "state": state, "until": rfc3339(until), "requestedBy": "alice", **spec}
    if "selector" in given:
        del given["machines"]
    if "begins" in given:
        given["from"] = rfc3339(given.pop("begins"))
    metadata: Raw = {"name": name, **({"annotations": {names.ANNOTATION_KEEP: ""}} if keep else {})}
    return {**SCHEDULE_OVERRIDES.envelope(), "metadata": metadata, "spec": given}


async def reported(op: Operator, name: str, kind: str, value: str, reason: str | None = None) -> Raw:
    """Waits until the override says so, and returns its status."""
    found = await op.until_object(
        SCHEDULE_OVERRIDES, name, lambda raw: says(raw.get("status") or {}, kind, value, reason)
    )
    return found["status"]


def in_force(state: str) -> float | None:
    return metrics.REGISTRY.get_sample_value("fivespot_overrides_in_force", {"state": state})


async def store(op: Operator, body: Raw) -> None:
    await op.client.create(SCHEDULE_OVERRIDES, body, namespace=op.namespace)


async def test_an_override_keeps_a_machine_in_service_beyond_its_window_and_gives_it_back_at_its_end(
    op: Operator,
) -> None:
    await op.apply(machine("worker"))
    await op.ready("worker")
    await store(op, override("Open", SIX + 2 * HOUR))
    await op.until_object(SCHEDULE_OVERRIDES, "tonight", lambda raw: says(raw.get("status") or {}, "InForce", "True"))
    op.clock.move_to(SIX + HOUR)
    await op.at_rest()
    status = (await op.get("worker"))["status"]
    assert (status["phase"], status["override"]["name"]) == ("Active", "tonight")
    assert says(status, "Overridden", "True")
    assert not status["inSchedule"]
    op.clock.move_to(SIX + 2 * HOUR)
    await op.phase("worker", "Inactive")
    await op.childless("worker")


async def test_a_closed_override_ends_the_service_and_its_deletion_returns_the_machine(op: Operator) -> None:
    await op.apply(machine("worker"))
    await op.ready("worker")
    await store(op, override("Closed", SIX))
    await op.phase("worker", "Inactive")
    await op.childless("worker")
    await op.remove(SCHEDULE_OVERRIDES, "tonight")
    await op.ready("worker")


async def test_an_override_for_a_machine_that_does_not_exist_yet_counts_from_its_creation(op: Operator) -> None:
    op.clock.move_to(EIGHT)
    await store(op, override("Open", NINE))
    await op.apply(machine("worker"))
    await op.ready("worker")


async def test_overlapping_overrides_take_turns_and_each_begins_and_ends_at_its_second(op: Operator) -> None:
    seven, eight, nine = (SIX + hours * HOUR for hours in (1, 2, 3))
    await op.apply(machine("worker"))
    await op.ready("worker")
    await store(op, override("Open", nine, "late"))
    await reported(op, "late", "InForce", "True")
    # Of one second: the last by name decides.
    await store(op, override("Closed", eight, "pause", begins=seven))
    await reported(op, "pause", "InForce", "False", "NotYet")

    op.clock.move_to(seven - 2 * SECOND)
    await op.until("worker", lambda status: (status.get("override") or {}).get("name") == "pause")
    status = await op.until("worker", lambda status: status["phase"] == "Inactive")
    ended = [event for event in await op.event_objects("worker") if event["reason"] == "MachineDeleted"]
    assert len(ended) == 1
    assert op.clock.shown_at(moment(ended[0]["eventTime"])) >= seven
    assert moment(status["window"]["opens"]) == eight

    op.clock.move_to(eight - 2 * SECOND)
    await op.ready("worker")
    created = (await op.read(MACHINES, "worker-machine"))["metadata"]
    assert moment(created["annotations"][names.ANNOTATION_WINDOW_OPENS]) == eight
    assert op.clock.shown_at(moment(created["creationTimestamp"])) >= eight - SECOND  # it is cut to whole seconds
    assert (await op.get("worker"))["status"]["override"]["name"] == "late"

    op.clock.move_to(nine - 2 * SECOND)
    shutdown = await op.until("worker", lambda status: "shutdownStartedAt" in status or status["phase"] == "Inactive")
    assert moment(shutdown.get("shutdownStartedAt", rfc3339(nine))) >= nine
    await op.phase("worker", "Inactive")
    assert "override" not in (await op.get("worker"))["status"]


async def test_the_machine_says_who_overrides_it_and_until_when(op: Operator) -> None:
    await op.apply(machine("worker"))
    await op.ready("worker")
    await store(op, override("Open", SIX + HOUR, reason="release night"))
    status = await op.until("worker", lambda status: says(status, "Overridden", "True", "OverrideOpen"))
    shown = status["override"]
    assert (shown["name"], shown["state"], moment(shown["until"])) == ("tonight", "Open", SIX + HOUR)
    assert (shown["by"], shown["reason"]) == ("alice", "release night")
    assert moment(status["nextCleanup"]) == SIX + HOUR
    assert "alice" in condition(status, "Overridden")["message"]
    assert in_force("Open") == 1

    await op.remove(SCHEDULE_OVERRIDES, "tonight")
    await op.until("worker", lambda status: "override" not in status)
    assert in_force("Open") == 0
    emitted = await op.events("worker")
    assert (emitted["OverrideBegan"], emitted["OverrideEnded"]) == (1, 1)


async def test_no_spec_is_ever_written(op: Operator) -> None:
    await op.apply(machine("worker"))
    before = await op.ready("worker")
    spec = (await op.get("worker"))["spec"]
    await store(op, override("Closed", SIX))
    await op.phase("worker", "Inactive")
    await op.remove(SCHEDULE_OVERRIDES, "tonight")
    after = await op.ready("worker")
    assert (await op.get("worker"))["spec"] == spec
    assert after["observedGeneration"] == before["observedGeneration"]


async def test_an_override_that_is_over_for_a_day_is_deleted_unless_it_is_to_be_kept(op: Operator) -> None:
    deleted = metrics.OVERRIDES_DELETED._value.get()
    await store(op, override("Closed", NINE + HOUR))
    await store(op, override("Closed", NINE + HOUR, "kept", keep=True))
    await reported(op, "kept", "InForce", "True")
    op.clock.move_to(NINE + HOUR)
    for name in ("tonight", "kept"):
        status = await reported(op, name, "InForce", "False", "Over")
        assert says(status, "Accepted", "True")
    op.clock.move_to(NINE + 25 * HOUR)
    await op.absent(SCHEDULE_OVERRIDES, "tonight")
    await until(lambda: metrics.OVERRIDES_DELETED._value.get() == deleted + 1)
    assert await op.read(SCHEDULE_OVERRIDES, "kept")
    await op.change(SCHEDULE_OVERRIDES, "kept", {"metadata": {"annotations": {names.ANNOTATION_KEEP: None}}})
    await op.absent(SCHEDULE_OVERRIDES, "kept")


async def test_one_that_is_too_long_does_not_count_until_its_end_is_moved(op: Operator) -> None:
    await op.apply(machine("worker"))
    await op.ready("worker")
    await store(op, override("Closed", NINE + timedelta(days=32)))
    status = await reported(op, "tonight", "Accepted", "False", "TooLong")
    assert "31 days" in condition(status, "Accepted")["message"]
    await op.at_rest()
    assert (await op.get("worker"))["status"]["phase"] == "Active"
    await op.change(SCHEDULE_OVERRIDES, "tonight", {"spec": {"until": rfc3339(SIX), "requestedBy": "bob"}})
    await reported(op, "tonight", "Accepted", "True")
    status = await op.phase("worker", "Inactive")
    assert status["override"]["by"] == "bob"


async def test_a_selector_counts_for_a_machine_that_gets_the_label_later(op: Operator) -> None:
    await op.apply(machine("worker"))
    await op.apply(machine("other"))
    await op.ready("worker")
    await op.ready("other")
    await store(op, override("Closed", SIX, selector={"matchLabels": {"room": "1"}}))
    await reported(op, "tonight", "InForce", "True")
    await op.edit("worker", {"metadata": {"labels": {"room": "1"}}})
    await op.phase("worker", "Inactive")
    await op.edit("worker", {"metadata": {"labels": {"room": "2"}}})
    await op.ready("worker")
    assert (await op.get("other"))["status"]["phase"] == "Active"


async def test_what_outranks_an_override_is_named(op: Operator) -> None:
    await store(op, override("Open", SIX))
    disabled = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "enabled": False}
    await op.apply(machine("worker", schedule=disabled))
    status = await op.until("worker", lambda status: says(status, "Overridden", "False", "OverrideOutranked"))
    assert status["phase"] == "Disabled"
    assert "the schedule is disabled" in condition(status, "Overridden")["message"]


async def test_one_that_ends_while_no_operator_runs_is_over_when_the_next_one_starts(op: Operator) -> None:
    await op.apply(machine("worker"))
    await op.ready("worker")
    await store(op, override("Open", SIX + 2 * HOUR))
    await reported(op, "tonight", "InForce", "True")
    await op.edit("worker", {"metadata": {"annotations": {names.ANNOTATION_PAUSED: ""}}})
    await op.until("worker", lambda status: says(status, "Paused", "True"))
    async with operating(op.client, op.namespace, SIX + 3 * HOUR) as successor:
        await reported(successor, "tonight", "InForce", "False", "Over")
        op.clock.move_to(SIX + 3 * HOUR)
        await successor.edit("worker", {"metadata": {"annotations": {names.ANNOTATION_PAUSED: None}}})
        await successor.phase("worker", "Inactive")
