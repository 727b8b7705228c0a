"""The order of an emergency reclaim, proven: a crash after any write, any write failing, no workload cluster."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from local.binaries import Assets
from local.plane import ControlPlane
from local.provider.kinds import HOSTS, MACHINES
from service.kube.client import Client
from service.kube.resource import NODES, SCHEDULED_MACHINES
from service.kube.transport import Limits, Request, Transport
from service.runtime.backoff import Backoff
from service.workload import connection
from tests import watching
from tests.e2e.faults import Fault, Faults
from tests.e2e.kubeconfigs import kubeconfig, store
from tests.e2e.manifests import NINE, says
from tests.e2e.operator import Operator, operating
from tests.e2e.pods import Tenants
from tests.e2e.reclaims import Workstations, is_over
from tests.e2e.workload import WorkloadSide
from tests.integration.agents import install
from tests.integration.wires import Wire, wire
from tests.waiting import until

Raw = dict[str, Any]
pytestmark = pytest.mark.timeout(900)

BOUND = 90.0
STEPS = [
    "replace scheduledmachines",  # the request is stored
    "replace scheduledmachines",  # and reported
    "patch nodes",  # the cordon
    "delete pods",
    "replace scheduledmachines",  # the shutdown began
    "patch machines",
    "delete machines",
    "patch scheduledmachines",  # disabled
    "delete configmaps",
    "patch nodes",  # the label
    "patch nodes",  # the request
    "replace scheduledmachines",
]
CASES = [f"case-{number:02}" for number in range(1, len(STEPS) + 3)]
"""One for each write up to the last, and some for what follows."""


@pytest.fixture(scope="module", autouse=True)
def installed(plane: ControlPlane, assets: Assets) -> None:
    install(plane.workload, assets.kubectl)


@pytest.fixture
async def tenants(workload: WorkloadSide) -> AsyncIterator[Tenants]:
    made = Tenants(workload.client, "case")
    yield made
    await made.clear()


def faults_of(fault: Fault, management: Client, namespace: str, patch: pytest.MonkeyPatch) -> Faults:
    async def enabled(case: str) -> bool:
        seen = await management.get(SCHEDULED_MACHINES, case, namespace=namespace)
        return bool(seen["spec"]["schedule"]["enabled"])

    faults = Faults(fault, enabled)
    faults.install(patch)
    return faults


async def in_service(desks: Workstations, tenants: Tenants) -> dict[str, str]:
    """All machines run, each with a pod; their Nodes by case."""
    nodes = dict(zip(CASES, await asyncio.gather(*(desks.serve(case) for case in CASES)), strict=True))
    await asyncio.gather(*(tenants.run(case.removeprefix("case-"), node) for case, node in nodes.items()))
    await desks.op.at_rest()
    return nodes


async def check_end(desks: Workstations, nodes: dict[str, str], faults: Faults) -> None:
    """All of them came to the same end, and none by the wrong way."""
    for case, node in nodes.items():
        status = await desks.ejected(case)
        assert says(status, "Scheduled", "False", "EmergencyReclaim"), case
        assert (await desks.op.get(case))["spec"]["schedule"]["enabled"] is False, case
        await desks.op.childless(case)
        await watching.until_gone(desks.client, NODES, node)
        await desks.without_config(node)
    assert faults.disabled_too_late == []


async def test_a_crash_after_any_write_is_replayed_to_the_same_end(
    management: Client,
    namespace: str,
    workload: WorkloadSide,
    tenants: Tenants,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults = faults_of(Fault.CRASH_BEFORE, management, namespace, monkeypatch)

    async with operating(management, namespace, NINE) as op:
        desks = Workstations(op, workload.client)
        nodes = await in_service(desks, tenants)
        faults.armed = True
        await asyncio.gather(*map(desks.ask_back, nodes.values()))

        async def all_dead_or_done() -> bool:
            stored = await management.list(SCHEDULED_MACHINES, namespace=namespace)
            over = {raw["metadata"]["name"] for raw in stored if is_over(raw["status"])}
            return set(CASES) <= faults.crashed | over

        await until(all_dead_or_done, within=300)
    assert len(faults.crashed) >= len(STEPS)
    for case in sorted(faults.crashed)[: len(STEPS)]:
        assert faults.writes.get(case, []) == STEPS[: int(case[-2:]) - 1], case

    faults.crashed.clear()
    faults.fault = Fault.REFUSED
    faults.writes = {case: ["before the crash"] * 99 for case in CASES}
    async with operating(management, namespace, NINE) as op:
        await check_end(Workstations(op, workload.client), nodes, faults)


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.ANSWER_LOST])
async def test_a_reclaim_ends_though_each_of_its_writes_fails_once(
    op: Operator, management: Client, workload: WorkloadSide, tenants: Tenants, fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    faults = faults_of(fault, management, op.namespace, monkeypatch)
    desks = Workstations(op, workload.client)
    nodes = await in_service(desks, tenants)
    faults.armed = True
    await asyncio.gather(*map(desks.ask_back, nodes.values()))
    await check_end(desks, nodes, faults)
    assert all(len(faults.writes[case]) >= int(case[-2:]) for case in CASES[: len(STEPS)]), "not all faults were met"


# Without the workload cluster


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real behaviour, with pauses that a test can wait for."""
    monkeypatch.setattr(connection, "RECONNECT_BACKOFF", Backoff(base=0.05, cap=0.3, jitter=0.5))
    monkeypatch.setattr(connection, "LIMITS", Limits(calls=8, call_seconds=5.0, connect_seconds=5.0))


@pytest.fixture
async def line(plane: ControlPlane, op: Operator, impatient: None) -> AsyncIterator[Wire]:
    """The operator's only way to the cluster `demo`, which a test can cut or leave silent."""
    async with wire(plane.workload.url) as to_demo:
        await store(op, kubeconfig(plane.workload, url=to_demo.url))
        yield to_demo


def break_at_the_drain(line: Wire, how: str, patch: pytest.MonkeyPatch) -> None:
    """From the moment at which pods are asked for, the workload cluster is away."""
    original = Transport.call

    async def call(transport: Transport, request: Request) -> bytes:
        if request.verb == "list" and request.resource == "pods" and transport.endpoint.server == line.url:
            setattr(line, how, True)
            if how == "refusing":
                line.cut()
        return await original(transport, request)

    patch.setattr(Transport, "call", call)


@pytest.mark.parametrize("how", ["silent", "refusing"])
async def test_a_workload_cluster_that_goes_away_holds_nothing_up(
    op: Operator, workload: WorkloadSide, line: Wire, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desks = Workstations(op, workload.client)
    node = await desks.serve()
    await op.hold(HOSTS, "worker-infra")
    await op.at_rest()
    break_at_the_drain(line, how, monkeypatch)

    asked = time.monotonic()
    await desks.ask_back(node)
    await op.until_object(MACHINES, "worker-machine", lambda raw: "deletionTimestamp" in raw["metadata"])
    assert time.monotonic() - asked < BOUND
    assert getattr(line, how), "it was never asked for pods"
    await op.until_object(SCHEDULED_MACHINES, "worker", lambda raw: raw["spec"]["schedule"]["enabled"] is False)
    await op.let_go(HOSTS, "worker-infra")
    # Cluster API reaches the workload cluster by the same line, and takes its time to give up on it.
    await desks.ejected(within=300)
    await op.childless("worker")
