"""Situations that several tests begin with."""

from crds import names
from local.provider.kinds import HOSTS
from tests.e2e.manifests import SIX
from tests.e2e.operator import Operator
from tests.e2e.workload import WorkloadSide


async def shutting_down(op: Operator, workload: WorkloadSide, name: str = "worker") -> str:
    """A machine in the middle of its drain; returns its Node."""
    node = (await op.ready(name))["nodeRef"]["name"]
    await workload.occupy(node)
    op.clock.move_to(SIX)
    await op.phase(name, "ShuttingDown", "Draining")
    await workload.until_node(node, lambda raw: raw["spec"].get("unschedulable"))
    return node


async def being_deleted(op: Operator, name: str = "worker") -> None:
    """A Machine deleted at the end of its window and held by another controller's finalizer."""
    await op.ready(name)
    await op.hold(HOSTS, f"{name}-infra")
    op.clock.move_to(SIX)
    await op.until_object(HOSTS, f"{name}-infra", lambda raw: "deletionTimestamp" in raw["metadata"])


async def back_in_service(op: Operator, workload: WorkloadSide, node: str, name: str = "worker") -> None:
    """Waits until the cordon is undone; the cancellation emitted one Event."""
    seen = await workload.until_node(node, lambda raw: not raw["spec"].get("unschedulable"))
    assert names.ANNOTATION_CORDONED not in seen["metadata"].get("annotations", {})
    assert (await op.events(name))["ShutdownCancelled"] == 1
