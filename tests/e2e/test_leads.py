"""Ready at the opening, free at the close: leads on Cluster API's own controllers, with hosts that take their time.

The clock runs twenty times as fast as real time, so that a provider that takes six seconds takes two minutes.
"""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from prometheus_client import Histogram

from crds import names
from crds.base import rfc3339
from local.provider.kinds import MACHINES
from service import metrics
from service.kube.client import Client
from service.kube.resource import NODES
from tests.e2e.manifests import MINUTE, NINE, SIX, Raw, condition, machine, moment
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

SPEED = 20.0
HALF_AN_HOUR = 30 * MINUTE
TWO_MINUTES = {"simulate": {"delaySeconds": 2 * 60 / SPEED}}
OFFICE_HOURS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["9-17"]}


@pytest.fixture
async def op(management: Client, namespace: str) -> AsyncIterator[Operator]:
    """Before the lead of the window at nine."""
    async with operating(management, namespace, NINE - 40 * MINUTE, speed=SPEED) as operator:
        yield operator


def slow(**schedule: str) -> Raw:
    return machine(schedule={**OFFICE_HOURS, **schedule}, infrastructure=TWO_MINUTES)


async def requested(op: Operator) -> str:
    """Waits for the Machine; returns its uid."""
    seen = await op.until_object(MACHINES, "worker-machine", lambda raw: "deletionTimestamp" not in raw["metadata"])
    return str(seen["metadata"]["uid"])


def last_service(status: Raw) -> Raw:
    found: Raw = status["history"][-1]
    return found


def punctuality(histogram: Histogram) -> tuple[float, float]:
    """How many were measured, and how many of them were not late at all."""
    samples = {
        (one.name.rpartition("_")[2], one.labels.get("le")): one.value
        for one in next(iter(histogram.collect())).samples
    }
    return samples["count", None], samples["bucket", "0.0"]


async def test_the_node_is_ready_at_the_opening_and_the_host_is_free_at_the_close(
    op: Operator, workload: WorkloadSide
) -> None:
    ready_before, gone_before = punctuality(metrics.READY_LATENESS), punctuality(metrics.GONE_LATENESS)
    await op.apply(slow(startEarly="30m", stopEarly="30m"))
    status = await op.phase("worker", "Inactive", "OutsideSchedule")
    assert status["nextActivation"] == rfc3339(NINE - HALF_AN_HOUR)
    assert status["window"] == {"opens": rfc3339(NINE), "closes": rfc3339(SIX)}

    op.clock.move_to(NINE - HALF_AN_HOUR)
    status = await op.ready("worker")
    service = last_service(status)
    assert moment(service["ready"]) - moment(service["requested"]) >= 2 * MINUTE, "the provider takes its time"
    assert moment(service["ready"]) <= NINE == moment(service["opened"])
    assert not status["inSchedule"]
    node = status["nodeRef"]["name"]

    op.clock.move_to(NINE)
    status = await op.until("worker", lambda status: status["inSchedule"])
    assert condition(status, "Ready")["status"] == "True", "Ready at the opening"
    assert status["nextCleanup"] == rfc3339(SIX - HALF_AN_HOUR)

    op.clock.move_to(SIX - HALF_AN_HOUR)
    status = await op.phase("worker", "Inactive")
    await workload.node_gone(node)
    service = last_service(status)
    assert service["reason"] == "WindowClosed"
    assert moment(service["gone"]) <= SIX == moment(service["closed"])
    assert status["nextActivation"] == rfc3339(NINE + timedelta(days=1) - HALF_AN_HOUR)

    op.clock.move_to(SIX)
    await op.until("worker", lambda status: not status["inSchedule"])
    await op.childless("worker")
    assert punctuality(metrics.READY_LATENESS) == (ready_before[0] + 1, ready_before[1] + 1)
    assert punctuality(metrics.GONE_LATENESS) == (gone_before[0] + 1, gone_before[1] + 1)


