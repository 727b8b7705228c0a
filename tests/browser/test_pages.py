"""Each page of the console in a real browser: it draws, nothing is refused, and assistive technology can use it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local.cluster import LocalCluster
from service.console.feed import Feed
from service.console.viewer import Viewer
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from tests.browser import scene
from tests.browser.chromium import Page
from tests.browser.conftest import OpenPage

PAGES = {
    "fleet": ("/fleet", "desk-0"),
    "week": ("/week", "desk-0"),
    "machine": ("/machine/{namespace}/desk-10", "What changes it"),
    "calendars": ("/calendars", "Founders' day"),
    "overrides": ("/overrides", "fire drill"),
    "report": ("/report", "Hours by day"),
}
SHOWN = {*PAGES, "week-dark", "fleet-phone", "week-phone"}
THERE_AND_BACK = """
const done = arguments[0], click = (label) => document.querySelector(`[aria-label=${label}]`).click();
click("Later");
setTimeout(() => {
  click("Earlier");
  const begun = performance.now(), timer = setInterval(() => {
    const waited = performance.now() - begun;
    if (waited < 15000 && !document.querySelector(".track-line .piece.served")) return;
    clearInterval(timer);
    done(waited);
  }, 50);
}, 200);
"""
"""Chooses the next week and, while its lines are asked for, this week again; how long its lines are not there."""
SIZES = {"phone": (360, 740), "wide": (2560, 1300)}


@pytest.fixture
async def page(opened: OpenPage, small_cluster: LocalCluster, client: Client, namespace: str) -> AsyncIterator[Page]:
    await scene.fleet(client, namespace, 30)
    await scene.calendars(client, namespace)
    await scene.overrides(client, namespace)
    async with opened(small_cluster.kubeconfig, namespace) as found:
        yield found


async def test_every_page_draws_in_light_and_dark_small_and_wide_without_serious_problems(
    page: Page, namespace: str, pictures: Path, tmp_path: Path
) -> None:
    problems = {}
    for name, (path, text) in PAGES.items():
        await page.size(1440, 900)
        await page.open(path.format(namespace=namespace))
        await page.shows(text)
        await drawn(page, name)
        for scheme in ("dark", "light"):
            await page.colours(scheme)
            problems[f"{name} {scheme}"] = await page.serious_problems()
            await page.picture(place(pictures, tmp_path, f"{name}-dark" if scheme == "dark" else name))
        for size, (width, height) in SIZES.items():
            await page.size(width, height)
            problems[f"{name} {size}"] = await page.serious_problems()
            await page.picture(place(pictures, tmp_path, f"{name}-{size}"))
            assert await page.run("return document.documentElement.scrollWidth <= innerWidth"), (name, size)
    assert {name: found for name, found in problems.items() if found} == {}
    assert page.complaints() == []


def place(pictures: Path, elsewhere: Path, name: str) -> Path:
    """Where a picture goes: those that the docs show to their folder."""
    return (pictures if name in SHOWN else elsewhere) / f"console-{name}.png"


async def drawn(page: Page, name: str) -> None:
    """Waits for what comes after the first drawing."""
    if name in ("week", "machine"):
        await page.find(".track-line .piece.served")


async def test_the_address_holds_the_filter_and_the_zoom(page: Page) -> None:
    await page.open("/fleet?q=lab&state=served")
    await page.shows("lab-2")
    names = await page.run("return [...document.querySelectorAll('.cell.machine a')].map((each) => each.textContent)")
    assert names
    assert all(name.startswith("lab-") for name in names)
    await page.click(".chip.served")
    await page.until(lambda: page.run("return location.search === '?q=lab'"), "the state leaves the address")
    await page.open("/week?q=nobody")
    await page.shows("No machine matches the filter.")
    await page.open("/week?zoom=day&at=2026-11-17")
    await page.shows("Tue 17 Nov 2026")
    await page.click("[data-zoom=month]")
    await page.shows("November 2026")
    assert "zoom=month" in await page.run("return location.search")


async def test_a_page_whose_connection_broke_shows_what_changed_meanwhile(
    page: Page, client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = Feed.messages, list[bytes]()

    async def breaks_once(feed: Feed) -> AsyncIterator[bytes]:
        async for each in whole(feed):
            yield each
            if not broken:
                broken.append(each)
                return

    monkeypatch.setattr(Feed, "messages", breaks_once)
    await page.open("/fleet")
    await page.shows("desk-0")
    await page.until(lambda: bool(broken), "the first feed has ended")
    await scene.store(client, SCHEDULED_MACHINES, scene.machine(99, namespace), namespace, scene.status(99, 0))
    await page.type("[type=search]", "-99")
    await page.find("[href$='-99']")


async def test_a_week_that_is_chosen_while_another_is_asked_for_has_its_lines(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Viewer.timelines

    def slow(viewer: Viewer, *given: Any) -> dict[str, Any]:
        time.sleep(0.7)
        return whole(viewer, *given)

    await page.open("/week")
    await page.find(".track-line .piece.served")
    monkeypatch.setattr(Viewer, "timelines", slow)
    assert await page.answer(THERE_AND_BACK) < 10_000, "every 20 s it asks anyway"


FOCUSED = "return document.activeElement.getAttribute('href') ?? document.activeElement.className"


@pytest.mark.parametrize(
    ("path", "selector", "focused"),
    [
        ("/fleet", ".chip.served", "chip served"),
        ("/fleet", "a[href$='/desk-0']", "/machine/{namespace}/desk-0"),
        ("/week", "a[href$='/desk-0']", "/machine/{namespace}/desk-0"),
        ("/machine/{namespace}/desk-0", ".actions [data-action=kill]", "danger"),
    ],
)
async def test_the_focus_stays_where_it_is_while_a_machine_changes(
    page: Page, client: Client, namespace: str, path: str, selector: str, focused: str
) -> None:
    await page.open(path.format(namespace=namespace))
    await page.find(selector)
    await page.run(f'document.querySelector("{selector}").focus()')
    await page.run(
        "window.drawn = 0; new MutationObserver(() => { window.drawn += 1 }).observe("
        "document.getElementById('main'), { subtree: true, childList: true, characterData: true })"
    )
    stored = await client.get(SCHEDULED_MACHINES, "desk-0", namespace=namespace)
    whole = {**SCHEDULED_MACHINES.envelope(), **stored, "status": {**stored["status"], "phase": "Error"}}
    await client.replace(SCHEDULED_MACHINES, "desk-0", whole, namespace=namespace, subresource="status")
    await page.until(lambda: page.run("return window.drawn > 0"), "the change")
    await asyncio.sleep(1)
    assert await page.run(FOCUSED) == focused.format(namespace=namespace)


async def test_the_page_of_a_machine_that_is_deleted_says_so_and_offers_nothing(
    page: Page, client: Client, namespace: str
) -> None:
    await page.open(f"/machine/{namespace}/desk-0")
    await page.find(".actions [data-action=extend]")
    await client.delete(SCHEDULED_MACHINES, "desk-0", namespace=namespace)
    await page.shows(f"There is no ScheduledMachine desk-0 in namespace {namespace}.")
    assert await page.run("return document.querySelectorAll('.actions [data-action], .pill').length") == 0


async def test_an_open_yaml_keeps_its_place_while_a_machine_changes(page: Page, client: Client, namespace: str) -> None:
    await page.open(f"/machine/{namespace}/desk-0")
    await page.click(".yaml summary")
    await page.run("document.querySelector('.yaml pre').scrollTop = 100")
    stored = await client.get(SCHEDULED_MACHINES, "desk-0", namespace=namespace)
    whole = {**SCHEDULED_MACHINES.envelope(), **stored, "status": {**stored["status"], "message": "Quite another one"}}
    await client.replace(SCHEDULED_MACHINES, "desk-0", whole, namespace=namespace, subresource="status")
    shown = "return document.querySelector('.yaml pre').textContent.includes('Quite another one')"
    await page.until(lambda: page.run(shown), "the change")
    assert await page.run("return document.querySelector('.yaml[open] pre').scrollTop") == 100


async def test_an_address_without_a_page_says_so_and_leads_back(page: Page) -> None:
    await page.open("/flet")
    await page.shows("The console has no page /flet.")
    assert await page.serious_problems() == []
    await page.click("#main a")
    await page.shows("desk-0")
    await page.open("/week/")
    await page.find(".track-line .piece.served")


async def test_keys_change_pages_and_find_the_search_field(page: Page) -> None:
    await page.open("/fleet")
    await page.shows("desk-0")
    await page.type("body", "2")
    await page.until(lambda: page.run("return location.pathname === '/week'"), "the week")
    await page.type("body", "/")
    await page.until(lambda: page.run("return document.activeElement.type === 'search'"), "the search has the focus")
