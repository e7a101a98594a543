"""One browser, and the pages that it opens."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.rendering import scoreboard_pages
from harness.rendering.html import page
from harness.rendering.scoreboard import machines
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.levels import SAFE
from harness.report.report import Report
from tests.meta.conftest import ROOT
from tests.meta.reports import (
    CPU,
    PLANTED,
    attacking,
    bench,
    h200,
    in_forms,
    large,
    of,
    of_levels,
    one_of_each,
    row,
    timed,
)


def twelve() -> Report:
    """Twelve backends of one operator: one is not safe, every other one lacks something that is not required."""
    verdicts = {name: (PASS, PASS, FAIL if name == 3 else PASS, FAIL if name % 2 else PASS) for name in range(12)}
    cells = [cell for name, some in verdicts.items() for cell in of_levels(*some, backend=f"backend-{name}").cells]
    return of(*cells, required=SAFE)


PAGES: dict[str, Callable[[], Report]] = {
    "h200": h200,
    "planted": lambda: Report.read(PLANTED),
    "each": one_of_each,
    "attack": attacking,
    "forms": in_forms,
    "large": large,
    "right": lambda: of_levels(PASS, PASS, PASS, FAIL, NOT_RUN, required=SAFE),
    "twelve": twelve,
    "cpu": lambda: Report.read(CPU),
}


#: Committed pages, which are opened as they are.
COMMITTED = {
    "scoreboard": ROOT / "docs/scoreboard/index.html",
    "evidence": ROOT / "docs/scoreboard/nvidia-h200/layer_norm.html",
}


def every_verdict(folder: Path) -> Path:
    """A scoreboard with each verdict and a speed, in a folder of its own."""
    verdicts = (NO_EVIDENCE, DECLARED, FAIL, PASS, PASS)
    cells = [
        replace(cell, figures={"worst": {"used": 0.25}}) for cell in of_levels(*verdicts, backend="aten-cpp").cells
    ]
    right = [row(f"right-{number}", backend="aten-cpp") for number in range(8)]
    drawn = scoreboard_pages.pages(machines([("r.json", of(*cells, *right))], [("b.json", bench(timed()))]), {})
    for name, text in drawn.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "index.html"


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """The system's own Chromium, by its path, so that selenium downloads none."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has no sandbox for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    yield started
    started.quit()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page, drawn at the first use."""
    folder = tmp_path_factory.mktemp("pages")

    def path(name: str) -> Path:
        if name in COMMITTED:
            return COMMITTED[name]
        if name == "every-verdict":
            return every_verdict(folder / name)
        file = folder / f"{name}.html"
        if not file.exists():
            file.write_text(page(PAGES[name]()), encoding="utf-8")
        return file

    return path


@pytest.fixture
def browse(driver: Any, pages: Callable[[str], Path]) -> Iterator[Callable[..., Any]]:
    """Open a page in a window of that size; any error on the console fails the test.

    A report decompresses its cells before it draws anything, and the browser does not wait for that.
    """
    from tests.meta.browser.driving import every, until

    def opened(name: str, link: str = "", size: tuple[int, int] = (1440, 900), dark: bool = False) -> Any:
        driver.get("about:blank")  # a new address after `#` alone would not reload the page
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        driver.get(pages(name).as_uri() + link)
        until(driver, lambda d: every(d, "#verdicts > *") or not every(d, "#payload"))
        return driver

    yield opened
    said = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert said == []
