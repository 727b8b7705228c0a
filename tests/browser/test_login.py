"""The console of a cluster in a real browser: users log in with tokens of their own, and out again."""

from pathlib import Path

from selenium.webdriver import Chrome

from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from tests.browser import scene
from tests.browser.chromium import Page
from tests.integration.consoles import cluster_console, token_of, user

READING = [{"apiGroups": [SCHEDULED_MACHINES.group], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
SUBMIT = ".login [type=submit]"


async def test_a_user_logs_in_with_a_token_and_out_again(
    chrome: Chrome, small_cluster: LocalCluster, client: Client, namespace: str, tmp_path: Path
) -> None:
    await scene.fleet(client, namespace, 3)
    token = token_of(await user(client, small_cluster, namespace, READING))
    async with cluster_console(small_cluster, tmp_path) as (_, address):
        page = Page(chrome, address)
        await page.size(1440, 900)
        await page.open("/fleet")
        await page.type("[name=token]", "guess")
        await page.click(SUBMIT)
        await page.shows("does not accept this token")
        assert await page.serious_problems() == []
        await page.open("/fleet")
        await page.type("[name=token]", token)
        await page.click(SUBMIT)
        await page.shows("You may not list and watch scheduledmachines")
        await page.click("[data-action=namespace]")
        await page.type("dialog [name=namespace]", namespace)
        await page.click("dialog [type=submit]")
        await page.shows("desk-0")
        assert await page.serious_problems() == []
        assert await page.run("return document.cookie") == ""
        await page.open(f"/machine/{namespace}/desk-0")
        await page.shows("Conditions")
        assert await page.run("return document.querySelectorAll('.actions [data-action]').length") == 0
        await page.click("[data-action=logout]")
        await page.find("[name=token]")
        assert await page.run("return fetch('/api/machines').then((answer) => answer.status)") == 401
