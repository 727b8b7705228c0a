"""Reclaims that a user has to acknowledge, beside a tool that applies the manifest again every second."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from crds import names
from crds.base import rfc3339
from local.binaries import Assets
from local.plane import ControlPlane
from service.cli import main
from service.kube.client import Client, PatchKind
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from tests.e2e.manifests import NINE, SIX, condition, machine, moment, says
from tests.e2e.operator import Operator, operating
from tests.e2e.reclaims import Workstations
from tests.e2e.workload import WorkloadSide
from tests.integration.agents import install
from tests.waiting import until

Raw = dict[str, Any]
SECONDS = 1.0
"""Argo CD heals an application at most every few seconds; this one is more eager."""


@pytest.fixture(scope="module", autouse=True)
def installed(plane: ControlPlane, assets: Assets) -> None:
    """The agent's own manifests in the workload cluster."""
    install(plane.workload, assets.kubectl)


@pytest.fixture
async def op(management: Client, namespace: str) -> AsyncIterator[Operator]:
    async with operating(management, namespace, NINE, reclaim_reenable="Acknowledged") as operator:
        yield operator


@pytest.fixture
async def desks(op: Operator, workload: WorkloadSide) -> Workstations:
    return Workstations(op, workload.client)


@dataclass
class SelfHeal:
    """What Argo CD does with `selfHeal`: it applies the manifest from Git, which says that the schedule is enabled."""

    op: Operator
    manifest: Raw
    applied: int = 0

    async def run(self) -> None:
        while True:
            await self.op.change(
                SCHEDULED_MACHINES,
                "worker",
                self.manifest,
                kind=PatchKind.APPLY,
                field_manager="argocd-controller",
                force=True,
            )
            self.applied += 1
            await asyncio.sleep(SECONDS)

    async def several(self) -> None:
        """Waits until the manifest was applied three times more."""
        before = self.applied
        await until(lambda: self.applied >= before + 3, within=60)


@asynccontextmanager
async def healing(op: Operator) -> AsyncIterator[SelfHeal]:
    body = machine("worker", killIfCommands=["idea"], infrastructure={"address": f"worker.{op.namespace}"})
    body["spec"]["schedule"]["enabled"] = True
    found = SelfHeal(op, body)
    task = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def acknowledge(op: Operator, plane: ControlPlane) -> int:
    words = ["resume", "worker", "-n", op.namespace, "--kubeconfig", str(plane.management.kubeconfig)]
    return await asyncio.to_thread(main, words)


def is_held(status: Raw) -> bool:
    return status.get("phase") == "Disabled" and "lastReclaim" in status and "reclaim" not in status


async def test_a_tool_that_enables_the_schedule_again_and_again_does_not_return_the_machine_but_a_user_does(
    op: Operator, desks: Workstations, plane: ControlPlane
) -> None:
    node = await desks.serve()
    async with healing(op) as argo:
        await argo.several()
        await desks.ask_back(node)
        status = await op.until("worker", is_held, 180)
        await argo.several()
        found = await op.get("worker")
        assert found["spec"]["schedule"]["enabled"] is True
        assert moment(found["metadata"]["annotations"][names.ANNOTATION_RECLAIM_UNACKNOWLEDGED]) >= NINE
        status = await op.phase("worker", "Disabled", "ReclaimNotAcknowledged")
        assert says(status, "Scheduled", "False", "ReclaimNotAcknowledged")
        assert f"5spot resume worker -n {op.namespace}" in condition(status, "Ready")["message"]
        await op.childless("worker")

        assert await acknowledge(op, plane) == 0
        status = await op.ready("worker")
        assert "lastReclaim" not in status
        await argo.several()
    emitted = await op.events("worker")
    assert emitted["EmergencyReclaim"] == 1
    assert emitted["EmergencyReclaimDisabledSchedule"] == 1
    assert (emitted["ReclaimReverted"], emitted["MachineCreated"]) == (0, 2)


async def test_the_same_write_disables_the_schedule_and_demands_the_acknowledgement(
    op: Operator, desks: Workstations
) -> None:
    seen: list[Raw] = []
    node = await desks.serve()
    watching = asyncio.create_task(_record(op, seen))
    await desks.ask_back(node)
    await op.until("worker", is_held, 180)
    watching.cancel()
    states = {(_enabled(each), _is_noted(each)) for each in seen}
    assert states == {(True, False), (False, True)}


async def _record(op: Operator, seen: list[Raw]) -> None:
    """Every version of the object, from now on."""
    first = await op.get("worker")
    seen.append(first)
    version = first["metadata"]["resourceVersion"]
    async for event in op.client.watch(SCHEDULED_MACHINES, version, namespace=op.namespace):
        seen += [event.object] if "spec" in event.object else []


def _enabled(raw: Raw) -> bool:
    return bool(raw["spec"]["schedule"].get("enabled", True))


def _is_noted(raw: Raw) -> bool:
    return names.ANNOTATION_RECLAIM_UNACKNOWLEDGED in (raw["metadata"].get("annotations") or {})


async def test_an_acknowledged_machine_whose_schedule_is_disabled_waits_for_that(
    op: Operator, desks: Workstations, plane: ControlPlane
) -> None:
    node = await desks.serve()
    await desks.ask_back(node)
    await op.until("worker", is_held, 180)
    assert await acknowledge(op, plane) == 0
    await op.phase("worker", "Disabled", "Disabled")
    await op.edit_spec("worker", schedule={"enabled": True})
    await op.ready("worker")


async def test_no_override_returns_a_machine_whose_reclaim_is_not_acknowledged(
    op: Operator, desks: Workstations
) -> None:
    node = await desks.serve()
    await desks.ask_back(node)
    await op.until("worker", is_held, 180)
    await op.edit_spec("worker", schedule={"enabled": True})
    spec = {"machines": ["worker"], "state": "Open", "until": rfc3339(SIX)}
    body = {**SCHEDULE_OVERRIDES.envelope(), "metadata": {"name": "tonight"}, "spec": spec}
    await op.client.create(SCHEDULE_OVERRIDES, body, namespace=op.namespace)
    status = await op.until("worker", lambda status: says(status, "Overridden", "False", "OverrideOutranked"))
    assert "a reclaim is not acknowledged" in condition(status, "Overridden")["message"]
    assert status["phase"] == "Disabled"
