"""A management cluster that is lost or given up: its objects in another one, with new uids and without their status."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crds.schema import custom_resource_definition
from local import clusterctl
from local.binaries import Assets
from local.cluster import LocalCluster, Options
from local.crds import apply_all as install
from local.plane import ControlPlane
from local.progress import Progress
from local.provider.kinds import BOOTSTRAPS, CLUSTERS, CONTROL_PLANES, HOSTS, MACHINES, definition
from local.provider.workloads import DEFAULT, access_kubeconfig, provider_kubeconfig
from service.cli import main
from service.kube.client import Client
from service.kube.errors import AlreadyExists
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, SECRETS, Resource
from tests import watching
from tests.conftest import drop_namespace, kept, make_namespace
from tests.e2e.manifests import NINE, SIX, machine, says
from tests.e2e.operator import Operator, operating
from tests.e2e.workload import WorkloadSide

Raw = dict[str, Any]
BACKED_UP = (SECRETS, CONTROL_PLANES, CLUSTERS, SCHEDULED_MACHINES, BOOTSTRAPS, HOSTS, MACHINES)
KEPT = ("name", "namespace", "labels", "annotations")


@pytest.fixture(scope="module")
def elsewhere(plane: ControlPlane, assets: Assets, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A second management cluster, with providers of its own, for the same workload cluster."""
    options = Options(definitions=(custom_resource_definition(),))
    with kept(pytestconfig) as keeper, ControlPlane(assets, keeper, options) as other:
        for path in (provider_kubeconfig, access_kubeconfig):
            there, here = (path(each.workloads_folder, DEFAULT) for each in (other, plane))
            there.write_bytes(here.read_bytes())
        yield other


def as_velero_restores(resource: Resource, raw: Raw) -> Raw:
    """Without uid, owners and status."""
    metadata = {key: raw["metadata"][key] for key in KEPT if key in raw["metadata"]}
    body = {key: value for key, value in raw.items() if key not in ("metadata", "status")}
    return {**body, **resource.envelope(), "metadata": metadata}


async def restore(source: Client, target: Client, namespace: str) -> None:
    for resource in BACKED_UP:
        for raw in await source.list(resource, namespace=namespace):
            with suppress(AlreadyExists):  # what a controller over there has made again
                await target.create(resource, as_velero_restores(resource, raw), namespace=namespace)


async def adopt(cluster: LocalCluster, namespace: str, *words: str) -> int:
    where = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    return await asyncio.to_thread(main, ["adopt", *words, *where])


async def test_a_restored_machine_is_refused_until_it_is_adopted_and_then_carried_on_with(
    op: Operator, elsewhere: ControlPlane, workload: WorkloadSide, capsys: pytest.CaptureFixture[str]
) -> None:
    await op.apply(machine())
    node = (await op.ready("worker"))["nodeRef"]
    await make_namespace(elsewhere.management, op.namespace, with_cluster=False)
    async with elsewhere.management.client() as client:
        await restore(op.client, client, op.namespace)
        restored = {kind: await client.get(kind, name, namespace=op.namespace) for kind, name in children()}
        async with operating(client, op.namespace, NINE) as successor:
            status = await successor.phase("worker", "Error", "ForeignObject")
            assert f"5spot adopt worker -n {op.namespace}" in status["message"]
            assert says(status, "ReferencesValid", "False", "ForeignObject")

            assert await adopt(elsewhere.management, op.namespace, "worker", "--dry-run") == 0
            assert "Machine worker-machine would be adopted" in capsys.readouterr().out
            assert await adopt(elsewhere.management, op.namespace, "worker") == 0
            assert (await successor.ready("worker"))["nodeRef"] == node
            for kind, name in children():
                now = await client.get(kind, name, namespace=op.namespace)
                assert now["metadata"]["uid"] == restored[kind]["metadata"]["uid"]
            assert await adopt(elsewhere.management, op.namespace, "--all") == 0
            assert "there is nothing to adopt" in capsys.readouterr().out

            successor.clock.move_to(SIX)
            await successor.phase("worker", "Inactive")
            await workload.node_gone(node["name"])
    await drop_namespace(elsewhere.management, op.namespace)


MOVED = (CLUSTERS, MACHINES, CONTROL_PLANES, BOOTSTRAPS, HOSTS)
PROVIDERS = Resource("clusterctl.cluster.x-k8s.io", "v1alpha3", "providers", "Provider")


async def prepare_for_move(cluster: LocalCluster) -> None:
    """What `clusterctl init` does to a management cluster: its inventory, and labels on the kinds that move."""
    async with cluster.client() as client:
        for kind in MOVED:
            labels = {"metadata": {"labels": {"clusterctl.cluster.x-k8s.io": ""}}}
            await client.patch(CUSTOM_RESOURCE_DEFINITIONS, kind.label, labels)
    await asyncio.to_thread(install, cluster.client, [definition(PROVIDERS)])


async def move(clusterctl: Path, source: LocalCluster, target: LocalCluster, namespace: str) -> None:
    command = [str(clusterctl), "move", f"--kubeconfig={source.kubeconfig}", f"--to-kubeconfig={target.kubeconfig}"]
    environ = {**os.environ, "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
    done = await asyncio.to_thread(
        subprocess.run, [*command, f"--namespace={namespace}", "-v5"], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_clusterctl_moves_a_machine_in_service_with_its_cluster(
    op: Operator, plane: ControlPlane, elsewhere: ControlPlane, workload: WorkloadSide
) -> None:
    await op.apply(machine())
    node = (await op.ready("worker"))["nodeRef"]
    for each in (plane, elsewhere):
        await prepare_for_move(each.management)
    await make_namespace(elsewhere.management, op.namespace, with_cluster=False)
    async with elsewhere.management.client() as client, operating(client, op.namespace, NINE) as successor:
        await move(clusterctl.ensure(Progress()), plane.management, elsewhere.management, op.namespace)
        await op.gone("worker")
        assert (await successor.ready("worker"))["nodeRef"] == node

        successor.clock.move_to(SIX)
        await successor.phase("worker", "Inactive")
        await workload.node_gone(node["name"])
    await drop_namespace(elsewhere.management, op.namespace)


def children() -> list[tuple[Resource, str]]:
    return [(MACHINES, "worker-machine"), (BOOTSTRAPS, "worker-bootstrap"), (HOSTS, "worker-infra")]


async def test_an_owner_that_no_longer_exists_does_not_keep_an_object_from_the_garbage_collector(
    op: Operator,
) -> None:
    """Why a restore that brings owner references back as they were cannot be adopted: nothing of it is left."""
    gone = {"uid": "00000000-0000-0000-0000-000000000000", "name": "worker", **SCHEDULED_MACHINES.envelope()}
    body = {**BOOTSTRAPS.envelope(), "metadata": {"name": "worker-bootstrap", "ownerReferences": [gone]}, "spec": {}}
    await op.client.create(BOOTSTRAPS, body, namespace=op.namespace)
    await watching.until_gone(op.client, BOOTSTRAPS, "worker-bootstrap", namespace=op.namespace)
