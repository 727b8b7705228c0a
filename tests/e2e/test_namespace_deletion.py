"""`kubectl delete namespace`: everything goes at once, and nothing of ours holds it up."""

from typing import Any

from crds import names
from local.provider.kinds import HOSTS
from service import metrics
from service.kube.client import Client
from service.kube.resource import EVENTS, NAMESPACES
from tests import watching
from tests.e2e.manifests import MINUTE, machine
from tests.e2e.operator import Operator
from tests.e2e.workload import WorkloadSide


async def warnings_of(client: Client, namespace: str) -> list[dict[str, Any]]:
    return await client.list(EVENTS, namespace="default", fields=f"regarding.name={namespace}")


async def test_a_namespace_that_is_deleted_goes_with_all_its_machines_and_a_warning(
    op: Operator, workload: WorkloadSide
) -> None:
    await op.apply(machine("first"))
    await op.apply(machine("stuck"))
    nodes = [(await op.ready(name))["nodeRef"]["name"] for name in ("first", "stuck")]
    await op.hold(HOSTS, "stuck-infra")
    before = metrics.NAMESPACES_TERMINATING._value.get()

    await op.client.delete(NAMESPACES, op.namespace)
    await op.gone("first")
    await workload.node_gone(nodes[0])
    status = await op.phase("stuck", "ShuttingDown")
    assert status["shutdownStartedAt"]

    op.clock.advance(16 * MINUTE)
    await op.gone("stuck")  # although its infrastructure is still there
    assert "deletionTimestamp" in (await op.read(HOSTS, "stuck-infra"))["metadata"]
    await op.let_go(HOSTS, "stuck-infra")
    await watching.until_gone(op.client, NAMESPACES, op.namespace, within=90.0)

    await op.at_rest()
    (warning,) = await warnings_of(op.client, op.namespace)
    assert (warning["type"], warning["reason"]) == ("Warning", "NamespaceTerminating")
    assert warning["regarding"] == {"apiVersion": "v1", "kind": "Namespace", "name": op.namespace}
    assert warning["reportingController"] == names.GROUP
    assert metrics.NAMESPACES_TERMINATING._value.get() == before + 1
