"""A thousand machines: how soon they are drawn, and whether scrolling stays smooth; the figures are printed.

The machine that runs the tests is busy, and has no graphics card: each time is compared with what a fixed piece of work
takes in the same page, and the best of a few tries has to be good enough. `bench/bench_console.py` judges milliseconds,
on a machine that does nothing else.
"""

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from local.cluster import LocalCluster
from service.kube.client import Client
from tests.browser import scene
from tests.browser.chromium import Page
from tests.browser.conftest import OpenPage
from tests.browser.measures import DRAWN, SCROLL, TIMES

MANY = 1000
TRIES = 4
DRAWN_WITHIN, LONGEST_TASK = 60, 12
"""In pieces of work. Each took 60 to 100 ms on a busy machine; there pages took 5 to 12 of them, and tasks 1 to 8."""
WORK = """const begun = performance.now(); let x = 0;
for (let n = 0; n < 2e6; n++) x = (x * 31 + n) | 0;
return [x, performance.now() - begun];"""
ON_SCREEN = 100
"""Rows that are drawn at most, of however many."""


@pytest.fixture
async def page(opened: OpenPage, small_cluster: LocalCluster, client: Client, namespace: str) -> AsyncIterator[Page]:
    await scene.fleet(client, namespace, MANY)
    async with opened(small_cluster.kubeconfig, namespace) as found:
        yield found


async def test_a_thousand_machines_are_drawn_at_once_and_scroll_smoothly(page: Page) -> None:
    for path in ("/fleet", "/week"):
        tries = [await measured(page, path)]
        while len(tries) < TRIES and not any(good(each) for each in tries):
            tries.append(await measured(page, path))
        assert any(good(each) for each in tries), (path, tries)


async def measured(page: Page, path: str) -> dict[str, Any]:
    """A page drawn and scrolled through."""
    await page.open(path)
    await page.find(".space .row a")
    await page.until(lambda: page.run(DRAWN), "drawn")
    times = await page.run(TIMES)
    scrolled = await page.answer(SCROLL)
    work = max([(await page.run(WORK))[1] for _ in range(5)])
    frames = sorted(scrolled["frames"])
    longest = max(scrolled["long"], default=0.0)
    sys.stdout.write(
        f"\n{path}: first paint {times['paint']:.0f} ms, {MANY} machines drawn after {times['drawn']:.0f} ms; "
        f"scrolling: median frame {frames[len(frames) // 2]:.0f} ms, longest task {longest:.0f} ms; "
        f"a piece of work {work:.0f} ms\n"
    )
    assert max(times["rows"], scrolled["rows"]) < ON_SCREEN, "only what is visible is drawn"
    return {"drawn": times["drawn"] / work, "task": longest / work}


def good(times: dict[str, Any]) -> bool:
    return bool(times["drawn"] < DRAWN_WITHIN and times["task"] < LONGEST_TASK)
