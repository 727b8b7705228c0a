"""A day in the life of a ScheduledMachine, on Cluster API's own controllers and two clusters."""

from service.kube.client import Client
from tests.e2e.manifests import EIGHT, NINE, SIX, machine
from tests.e2e.operator import operating
from tests.e2e.workload import WorkloadSide


async def test_a_machine_comes_at_nine_and_leaves_at_six(
    management: Client, namespace: str, workload: WorkloadSide
) -> None:
    async with operating(management, namespace, EIGHT) as op:
        await op.apply(machine())
        status = await op.phase("worker", "Inactive", "OutsideSchedule")
        assert status["nextActivation"] == "2026-03-06T09:00:00Z"

        op.clock.move_to(NINE)
        status = await op.ready("worker")
        assert (status["phase"], status["machinePhase"]) == ("Active", "Running")
        node = status["nodeRef"]
        assert (await workload.node(node["name"]))["metadata"]["uid"] == node["uid"]

        op.clock.move_to(SIX)
        status = await op.phase("worker", "Inactive")
        await op.childless("worker")
        await workload.node_gone(node["name"])
        assert "machineRef" not in status
        assert status["nextActivation"] == "2026-03-09T09:00:00Z"
