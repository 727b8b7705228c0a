"""Uninstalling: the operator stops, `5spot release` removes finalizers, and Machines stay until a user deletes them."""

import asyncio

import pytest

from crds import names
from local.plane import ControlPlane
from local.provider.kinds import MACHINES
from service.cli import main
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from tests import watching
from tests.e2e.manifests import NINE, machine
from tests.e2e.operator import operating
from tests.waiting import until


async def test_a_released_object_goes_and_its_machine_stays_in_service(
    plane: ControlPlane, management: Client, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with operating(management, namespace, NINE) as operator:
        await operator.apply(machine())
        await operator.ready("worker")
    await management.delete(SCHEDULED_MACHINES, "worker", namespace=namespace, propagation="Foreground")

    words = ["-n", namespace, "--operator-namespace", namespace, "--kubeconfig", str(plane.management.kubeconfig)]
    assert await asyncio.to_thread(main, ["release", "--yes", *words]) == 0
    printed = capsys.readouterr().out
    assert f"{namespace}/worker: released" in printed
    assert f"kubectl delete machines.cluster.x-k8s.io -n {namespace} worker-machine" in printed
    assert printed.endswith("1 released, 1 Machines stay\n")

    await watching.until_gone(management, SCHEDULED_MACHINES, "worker", namespace=namespace, within=60)
    left = await until(lambda: _alone(management, namespace), within=60)
    assert left["status"]["phase"] == "Running"
    await management.delete(MACHINES, "worker-machine", namespace=namespace)
    await watching.until_gone(management, MACHINES, "worker-machine", namespace=namespace, within=60)


async def _alone(client: Client, namespace: str):
    """The Machine, once the garbage collector has struck out its owner that is gone."""
    found = await client.get(MACHINES, "worker-machine", namespace=namespace)
    assert "deletionTimestamp" not in found["metadata"]
    owners = {owner["kind"] for owner in found["metadata"]["ownerReferences"]}
    return found if names.KIND not in owners else None
