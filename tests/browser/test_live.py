"""The console beside a real operator and Cluster API, on the clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from crds.definitions import all_definitions
from local.crds import apply
from local.plane import ControlPlane
from service.kube.client import Client
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from tests.browser.chromium import Page
from tests.browser.conftest import OpenPage
from tests.e2e.manifests import EIGHT, NINE, machine
from tests.e2e.operator import Operator, operating
from tests.integration.consoles import user

LOOKING = [
    {"apiGroups": [SCHEDULED_MACHINES.group], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["list"]},
]
STATE = "return document.querySelector('[data-key=\"{key}\"]')?.dataset.state"


@pytest.fixture
async def op(management: Client, namespace: str) -> AsyncIterator[Operator]:
    """At eight, an hour before the window opens."""
    for definition in all_definitions():
        await apply(management, definition)
    async with operating(management, namespace, EIGHT) as found:
        yield found


async def test_a_window_opens_and_the_bar_turns_without_a_reload(
    opened: OpenPage, plane: ControlPlane, op: Operator, namespace: str
) -> None:
    await op.apply(machine("worker"))
    await op.phase("worker", "Inactive")
    async with opened(plane.management.kubeconfig, namespace, op.clock) as page:
        await page.open("/week")
        state = STATE.format(key=f"{namespace}/worker")
        await page.until(lambda: says(page, state, "out"), "out of service")
        await page.find(".piece.wanted")
        assert await page.run("return document.querySelectorAll('.track-line .piece.served').length") == 0
        await page.run("window.untouched = true")
        op.clock.move_to(NINE)
        await op.ready("worker")
        await page.until(lambda: says(page, state, "served"), "in service")
        op.clock.advance(NINE - EIGHT)
        await page.find(".track-line .piece.served")
        assert await page.run("return window.untouched")


async def says(page: Page, script: str, wanted: str) -> bool:
    return bool(await page.run(script) == wanted)


async def test_an_override_by_a_click_appears_in_the_api_and_ends_by_a_click(
    opened: OpenPage, plane: ControlPlane, op: Operator, namespace: str
) -> None:
    await op.apply(machine("worker"))
    await op.phase("worker", "Inactive")
    async with opened(plane.management.kubeconfig, namespace, op.clock) as page:
        await page.open(f"/machine/{namespace}/worker")
        await page.click("[data-action=extend]")
        await page.type("dialog [name=reason]", "release night")
        await page.click("dialog [type=submit]")
        await page.shows("goes into service now")
        [stored] = await op.client.list(SCHEDULE_OVERRIDES, namespace=namespace)
        assert (stored["spec"]["state"], stored["spec"]["reason"]) == ("Open", "release night")
        await op.ready("worker")
        await page.shows("In service")
        await page.open("/overrides")
        await page.shows("release night")
        await page.click("[data-action=end]")
        await page.click("dialog [type=submit]")
        await op.phase("worker", "Inactive")
        await page.shows("there is no override")
        assert page.complaints() == []


async def test_a_user_without_rights_sees_no_button_and_a_forged_request_is_refused(
    opened: OpenPage, plane: ControlPlane, op: Operator, namespace: str, tmp_path: Path
) -> None:
    await op.apply(machine("worker"))
    await op.phase("worker", "Inactive")
    kubeconfig = tmp_path / "kubeconfig"
    config = await user(op.client, plane.management, namespace, LOOKING)
    await asyncio.to_thread(kubeconfig.write_text, yaml.safe_dump(config))
    async with opened(kubeconfig, namespace, op.clock) as page:
        await page.open(f"/machine/{namespace}/worker")
        await page.shows("You may not read all that the rules look at")
        assert await page.run("return document.querySelectorAll('[data-action]').length") == 0
        path = f"/api/machines/{namespace}/worker/actions"
        forged = await page.run(
            "return fetch(arguments[0], {method: 'POST', headers: {'Content-Type': 'application/json',"
            " 'X-5spot-Key': localStorage.getItem('5spot-key')},"
            " body: JSON.stringify({action: 'extend'})}).then((answer) => answer.status)",
            path,
        )
        assert forged == 403
    assert await op.client.list(SCHEDULE_OVERRIDES, namespace=namespace) == []
