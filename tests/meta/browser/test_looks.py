"""The look of the page: on a phone, on a desktop, in dark mode, on paper, and without colours."""

from __future__ import annotations

import base64

import pytest
from selenium.webdriver.common.by import By

from harness.report.cell import FAIL
from harness.report.report import Report
from tests.meta.browser.driving import DESKTOP, MARKS, PHONE, Driver, Open, every, go_to, one, text, until
from tests.meta.reports import PLANTED

pytestmark = MARKS


def test_what_was_not_tested_is_as_large_as_what_was(browse: Open) -> None:
    driver = browse("h200")
    tested, untested = (one(driver, selector).size for selector in (".half.tested", ".half.untested"))
    assert tested == untested
    assert (text(driver, ".half.tested strong"), text(driver, ".half.untested strong")) == ("462", "78")
    go_to(driver, "untested")
    shown = text(driver, "#untested")
    for gap in ("needs two GPUs, this machine has 1", "numerical differentiation needs float64", "cuda-emulated"):
        assert gap in shown


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("name", ["h200", "planted", "each", "attack", "right", "twelve"])
def test_nothing_is_wider_than_the_window(browse: Open, name: str, size: tuple[int, int]) -> None:
    driver = browse(name, size=size)
    for section in ("failures", "support", "matrix", "untested", "derivatives", "parity", "cells"):
        if one(driver, f"#{section}").is_displayed():
            go_to(driver, section)
    driver.execute_script("document.querySelectorAll('details').forEach((fold) => { fold.open = fold.id !== 'more'; })")
    assert _overflowing(driver) == []
    metrics = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})
    assert metrics["cssContentSize"]["width"] == size[0]
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    assert int.from_bytes(base64.b64decode(shot["data"])[16:20]) == size[0], "the picture is wider than the window"
    driver.execute_script("location.hash = document.querySelector('#cells table.list tbody a').getAttribute('href')")
    until(driver, lambda d: every(d, "dialog[open] article"))
    assert _overflowing(driver) == []


#: Elements wider than the window, except those inside a box that scrolls by itself.
_STICKING_OUT = """
const scrolls = (one) => {
  for (let up = one.parentElement; up; up = up.parentElement) {
    const way = getComputedStyle(up).overflowX;
    if (up.tagName !== "DIALOG" && ["auto", "scroll", "hidden"].includes(way)) return true;
  }
  return false;
};
return [...document.querySelectorAll("body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !scrolls(one);
}).slice(0, 5).map((one) => one.outerHTML.slice(0, 200));
"""


def _overflowing(driver: Driver) -> list[str]:
    found: list[str] = driver.execute_script(_STICKING_OUT)
    return found


def test_each_verdict_has_a_shape_of_its_own(browse: Open) -> None:
    driver = browse("each")
    go_to(driver, "cells")
    shapes = {
        row.text.split()[0]: row.find_element(By.TAG_NAME, "use").get_attribute("href")
        for row in every(driver, "#cells tbody tr")
    }
    assert shapes == {name: f"#v-{name}" for name in ("pass", "fail", "no-evidence", "declared", "not-run")}
    drawn = [one(driver, f"symbol{shape}").get_attribute("innerHTML") for shape in shapes.values()]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_light_and_dark(browse: Open, dark: bool) -> None:
    driver = browse("each", dark=dark)

    def brightness() -> float:
        colour = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour[4:-1].split(",")) / 765

    assert (brightness() < 0.5) is dark, "as the system has it"
    one(driver, "#theme").click()
    assert brightness() > 0.5
    one(driver, "#theme").click()
    assert brightness() < 0.5
    one(driver, "#theme").click()


def test_on_paper_everything_is_drawn(browse: Open) -> None:
    driver = browse("planted")
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert base64.b64decode(printed)[:5] == b"%PDF-"
    assert len(every(driver, "#environment dl")) >= 5
    for section in ("failures", "matrix", "untested", "parity", "cells"):
        assert every(driver, f"#{section} .body > *"), f"{section} was not drawn for the paper"
    assert len(every(driver, "#failures article, #failures .alike a")) == Report.read(PLANTED).count(FAIL)
    assert all(fold.get_attribute("open") for fold in every(driver, "#failures details"))
    assert len(every(driver, "#cells tbody tr")) == 27
