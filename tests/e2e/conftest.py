"""Fixtures of the end-to-end tests: the operator at nine on a Friday, when the window of the test manifests opens."""

from collections.abc import AsyncIterator

import pytest

from local.binaries import Assets
from local.plane import ControlPlane
from local.processes import Server
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from tests import accounts
from tests.accounts import Account
from tests.charts.helm import Helm
from tests.e2e.core_webhooks import core_webhooks
from tests.e2e.devmachines import in_memory
from tests.e2e.kubeadm import joinable
from tests.e2e.manifests import NINE
from tests.e2e.operator import Operator, operating
from tests.e2e.pods import Tenants
from tests.e2e.workload import WorkloadSide


@pytest.fixture(scope="session")
def account(plane: ControlPlane, helm: Helm, assets: Assets) -> Account:
    """Who operators are in these tests: the chart's ServiceAccount with the chart's ClusterRole."""
    return accounts.install(helm, plane.management, assets.kubectl)


@pytest.fixture
async def management(plane: ControlPlane, namespace: str, account: Account) -> AsyncIterator[Client]:
    """The test's own connection; afterwards nothing of ours keeps the namespace from going.

    It fails if the operator asked for something that the chart's roles do not grant.
    """
    log = account.log()
    async with plane.management.client() as client:
        yield client
        assert log.refused() == []
        for left in await client.list(SCHEDULED_MACHINES, namespace=namespace):
            body = {"metadata": {"finalizers": None}}
            await client.patch(SCHEDULED_MACHINES, left["metadata"]["name"], body, namespace=namespace)


@pytest.fixture
async def op(management: Client, namespace: str) -> AsyncIterator[Operator]:
    async with operating(management, namespace, NINE) as operator:
        yield operator


@pytest.fixture
async def core(plane: ControlPlane, management: Client, namespace: str) -> AsyncIterator[None]:
    """What is written in the namespace passes the webhooks of Cluster API's core, as it does where clusterctl ran."""
    async with core_webhooks(plane, management, namespace):
        yield


@pytest.fixture
async def kubeadm(
    plane: ControlPlane, kubeadm_provider: Server, management: Client, namespace: str, core: None
) -> Server:
    """Cluster API's kubeadm bootstrap provider, and a Cluster `demo` in the namespace that its machines can join."""
    await joinable(management, namespace, plane.workload)
    return kubeadm_provider


@pytest.fixture
async def devmachines(devmachine_provider: Server, management: Client, namespace: str, core: None) -> Server:
    """Cluster API's in-memory infrastructure provider, and a Cluster `demo` in the namespace that has DevMachines."""
    await in_memory(management, namespace)
    return devmachine_provider


@pytest.fixture
async def workload(plane: ControlPlane) -> AsyncIterator[WorkloadSide]:
    """The cluster that the machines join."""
    async with plane.workload.client() as client:
        side = WorkloadSide(client)
        yield side
        await side.let_all_go()


@pytest.fixture
async def tenants(workload: WorkloadSide, namespace: str) -> AsyncIterator[Tenants]:
    """Pods on the Nodes of the machines."""
    made = Tenants(workload.client, namespace)
    yield made
    await made.clear()
