"""Cluster API's own MachineHealthCheck controller marks Machines; what is marked is replaced, what recovers stays."""

import pytest

from crds.base import rfc3339
from local.provider.kinds import MACHINES
from service.kube.client import Client
from service.kube.resource import NODES, SCHEDULED_MACHINES
from tests.e2e.healthchecks import HEALTHY, MARKED, ask_for_remediation, marks, watch_over
from tests.e2e.manifests import MINUTE, NINE, machine
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

TAINT = {"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
async def test_a_health_check_that_succeeds_before_the_replacement_is_due_costs_no_machine(
    management: Client, namespace: str, workload: WorkloadSide, contract: str
) -> None:
    async with operating(management, namespace, NINE, capi_contract=contract) as op:
        await op.apply(machine(nodeTaints=[TAINT]))
        status = await op.ready("worker")
        first, node = status["machineRef"], status["nodeRef"]["name"]
        await watch_over(op)
        just_now = {"count": 1, "at": rfc3339(op.clock.now()), "machineUID": "another"}
        await op.change(SCHEDULED_MACHINES, "worker", {"status": {"remediation": just_now}}, subresource="status")

        await ask_for_remediation(op)
        await op.until_object(MACHINES, "worker-machine", lambda raw: marks(raw) == MARKED)
        await op.phase("worker", "Error", "RemediationPaused")
        await workload.client.patch(NODES, node, {"spec": {"taints": None}})
        await workload.until_node(node, lambda raw: TAINT in (raw["spec"].get("taints") or ()))

        await ask_for_remediation(op, value=None)
        await op.until_object(MACHINES, "worker-machine", lambda raw: marks(raw) == HEALTHY)
        assert (await op.ready("worker"))["machineRef"] == first
        op.clock.advance(11 * MINUTE)
        emitted = await op.events("worker")
        assert (emitted["RemediationPaused"], emitted["RemediationCancelled"], emitted["Remediated"]) == (1, 1, 0)
        assert (await op.ready("worker"))["machineRef"] == first

        await ask_for_remediation(op)
        await op.until("worker", lambda later: later.get("machineRef", {}).get("uid") not in (None, first["uid"]))
        assert (await op.events("worker"))["Remediated"] == 1


async def test_a_machine_health_check_gets_a_new_machine_at_most_once_in_ten_minutes(op: Operator) -> None:
    await op.apply(machine())
    status = await op.ready("worker")
    await watch_over(op)
    first = status["machineRef"]["uid"]
    await ask_for_remediation(op)
    await op.until("worker", lambda status: status.get("machineRef", {}).get("uid") not in (None, first))
    assert (await op.events("worker"))["Remediated"] == 1

    status = await op.ready("worker")
    assert status["remediation"]["count"] == 1
    await ask_for_remediation(op)
    again = await op.phase("worker", "Error", "RemediationPaused")
    assert again["machineRef"] == status["machineRef"]
    op.clock.advance(11 * MINUTE)
    await op.until("worker", lambda later: (later.get("remediation") or {}).get("count") == 2)
    assert (await op.ready("worker"))["machineRef"]["uid"] != status["machineRef"]["uid"]
    assert (await op.events("worker"))["Remediated"] == 2
