"""Dry run on real servers: nothing is written but the status, and leaving it acts at once."""

from collections.abc import AsyncIterator

import pytest

from crds import names
from local.provider.kinds import MACHINES
from service import metrics
from service.kube.client import Client
from service.kube.resource import EVENTS, SCHEDULED_MACHINES
from tests.e2e.manifests import MINUTE, NINE, SIX, Raw, condition, machine
from tests.e2e.operator import Operator, operating
from tests.e2e.scenes import shutting_down
from tests.e2e.workload import WorkloadSide

DRY = {"metadata": {"annotations": {names.ANNOTATION_DRY_RUN: "true"}}}
WET = {"metadata": {"annotations": {names.ANNOTATION_DRY_RUN: None}}}
ACTS = {"metadata": {"annotations": {names.ANNOTATION_DRY_RUN: "false"}}}


@pytest.fixture
async def dry(management: Client, namespace: str) -> AsyncIterator[Operator]:
    async with operating(management, namespace, NINE, dry_run=True) as operator:
        yield operator


def closes_at(node: Raw) -> str | None:
    found: str | None = (node["metadata"].get("annotations") or {}).get(names.ANNOTATION_CLOSES_AT)
    return found


def counted(reason: str) -> float:
    return metrics.DRY_RUNS.labels(reason)._value.get()


async def test_it_says_what_it_would_create_writes_only_status_and_acts_when_it_ends(op: Operator) -> None:
    before = counted("WouldCreate")
    body = machine()
    body["metadata"] |= DRY["metadata"]
    await op.apply(body)
    status = await op.phase("worker", "Pending", "WouldCreate")
    assert "would create K0sWorkerConfig worker-bootstrap" in condition(status, "DryRun")["message"]
    assert (await op.events("worker"))["WouldCreate"] == 1
    written = {(call.resource, call.verb) for call in op.calls if call.verb not in ("get", "list", "watch")}
    assert written <= {
        (SCHEDULED_MACHINES.plural, "replace"),
        (SCHEDULED_MACHINES.plural, "patch"),
        (EVENTS.plural, "create"),
    }
    assert "finalizers" not in (await op.get("worker"))["metadata"]
    assert await op.client.list(MACHINES, namespace=op.namespace) == []
    assert counted("WouldCreate") == before + 1

    await op.edit("worker", WET)
    status = await op.ready("worker")
    assert condition(status, "DryRun") == {}


async def test_it_says_what_it_would_delete_and_the_machine_stays(op: Operator, workload: WorkloadSide) -> None:
    await op.apply(machine())
    name = (await op.ready("worker"))["nodeRef"]["name"]
    before = await workload.until_node(name, closes_at)
    await op.edit("worker", DRY)
    await op.until("worker", lambda status: condition(status, "DryRun").get("reason") == "NothingToDo")
    op.clock.move_to(SIX)
    status = await op.phase("worker", "Active", "WouldDelete")
    assert condition(status, "Ready")["status"] == "True"
    assert "shutdownStartedAt" not in status
    await op.at_rest()
    node = await workload.node(name)
    assert not node["spec"].get("unschedulable")
    assert closes_at(node) == closes_at(before)
    assert "deletionTimestamp" not in (await op.read(MACHINES, "worker-machine"))["metadata"]

    await op.edit("worker", WET)
    await op.childless("worker")


async def test_a_shutdown_stops_where_it_is_and_begins_again_afterwards(op: Operator, workload: WorkloadSide) -> None:
    await op.apply(machine(gracefulShutdownTimeout="10m", nodeDrainTimeout="10m"))
    node = await shutting_down(op, workload)
    await op.edit("worker", DRY)
    status = await op.phase("worker", "Active", "WouldDelete")
    assert "shutdownStartedAt" not in status
    op.clock.advance(30 * MINUTE)
    await workload.vacate(node)
    await op.at_rest()
    assert "deletionTimestamp" not in (await op.read(MACHINES, "worker-machine"))["metadata"]
    assert (await workload.node(node))["spec"]["unschedulable"]

    await op.edit("worker", WET)
    await op.childless("worker")


async def test_deletion_acts_in_a_dry_run(op: Operator) -> None:
    await op.apply(machine())
    await op.ready("worker")
    await op.edit("worker", DRY)
    await op.until("worker", lambda status: condition(status, "DryRun"))
    await op.delete("worker")
    await op.gone("worker")


async def test_the_setting_covers_all_but_those_that_an_annotation_lets_act(dry: Operator) -> None:
    acting = machine("acts")
    acting["metadata"] |= ACTS["metadata"]
    await dry.apply(machine("rehearses"))
    await dry.apply(acting)
    await dry.ready("acts")
    await dry.phase("rehearses", "Pending", "WouldCreate")


async def test_a_machine_in_a_dry_run_claims_no_host(op: Operator) -> None:
    host = {"address": f"shared.{op.namespace}"}
    rehearsal = machine("rehearses", infrastructure=host)
    rehearsal["metadata"] |= DRY["metadata"]
    await op.apply(rehearsal)
    await op.phase("rehearses", "Pending", "WouldCreate")
    await op.apply(machine("acts", infrastructure=host))
    await op.ready("acts")
