"""The scoreboard in a browser: readable on a desktop and on a phone, and each mark leads to its evidence."""

from __future__ import annotations

import re

import pytest

from harness.rendering.marks import MARKS as SIGNS
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, PASS
from tests.meta.browser.driving import MARKS, Driver, Open, every, one, text, until

pytestmark = MARKS

PHONE, DESKTOP = (390, 844), (1400, 900)
_SMALLEST = """
return Math.min(...[...document.querySelectorAll(arguments[0])].filter((found) => found.offsetParent).map(
  (found) => parseFloat(getComputedStyle(found).fontSize)));
"""
#: Links and cells of tables whose text does not fit into them.
_CUT_OFF = """
return [...document.querySelectorAll(".board a, .board td, .properties td")].filter((found) => {
  const text = document.createRange();
  text.selectNodeContents(found);
  const box = found.getBoundingClientRect();
  return found.offsetParent && text.getBoundingClientRect().right > box.right + 1;
}).slice(0, 5).map((found) => found.outerHTML.slice(0, 200));
"""


def _width(driver: Driver) -> int:
    return int(driver.execute_script("return document.documentElement.scrollWidth"))


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("name", ["scoreboard", "evidence"])
def test_nothing_is_wider_than_the_window(browse: Open, name: str, size: tuple[int, int]) -> None:
    driver = browse(name, size=size)
    driver.execute_script("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert _width(driver) == size[0]
    assert driver.execute_script(_CUT_OFF) == [], "text is wider than its cell"


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_its_text_can_be_read_and_the_names_of_the_levels_stay(browse: Open, size: tuple[int, int]) -> None:
    driver = browse("scoreboard", size=size)
    assert driver.execute_script(_SMALLEST, "td i, td b, th, small, p, li") >= 10
    driver.execute_script("document.querySelector('.machine tbody:nth-of-type(5)').scrollIntoView()")
    header = driver.execute_script(
        "return document.elementFromPoint(innerWidth / 2, 8).closest('thead')?.textContent ?? ''"
    )
    assert all(level in header for level in ("values", "gradients", "safe", "pytorch", "production"))


def test_a_mark_is_large_enough_for_a_finger(browse: Open) -> None:
    driver = browse("scoreboard", size=PHONE)
    boxes = [found.size for found in every(driver, ".level .all a")[:10]]
    assert all(box["width"] >= 40 and box["height"] >= 28 for box in boxes)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("scoreboard", PASS), *(("every-verdict", verdict) for verdict in (PASS, FAIL, DECLARED, NO_EVIDENCE))],
)
@pytest.mark.parametrize(("size", "marks"), [(PHONE, ".all"), (DESKTOP, ".dtypes")], ids=["phone", "desktop"])
def test_a_click_on_a_mark_shows_its_evidence(
    browse: Open, name: str, verdict: str, size: tuple[int, int], marks: str
) -> None:
    driver = browse(name, size=size)
    mark = one(driver, f"td.level {marks} a.{verdict}")
    link, number = str(mark.get_attribute("href")), (re.findall(r"[\d.e∞]+", mark.text) or [""])[0]
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
    mark.click()
    until(driver, lambda d: d.current_url == link and every(d, ":target"))
    operator, backend = re.search(r"/(\w+)\.html#([^/]+)/", link).groups()  # type: ignore[union-attr]
    assert text(driver, "h1") == operator
    box = one(driver, ":target").rect
    top = driver.execute_script("return scrollY")
    assert top <= box["y"] < top + size[1], "the evidence is in the window"
    section = one(driver, "section:has(:target)")
    assert backend in section.text.splitlines()[0]
    shown = one(driver, ":target").text
    assert SIGNS[verdict] in shown
    assert number in shown
    level = one(driver, "tbody:target, tbody:has(:target)")
    marks_below = [found.text for found in level.find_elements("css selector", f"tr:not(.head) td.{verdict}")]
    assert any(found.startswith(SIGNS[verdict]) for found in marks_below), "a property has this verdict"
    if verdict != PASS:
        assert verdict in level.find_element("css selector", ".note").text, "the reason stands below"
    assert _width(driver) == size[0]


def test_a_speed_leads_to_its_interval(browse: Open) -> None:
    driver = browse("every-verdict", size=DESKTOP)
    found = one(driver, "td.speed a")
    ratio, low, high = re.search(r"([\d.]+)\W.*\(([\d.]+)\W([\d.]+)\)", found.text).groups()  # type: ignore[union-attr]
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    found.click()
    until(driver, lambda d: every(d, ":target table"))
    rows = [row.text for row in every(driver, ":target tbody tr")]
    assert any(ratio in row and f"{low} to {high}" in row for row in rows)
    assert "b.json" in one(driver, ":target .source").text
