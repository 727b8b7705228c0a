"""One cluster with a real node, shared by all tests of this folder, which run one after the other."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from local.errors import NoNodeError
from local.node import packages
from local.node.cluster import NodeCluster, ensure
from local.node.ground import Ground
from local.progress import Progress
from tests.charts.helm import Helm
from tests.cluster.making import Making
from tests.cluster.site import Site, eventually, installed
from tests.cluster.traces import PATIENCE, Traces
from tests.conftest import KEEPERS

TURNS = (
    "test_ground.py",  # as long as there is no node
    "test_agent.py",  # as long as there is no operator
    "test_install.py",
    "test_monitoring.py",
    "test_switches.py",
    "test_faults.py",
    "test_uninstall.py",
    "test_restricted.py",
    "test_variants.py",
    "test_release.py",  # at last: it removes the CRD too
)
"""One release with default values serves the tests from `test_install.py` to `test_uninstall.py`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every module in its turn."""
    items.sort(key=lambda item: TURNS.index(item.path.name))


@pytest.fixture(scope="session", autouse=True)
def suitable_machine() -> None:
    """Skips all tests with one sentence where no node can run."""
    try:
        packages.require_machine()
        packages.ensure(Progress())
        with Ground(PATIENCE):
            pass
    except NoNodeError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def release_in_the_making(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Making | None]:
    """Begins when it is first asked for, if a test will want it: not beside tests of what takes how long."""
    if not any(item.path.name == "test_release.py" for item in request.session.items):
        yield None
        return
    try:
        ensure(Progress())  # what both need is built once
    except NoNodeError as error:
        pytest.skip(str(error))
    making = Making(tmp_path_factory.mktemp("release"))
    yield making
    making.end()


@pytest.fixture(scope="session")
def node(pytestconfig: pytest.Config) -> Iterator[NodeCluster]:
    """The cluster; `make cluster-test` has built and installed its parts. Nothing of it is left behind."""
    try:
        parts = ensure(Progress())
        before = Traces.without_node()
        cluster = NodeCluster(parts, PATIENCE).__enter__()
    except NoNodeError as error:
        pytest.skip(str(error))
    keepers = pytestconfig.stash.setdefault(KEEPERS, [])
    keepers.append(cluster.keeper)
    try:
        yield cluster
    finally:
        cluster.__exit__(None, None, None)
        keepers.remove(cluster.keeper)
    with suppress(AssertionError):  # the kernel takes a moment
        eventually(lambda: Traces.found() == before, within=10)
    assert Traces.found() == before


@pytest.fixture(scope="session")
def site(node: NodeCluster, helm: Helm) -> Site:
    """The cluster, with whatever the tests before have installed."""
    return Site(node, helm)


@pytest.fixture(scope="session")
def release(site: Site) -> Iterator[Site]:
    """The chart with its default values; `test_uninstall.py` removes it, or else the end of the session."""
    with installed(site):
        yield site
