"""The page of `5spot report -o html` in a real browser: it needs nothing else, fits a phone, and prints on A4."""

import base64
import re
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from service.commands.report_html import page
from service.fleet.usage import report_of
from tests.browser.chromium import Page
from tests.service.fleet.test_usage import MONTH, Month, stored

COSTS = ("1.50", "0.80", None)
A4_INSIDE = (688, 1001)
"""In CSS pixels, within the margins that the page asks for."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a month of five machines."""
    months = [Month(seed) for seed in range(5)]
    for month in months:
        month.run()
    raws = [stored(each.sim, f"desk-{number}", cost=COSTS[number % 3]) for number, each in enumerate(months)]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(report_of(raws, MONTH)), encoding="utf-8")
    return path


@pytest.fixture
async def shown(chrome: Chrome, file: Path) -> Page:
    found = Page(chrome, file.as_uri())
    await found.size(1100, 900)
    await found.colours("light")
    await found.open("")
    await found.shows("desk-4")
    return found


async def test_the_page_asks_for_nothing_and_assistive_technology_can_use_it(shown: Page, pictures: Path) -> None:
    assert await shown.run("return performance.getEntriesByType('resource').map((each) => each.name)") == []
    assert shown.complaints() == []
    assert await shown.serious_problems() == []
    await shown.picture(pictures / "report.png")


@pytest.mark.parametrize("size", [(360, 740), (2560, 1300)])
async def test_it_fits_the_screen(shown: Page, size: tuple[int, int]) -> None:
    await shown.size(*size)
    assert await shown.run("return document.documentElement.scrollWidth <= innerWidth")


async def test_it_prints_on_a4_with_nothing_cut_off(shown: Page) -> None:
    shown.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    await shown.size(*A4_INSIDE)
    assert await shown.run("return document.documentElement.scrollWidth <= innerWidth")
    printed = shown.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": False})
    shown.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    pdf = base64.b64decode(printed["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    (box,) = set(re.findall(rb"/MediaBox\s*\[0 0 ([0-9.]+) ([0-9.]+)\]", pdf))
    assert [round(float(each)) for each in box] == [595, 842]
