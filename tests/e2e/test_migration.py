"""A ScheduledMachine that the operator written in Rust left behind, with and without its Machine."""

from typing import Any

from crds import names
from local.provider.kinds import HOSTS, MACHINES
from service.kube.resource import SCHEDULED_MACHINES
from tests.e2e.manifests import condition, machine
from tests.e2e.operator import Operator

Raw = dict[str, Any]
STAMP = "2026-03-05T18:00:03.123456789+00:00"
LEFT_BEHIND: Raw = {
    "phase": "Inactive",
    "message": "Outside scheduled time window",
    "inSchedule": False,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "ScheduleInactive",
            "message": "Outside scheduled time window",
            "lastTransitionTime": STAMP,
        }
    ],
}


def machine_of_the_original(owner: Raw) -> Raw:
    """As it makes it: named like the ScheduledMachine, its controller, with its label."""
    reference = {"apiVersion": names.API_VERSION, "kind": names.KIND, "controller": True, "blockOwnerDeletion": True}
    name = owner["metadata"]["name"]
    return {
        **MACHINES.envelope(),
        "metadata": {
            "name": name,
            "labels": {names.LABEL_CLUSTER_NAME: "demo", names.LABEL_OWNER: name},
            "ownerReferences": [{**reference, "name": name, "uid": owner["metadata"]["uid"]}],
        },
        "spec": {
            "clusterName": "demo",
            "bootstrap": {"dataSecretName": "none"},
            "infrastructureRef": {"apiGroup": HOSTS.group, "kind": HOSTS.kind, "name": "none"},
        },
    }


async def test_nothing_is_created_beside_a_machine_of_the_original_until_that_is_gone(op: Operator) -> None:
    disabled = machine()
    disabled["spec"]["schedule"]["enabled"] = False
    owner = await op.apply(disabled)
    await op.client.patch(
        SCHEDULED_MACHINES, "worker", {"status": LEFT_BEHIND}, namespace=op.namespace, subresource="status"
    )
    await op.client.create(MACHINES, machine_of_the_original(owner), namespace=op.namespace, field_manager="rust")
    await op.edit_spec("worker", schedule={"enabled": True})

    status = await op.phase("worker", "Error", "ForeignObject")
    assert "by another operator" in status["message"]
    assert [one["metadata"]["name"] for one in await op.client.list(MACHINES, namespace=op.namespace)] == ["worker"]

    await op.remove(MACHINES, "worker")
    ready = await op.ready("worker")
    assert ready["machineRef"]["name"] == "worker-machine"
    assert condition(ready, "Ready")["lastTransitionTime"] != STAMP
