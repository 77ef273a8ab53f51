# SPDX-License-Identifier: GPL-2.0
"""A headless browser that tells what a page asked for and complained about."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

DESKTOP = (1280, 800)
PHONE = (360, 740)


class Browser:
    """One tab. Everything it asked for and complained about is kept by the driver's logs until read."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def screen(self, width: int, height: int, *, dark: bool = False, media: str = "") -> None:
        """Size in CSS pixels of what is seen; below 500 a telephone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})

    def open(self, path: Path) -> None:
        """Load it, until its script is done."""
        self.driver.get(path.as_uri())
        self.until("document.documentElement.dataset.ready === 'yes'")

    def run(self, script: str, *values: Any) -> Any:
        """The value of a JavaScript expression; values are arguments[0]..."""
        return self.driver.execute_script(f"return {script}", *values)

    def until(self, script: str, *values: Any, seconds: float = 60) -> None:
        """Wait for an expression to become true."""
        WebDriverWait(self.driver, seconds, poll_frequency=0.02).until(lambda _: self.run(script, *values))

    def press(self, *keys: str) -> None:
        """Keys, to whatever has the focus."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self) -> str:
        """What has the focus, as its text."""
        return str(self.run("(document.activeElement.innerText || document.activeElement.id).trim()"))

    def complaints(self) -> list[str]:
        """The console's since the last time."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last time."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def overflow(self) -> list[str]:
        """Elements that make the page scroll sideways, or reach beyond its edge."""
        return list(
            self.run(
                """(() => {
                const width = document.documentElement.clientWidth;
                const wide = [...document.querySelectorAll('body *')].filter((each) => {
                    if (each.closest('svg, .skip, .cards thead, #flame-graph div, nav')) return false;
                    const box = each.getBoundingClientRect();
                    return box.width > 0 && box.right > width + 1;
                }).map((each) => `${each.tagName} ${each.className} ${each.id}`);
                const whole = document.documentElement.scrollWidth;
                if (whole > width) wide.push(`page ${whole}`);
                return wide;
                })()"""
            )
        )


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium without a window; ended when the block is left."""
    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    assert options.binary_location, "chromium is not installed"
    driver_path = shutil.which("chromedriver")
    assert driver_path, "chromedriver is not installed"
    # Tests may run as root, in containers without much of /dev/shm.
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(driver_path), options=options)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


__all__ = ["DESKTOP", "PHONE", "Browser", "Keys", "browser"]
