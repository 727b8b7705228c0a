"""Fixtures of the integration tests."""

from collections.abc import AsyncIterator, Iterator

import pytest

from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client
from tests.conftest import kept
from tests.integration.replicas import audited_cluster


@pytest.fixture(scope="session")
def audited(assets: Assets, pytestconfig: pytest.Config) -> Iterator[LocalCluster]:
    """A cluster that logs every write, with the CRDs of Cluster API but without its controllers; shared."""
    with kept(pytestconfig) as keeper, audited_cluster(assets, keeper) as cluster:
        yield cluster


@pytest.fixture
async def admin(audited: LocalCluster) -> AsyncIterator[Client]:
    async with audited.client() as client:
        yield client
