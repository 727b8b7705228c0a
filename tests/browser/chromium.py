"""Debian's Chromium, driven by its own chromedriver; installed where it is missing and the machine allows it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.remote.webelement import WebElement

from local import apt
from local.errors import LocalError
from tests.waiting import until

PACKAGES = ("chromium", "chromium-driver")
WITHIN = 60.0
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
Raw = dict[str, Any]


def ensure() -> str | None:
    """Why there is no browser; None if there is one. Says so on the terminal before it installs one."""
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return None
    tool = apt.find(os.environ, Path("/"))
    if os.geteuid() != 0 or tool is None:
        return f"install {' and '.join(PACKAGES)}: the tests of the console need a browser"
    print(f"installing {' and '.join(PACKAGES)} with apt-get, for the tests of the console", file=sys.__stderr__)
    try:
        apt.install(tool, PACKAGES)
    except LocalError as error:
        return str(error)
    return None


@contextmanager
def started(profile: Path, zone: str = "Europe/London") -> Iterator[Chrome]:
    """A browser with a profile of its own, on the clock of that zone."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1440,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = ChromeService(shutil.which("chromedriver"), env={**os.environ, "TZ": zone})
    driver = Chrome(options, service)
    try:
        driver.set_script_timeout(WITHIN)
        driver.set_page_load_timeout(WITHIN)
        yield driver
    finally:
        driver.quit()


@dataclass
class Page:
    """A browser tab; each call runs in a thread, so that the console goes on in the test's own loop."""

    driver: Chrome
    origin: str

    def __post_init__(self) -> None:
        """Forgets what the browser complained about in earlier tests."""
        self.complaints()

    async def open(self, path: str) -> None:
        await asyncio.to_thread(self.driver.get, self.origin + path)

    async def run(self, script: str, *given: Any) -> Any:
        return await asyncio.to_thread(self.driver.execute_script, script, *given)

    async def answer(self, script: str) -> Any:
        """What a script hands to the function that it gets."""
        return await asyncio.to_thread(self.driver.execute_async_script, script)

    async def find(self, selector: str) -> WebElement:
        """Waits for an element."""
        found: list[WebElement] = []

        async def there() -> bool:
            found[:] = await asyncio.to_thread(self.driver.find_elements, "css selector", selector)
            return bool(found)

        await self.until(there, selector)
        return found[0]

    async def click(self, selector: str) -> None:
        """Clicks an element; again, if the page has just drawn it again."""

        async def clicked() -> bool:
            element = await self.find(selector)
            try:
                await asyncio.to_thread(element.click)
            except StaleElementReferenceException:
                return False
            return True

        await self.until(clicked, selector)

    async def type(self, selector: str, text: str) -> None:
        element = await self.find(selector)
        await asyncio.to_thread(element.send_keys, text)

    async def shows(self, text: str) -> None:
        """Waits for a text anywhere on the page."""
        await self.until(lambda: self.run("return document.body.innerText.includes(arguments[0])", text), text)

    async def until(self, fact: Callable[[], Any], what: str) -> None:
        try:
            await until(fact, within=WITHIN)
        except TimeoutError:
            text = await self.run("return document.body.innerText")
            raise AssertionError(f"{what!r} does not come up; the page says:\n{text}\n{self.complaints()}") from None

    async def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await asyncio.to_thread(self.driver.execute_cdp_cmd, "Emulation.setDeviceMetricsOverride", metrics)

    async def colours(self, scheme: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        await asyncio.to_thread(self.driver.execute_cdp_cmd, "Emulation.setEmulatedMedia", media)

    async def picture(self, path: Path) -> None:
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(self.driver.save_screenshot, str(path))

    def complaints(self) -> list[str]:
        """What the browser logged: errors of scripts, and what the content security policy stopped."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    async def serious_problems(self) -> list[str]:
        """What axe-core finds serious or critical."""
        source = resources.files("axe_core_python").joinpath("axe.min.js").read_text()
        await self.run(source)
        script = "const done = arguments[0]; axe.run(document).then((found) => done(found.violations))"
        found = await self.answer(script)
        grave = [each for each in found if each["impact"] in ("serious", "critical")]
        return [f"{each['id']}: {node['html'][:160]}" for each in grave for node in each["nodes"][:3]]
