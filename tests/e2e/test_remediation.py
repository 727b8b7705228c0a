"""Cluster API's own MachineHealthCheck controller marks Machines; what is marked is replaced, what recovers stays."""

from typing import Any

import pytest

from crds import names
from crds.base import rfc3339
from local.provider.kinds import MACHINES
from service.kube.client import Client
from service.kube.resource import NODES, SCHEDULED_MACHINES, Resource
from tests.e2e.manifests import MINUTE, NINE, condition, machine
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

Raw = dict[str, Any]
HEALTH_CHECKS = Resource("cluster.x-k8s.io", "v1beta2", "machinehealthchecks", "MachineHealthCheck")
TAINT = {"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}
HEALTHY, MARKED = ["True", None, "True", None], ["False", "False", "False", "False"]


async def watch_over(op: Operator) -> None:
    """A MachineHealthCheck for the worker, which has looked at it once."""
    check = {
        **HEALTH_CHECKS.envelope(),
        "metadata": {"name": "check"},
        "spec": {
            "clusterName": "demo",
            "selector": {"matchLabels": {names.LABEL_OWNER: "worker"}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]},
        },
    }
    await op.client.create(HEALTH_CHECKS, check, namespace=op.namespace, field_manager="somebody")
    await op.until_object(MACHINES, "worker-machine", lambda raw: marks(raw) == HEALTHY)


async def ask_for_remediation(op: Operator, value: str | None = "") -> None:
    """What an administrator does to have a MachineHealthCheck fail at once; None lets it succeed again."""
    annotations = {names.CAPI_GROUP + "/remediate-machine": value}
    await op.change(MACHINES, "worker-machine", {"metadata": {"annotations": annotations}})


def marks(raw: Raw) -> list[str | None]:
    """What HealthCheckSucceeded and OwnerRemediated say, in the conditions of both contracts."""
    status = raw.get("status") or {}
    older = (status.get("deprecated") or {}).get("v1beta1") or {}
    found = [condition(held, kind) for held in (status, older) for kind in ("HealthCheckSucceeded", "OwnerRemediated")]
    return [one.get("status") for one in found]


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

        await ask_for_remediation(op, None)
        await op.until_object(MACHINES, "worker-machine", lambda raw: marks(raw) == HEALTHY)
        assert (await op.ready("worker"))["machineRef"] == first
        op.clock.advance(11 * MINUTE)
        told = await op.events("worker")
        assert (told["RemediationPaused"], told["RemediationCancelled"], told["Remediated"]) == (1, 1, 0)
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
