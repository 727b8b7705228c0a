"""Fixtures over the real throw-away control plane: started when first needed, once a session, a namespace a test."""

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from crds.definitions import all_definitions
from local import clusters, devmachine, kubeadm
from local import helm as local_helm
from local.binaries import Assets, ensure
from local.cluster import Audit, LocalCluster, Options
from local.plane import ControlPlane
from local.processes import Keeper, Server
from local.progress import Progress
from service.kube.errors import NotFound
from service.kube.resource import NAMESPACES
from tests.charts.helm import Helm
from tests.loops import PatientLoop

# The servers of a test run live for minutes: memory is cheaper than the time their collectors take.
os.environ.setdefault("GOGC", "400")

# How long an example takes says how busy the machine is, and nothing about what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

LOGS = ".test-logs"
LOG_TAIL = 512 * 1024
KEEPERS: pytest.StashKey[list[Keeper]] = pytest.StashKey()


def pytest_asyncio_loop_factories() -> dict[str, type[PatientLoop]]:
    """All asynchronous tests and fixtures run in such a loop."""
    return {"patient": PatientLoop}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of several workers each gets a part of the tests, and takes from the end of another's when it is done.

    So the first begins with those that need the whole control plane, others with those on smaller ones, and what needs
    no server comes last on all sides: there are few planes that keep each other from their work.
    """
    whole, smaller, light = list[pytest.Item](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        needs: list[str] = getattr(item, "fixturenames", [])
        (whole if "plane" in needs else smaller if "assets" in needs else light).append(item)
    room = max(0, len(items) // 2 - len(whole))
    items[:] = [*whole, *light[:room], *smaller, *light[room:]]


@pytest.fixture(scope="session")
def assets() -> Assets:
    """The control plane's binaries, built on first use."""
    return ensure(Progress())


@pytest.fixture(scope="session")
def helm() -> Helm:
    """The real helm, built on first use."""
    return Helm(local_helm.ensure(Progress()))


@pytest.fixture(scope="session")
def small_cluster(assets: Assets, pytestconfig: pytest.Config) -> Iterator[LocalCluster]:
    """A bare cluster, shared: etcd, kube-apiserver and kube-controller-manager, without Cluster API."""
    with kept(pytestconfig) as keeper, LocalCluster("small", assets, keeper) as cluster:
        yield cluster


@pytest.fixture
def new_cluster(assets: Assets, pytestconfig: pytest.Config) -> Iterator[Callable[..., LocalCluster]]:
    """Makes clusters for one test alone, to be stopped, frozen or flagged otherwise; takes `local.cluster.Options`."""
    with kept(pytestconfig) as keeper:
        made: list[LocalCluster] = []

        def make(options: Options | None = None) -> LocalCluster:
            made.append(LocalCluster(f"own-{len(made)}", assets, keeper, options))
            return made[-1].start()

        yield make
        for cluster in made:
            cluster.stop()


@pytest.fixture(scope="session")
def plane(assets: Assets, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Everything, shared: management and workload cluster, Cluster API, simulated hosts. Freeze nothing of it."""
    options = Options(definitions=all_definitions(), audit=Audit.ACCOUNTS)
    with kept(pytestconfig) as keeper, ControlPlane(assets, keeper, options) as control_plane:
        yield control_plane


@pytest.fixture(scope="session")
def kubeadm_provider(plane: ControlPlane) -> Server:
    """Cluster API's own kubeadm bootstrap provider with its webhooks, in `plane`; built on first use, shared."""
    return plane.add_provider(kubeadm.BUILD.ensure(Progress()))


@pytest.fixture(scope="session")
def devmachine_provider(plane: ControlPlane) -> Server:
    """Cluster API's own in-memory infrastructure provider with its webhooks, in `plane`; built on first use, shared."""
    return plane.add_provider(devmachine.BUILD.ensure(Progress()))


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace for one test; its deletion goes on in the background.

    With `plane` it is in the management cluster and holds a Cluster `demo` with its kubeconfig Secret; otherwise it is
    in `small_cluster`.
    """
    whole = "plane" in request.fixturenames
    cluster: LocalCluster = (
        request.getfixturevalue("plane").management if whole else request.getfixturevalue("small_cluster")
    )
    name = f"test-{secrets.token_hex(4)}"
    aside(make_namespace(cluster, name, with_cluster=whole))
    yield name
    aside(drop_namespace(cluster, name))


async def make_namespace(cluster: LocalCluster, name: str, *, with_cluster: bool) -> None:
    async with cluster.client() as client:
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": name}})
        if with_cluster:
            await clusters.add(client, name)


async def drop_namespace(cluster: LocalCluster, name: str) -> None:
    async with cluster.client() as client:
        with suppress(NotFound):  # the test was about that
            await client.delete(NAMESPACES, name)


def aside(work: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine in a loop of its own, whether or not the test has one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


class kept:  # noqa: N801 -- reads as a verb in a with statement
    """A keeper whose logs are saved when a test fails."""

    def __init__(self, config: pytest.Config) -> None:
        self._all = config.stash.setdefault(KEEPERS, [])
        self._keeper = Keeper()

    def __enter__(self) -> Keeper:
        self._all.append(self._keeper)
        return self._keeper

    def __exit__(self, *_: object) -> None:
        self._all.remove(self._keeper)
        self._keeper.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        target = item.config.rootpath / LOGS / re.sub(r"[^\w.-]+", "_", item.nodeid)
        for keeper in item.config.stash.get(KEEPERS, []):
            save_logs(keeper.directory / "logs", target)
    return report


def save_logs(logs: Path, target: Path) -> None:
    """Copies the end of every log."""
    target.mkdir(parents=True, exist_ok=True)
    for log in logs.glob("*.log"):
        (target / log.name).write_bytes(log.read_bytes()[-LOG_TAIL:])
