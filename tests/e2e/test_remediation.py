"""Cluster API's own MachineHealthCheck controller marks Machines; what is marked is replaced, what recovers stays."""

from typing import Any

import pytest

from crds import names
from crds.base import rfc3339
from local.provider.kinds import MACHINES
from service.kube.client import Client, PatchKind
from service.kube.resource import NODES, SCHEDULED_MACHINES, Resource
from tests.e2e.manifests import MINUTE, NINE, condition, machine
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

Raw = dict[str, Any]
HEALTH_CHECKS = Resource("cluster.x-k8s.io", "v1beta2", "machinehealthchecks", "MachineHealthCheck")
TAINT = {"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}
HEALTHY, MARKED = ["True", None, "True", None], ["False", "False", "False", "False"]
LONG_SINCE = "2020-01-01T00:00:00Z"


async def watch_over(op: Operator) -> None:
    """A MachineHealthCheck for the worker: a Node that says it is Broken is unhealthy at once."""
    check = {
        **HEALTH_CHECKS.envelope(),
        # Its controller sets the label too, but finds the check of a Node by it before that.
        "metadata": {"name": "check", "labels": {names.LABEL_CLUSTER_NAME: "demo"}},
        "spec": {
            "clusterName": "demo",
            "selector": {"matchLabels": {names.LABEL_OWNER: "worker"}},
            "checks": {"unhealthyNodeConditions": [{"type": "Broken", "status": "True", "timeoutSeconds": 0}]},
        },
    }
    await op.client.create(HEALTH_CHECKS, check, namespace=op.namespace, field_manager="somebody")
    await op.until_object(MACHINES, "worker-machine", lambda raw: marks(raw) == HEALTHY)


async def say_broken(workload: WorkloadSide, node: str, broken: str) -> None:
    told = {"type": "Broken", "status": broken, "lastTransitionTime": LONG_SINCE, "reason": "Test", "message": ""}
    body = {"status": {"conditions": [told]}}
    await workload.client.patch(NODES, node, body, kind=PatchKind.STRATEGIC, subresource="status")


def marks(raw: Raw) -> list[str | None]:
    """What HealthCheckSucceeded and OwnerRemediated say, in the conditions of both contracts."""
    status = raw.get("status") or {}
    older = (status.get("deprecated") or {}).get("v1beta1") or {}
    found = [condition(held, kind) for held in (status, older) for kind in ("HealthCheckSucceeded", "OwnerRemediated")]
    return [one.get("status") for one in found]


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
async def test_a_node_that_recovers_before_its_replacement_is_due_keeps_its_machine(
    management: Client, namespace: str, workload: WorkloadSide, contract: str
) -> None:
    async with operating(management, namespace, NINE, capi_contract=contract) as op:
        await op.apply(machine(nodeTaints=[TAINT]))
        status = await op.ready("worker")
        first, node = status["machineRef"], status["nodeRef"]["name"]
        await watch_over(op)
        just_now = {"count": 1, "at": rfc3339(op.clock.now()), "machineUID": "another"}
        await op.change(SCHEDULED_MACHINES, "worker", {"status": {"remediation": just_now}}, subresource="status")

        await say_broken(workload, node, "True")
        await op.until_object(MACHINES, "worker-machine", lambda raw: marks(raw) == MARKED)
        await op.phase("worker", "Error", "RemediationPaused")
        await workload.client.patch(NODES, node, {"spec": {"taints": None}})
        await workload.until_node(node, lambda raw: TAINT in (raw["spec"].get("taints") or ()))

        await say_broken(workload, node, "False")
        await op.until_object(MACHINES, "worker-machine", lambda raw: marks(raw) == HEALTHY)
        assert (await op.ready("worker"))["machineRef"] == first
        op.clock.advance(11 * MINUTE)
        told = await op.events("worker")
        assert (told["RemediationPaused"], told["RemediationCancelled"], told["Remediated"]) == (1, 1, 0)
        assert (await op.ready("worker"))["machineRef"] == first

        await say_broken(workload, node, "True")
        await op.until("worker", lambda later: later.get("machineRef", {}).get("uid") not in (None, first["uid"]))
        assert (await op.events("worker"))["Remediated"] == 1


async def fail_health_check(op: Operator) -> None:
    """What an administrator does to have a MachineHealthCheck condemn a Machine at once."""
    await op.change(
        MACHINES, "worker-machine", {"metadata": {"annotations": {names.CAPI_GROUP + "/remediate-machine": ""}}}
    )


async def test_a_machine_health_check_gets_a_new_machine_at_most_once_in_ten_minutes(op: Operator) -> None:
    await op.apply(machine())
    status = await op.ready("worker")
    await watch_over(op)
    first = status["machineRef"]["uid"]
    await fail_health_check(op)
    await op.until("worker", lambda status: status.get("machineRef", {}).get("uid") not in (None, first))
    assert (await op.events("worker"))["Remediated"] == 1

    status = await op.ready("worker")
    assert status["remediation"]["count"] == 1
    await fail_health_check(op)
    again = await op.phase("worker", "Error", "RemediationPaused")
    assert again["machineRef"] == status["machineRef"]
    op.clock.advance(11 * MINUTE)
    await op.until("worker", lambda later: (later.get("remediation") or {}).get("count") == 2)
    assert (await op.ready("worker"))["machineRef"]["uid"] != status["machineRef"]["uid"]
    assert (await op.events("worker"))["Remediated"] == 2