async def test_a_gap_shorter_than_the_lead_is_bridged(op: Operator) -> None:
    schedule = {"daysOfWeek": ["mon-sun"], "windows": None, "hoursOfDay": ["9-10,12-17"], "startEarly": "1h"}
    op.clock.move_to(NINE)
    await op.apply(machine(schedule=schedule))
    await op.ready("worker")
    uid = await requested(op)
    for hour in (11, 11.5, 12):
        op.clock.move_to(NINE + timedelta(hours=hour - 9))
        await op.at_rest()
    status = await op.until("worker", lambda status: status["inSchedule"])
    assert (await requested(op), len(status["history"])) == (uid, 1)
    assert (await op.events("worker"))["ShutdownStarted"] == 0


async def test_auto_learns_how_long_the_host_takes_and_never_deletes_what_it_just_made(op: Operator) -> None:
    await op.apply(slow(startEarly="Auto", stopEarly="Auto"))
    status = await op.phase("worker", "Inactive")
    assert status["leads"] == {"startEarly": "5m", "stopEarly": "5m"}
    for _ in range(3):
        status = await served(op, status)
    learnt = NINE + timedelta(days=3) - moment(status["nextActivation"])
    slowest = max(moment(each["ready"]) - moment(each["requested"]) for each in status["history"])
    assert learnt == min(slowest, 60 * MINUTE)
    assert learnt >= 2 * MINUTE

    op.clock.move_to(moment(status["nextActivation"]))
    uid = await requested(op)
    known = await op.ready("worker")
    op.clock.move_to(max(op.clock.now(), moment(known["window"]["opens"])))
    status = await op.until("worker", lambda status: status["inSchedule"])
    await op.at_rest()
    assert await requested(op) == uid, "the machine that was requested early is the one that serves"
    assert status["leads"] == known["leads"]


async def served(op: Operator, status: Raw) -> Raw:
    """One service, from its lead until its window is closed and its host is free."""
    count = len(status.get("history", ()))
    op.clock.move_to(moment(status["nextActivation"]))
    status = await op.ready("worker")
    closes = moment(status["window"]["closes"])
    op.clock.move_to(moment(status["nextCleanup"]))
    await op.until("worker", lambda now: len(now.get("history", ())) == count + 1 and "gone" in last_service(now))
    if op.clock.now() < closes:
        op.clock.move_to(closes)
    return await op.until("worker", lambda now: not now["inSchedule"] and now["phase"] == "Inactive")


# When the window closes, on the Node


def closes_at(node: Raw) -> str | None:
    found: str | None = node["metadata"].get("annotations", {}).get(names.ANNOTATION_CLOSES_AT)
    return found


@pytest.fixture
async def at_nine(management: Client, namespace: str) -> AsyncIterator[Operator]:
    async with operating(management, namespace, NINE) as operator:
        yield operator


async def until_closes_at(workload: WorkloadSide, node: str, closes: datetime | None) -> None:
    wanted = rfc3339(closes) if closes else None
    await workload.until_node(node, lambda raw: closes_at(raw) == wanted)


@pytest.mark.parametrize("taints", [[], [{"key": "night", "effect": "NoSchedule"}]], ids=["plain", "tainted"])
async def test_the_node_says_when_its_window_closes(
    at_nine: Operator, workload: WorkloadSide, taints: list[Raw]
) -> None:
    op = at_nine
    await op.apply(machine(nodeTaints=taints))
    node = (await op.ready("worker"))["nodeRef"]["name"]
    await until_closes_at(workload, node, SIX)

    await op.edit_spec("worker", schedule={"hoursOfDay": ["9-19"]})
    await until_closes_at(workload, node, SIX + 2 * 60 * MINUTE)
    body = {"metadata": {"annotations": {names.ANNOTATION_CLOSES_AT: "never"}}}
    await workload.client.patch(NODES, node, body, field_manager="another-client")
    await until_closes_at(workload, node, SIX + 2 * 60 * MINUTE)

    await op.edit_spec("worker", schedule={"enabled": False})
    await until_closes_at(workload, node, None)
    await op.edit_spec("worker", schedule={"enabled": True})
    await until_closes_at(workload, node, SIX + 2 * 60 * MINUTE)

    await workload.occupy(node)
    op.clock.move_to(SIX + 2 * 60 * MINUTE)
    await op.phase("worker", "ShuttingDown", "Draining")
    await until_closes_at(workload, node, None)
