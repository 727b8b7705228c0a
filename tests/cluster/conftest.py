"""One cluster with a real node, shared by all tests of this folder, which run one after the other."""

from collections.abc import Iterator

import pytest

from local.errors import LocalError
from local.node.cluster import NodeCluster, ensure
from local.node.packages import require_machine
from local.progress import Progress
from tests.charts.helm import Helm
from tests.cluster.site import Site
from tests.conftest import KEEPERS


@pytest.fixture(scope="session")
def node(pytestconfig: pytest.Config) -> Iterator[NodeCluster]:
    """The cluster; its parts are built and installed on first use."""
    try:
        require_machine()
    except LocalError as error:
        pytest.skip(str(error))
    with NodeCluster(ensure(Progress())) as cluster:
        keepers = pytestconfig.stash.setdefault(KEEPERS, [])
        keepers.append(cluster.keeper)
        yield cluster
        keepers.remove(cluster.keeper)


@pytest.fixture(scope="session")
def site(node: NodeCluster, helm: Helm) -> Site:
    """The cluster with nothing of ours installed."""
    return Site(node, helm)
