"""Fixtures of the tests in a real browser."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from crds.definitions import all_definitions
from local.cluster import LocalCluster
from local.crds import apply
from service.clock import Clock, SimulatedClock
from service.console.local import LocalEntrance
from service.kube.client import Client
from tests.browser import chromium, scene
from tests.browser.chromium import Page
from tests.e2e.conftest import account, management  # noqa: F401 - fixtures of the tests beside a real operator
from tests.integration.api_door import served
from tests.integration.consoles import console

OpenPage = Callable[..., AbstractAsyncContextManager[Page]]


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser, shared; each console has a port and a cookie of its own."""
    missing = chromium.ensure()
    if missing:
        pytest.skip(missing)
    with chromium.started(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
async def client(small_cluster: LocalCluster) -> AsyncIterator[Client]:
    async with served(small_cluster) as found:
        for definition in all_definitions():
            await apply(found, definition)
        yield found


@pytest.fixture
def opened(chrome: Chrome) -> OpenPage:
    """Opens a console in the browser: `opened(kubeconfig, namespace, clock)`."""

    @asynccontextmanager
    async def open_console(kubeconfig: Path, namespace: str, clock: Clock | None = None) -> AsyncIterator[Page]:
        async with console(kubeconfig, namespace, clock or SimulatedClock.starting(scene.NOW)) as entrance:
            page = Page(chrome, f"http://127.0.0.1:{entrance.port}")
            await page.size(1440, 900)
            await page.colours("light")
            await page.open(_token(entrance))
            await page.find("nav a")
            yield page
            await page.open("/static/mark.svg")

    return open_console


def _token(entrance: LocalEntrance) -> str:
    return entrance.address.removeprefix(f"http://127.0.0.1:{entrance.port}")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: `make pictures` says docs/images."""
    return Path(os.environ.get("PICTURES") or tmp_path)
