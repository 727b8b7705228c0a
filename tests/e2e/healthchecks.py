"""A MachineHealthCheck of Cluster API, and what makes it fail at once: a Node's condition, or an administrator."""

from typing import Any

from crds import names
from local.provider.kinds import MACHINES
from service.kube.client import Client, PatchKind
from service.kube.resource import NODES, Resource
from tests.e2e.manifests import condition
from tests.e2e.operator import Operator

Raw = dict[str, Any]
HEALTH_CHECKS = Resource("cluster.x-k8s.io", "v1beta2", "machinehealthchecks", "MachineHealthCheck")
BROKEN: Raw = {"type": "Broken", "status": "True"}
HEALTHY, MARKED = ["True", None, "True", None], ["False", "False", "False", "False"]


async def watch_over(op: Operator, name: str = "worker") -> None:
    """A MachineHealthCheck for a machine, which has looked at it once."""
    check = {
        **HEALTH_CHECKS.envelope(),
        "metadata": {"name": "check"},
        "spec": {
            "clusterName": "demo",
            "selector": {"matchLabels": {names.LABEL_OWNER: name}},
            "checks": {
                "unhealthyNodeConditions": [
                    {"type": "Ready", "status": "False", "timeoutSeconds": 300},
                    {**BROKEN, "timeoutSeconds": 0},
                ]
            },
        },
    }
    await op.client.create(HEALTH_CHECKS, check, namespace=op.namespace, field_manager="another-client")
    await op.until_object(MACHINES, f"{name}-machine", lambda raw: marks(raw) == HEALTHY)


async def break_down(workload: Client, node: str) -> None:
    """What a node problem detector reports of a Node, and the MachineHealthCheck takes for a reason."""
    broken = {**BROKEN, "lastTransitionTime": "2020-01-01T00:00:00Z"}
    patch = [{"op": "add", "path": "/status/conditions/-", "value": broken}]
    await workload.patch(NODES, node, patch, kind=PatchKind.JSON, subresource="status", field_manager="detector")


async def ask_for_remediation(op: Operator, name: str = "worker", *, value: str | None = "") -> None:
    """What an administrator does to have a MachineHealthCheck fail at once; None lets it succeed again."""
    annotations = {names.CAPI_GROUP + "/remediate-machine": value}
    await op.change(MACHINES, f"{name}-machine", {"metadata": {"annotations": annotations}})


def marks(raw: Raw) -> list[str | None]:
    """What HealthCheckSucceeded and OwnerRemediated say, in the conditions of both contracts."""
    status = raw.get("status") or {}
    older = (status.get("deprecated") or {}).get("v1beta1") or {}
    found = [condition(held, kind) for held in (status, older) for kind in ("HealthCheckSucceeded", "OwnerRemediated")]
    return [one.get("status") for one in found]
