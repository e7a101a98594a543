"""The use of the page: find cells, follow links, read evidence, copy a reproducer."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from harness.report.cell import FAIL, NOT_RUN
from harness.report.report import Report
from tests.meta.browser.driving import DESKTOP, MARKS, PHONE, Driver, Open, every, go_to, one, text, until
from tests.meta.reports import PLANTED, SCRIPT, h200

pytestmark = MARKS


def test_filters_say_how_many_there_are_and_stand_in_the_address(browse: Open) -> None:
    report = h200()
    driver = browse("h200")
    one(driver, "#verdicts [data-verdict=not-run]").click()
    count = report.count(NOT_RUN)
    until(driver, lambda d: text(d, "#shown") == f"{count} of 540 cells")
    one(driver, "#more summary").click()
    Select(one(driver, "#by-backend")).select_by_visible_text("aten-cpp")
    Select(one(driver, "#by-dtype")).select_by_visible_text("float16")
    few = [c for c in report.cells if (c.verdict, c.backend, c.dtype) == (NOT_RUN, "aten-cpp", "float16")]
    until(driver, lambda d: text(d, "#shown") == f"{len(few)} of 540 cells")
    go_to(driver, "cells")
    until(driver, lambda d: len(every(d, "#cells tbody tr")) == len(few))
    one(driver, "#text").send_keys("two GPUs")
    until(driver, lambda d: text(d, "#shown") == "1 of 540 cells")
    address = driver.current_url.partition("#")[2]
    assert address == "?backend=aten-cpp&dtype=float16&verdict=not-run&text=two+GPUs"
    driver = browse("h200", f"#{address}")
    assert text(driver, "#shown") == "1 of 540 cells"
    assert one(driver, "#text").get_attribute("value") == "two GPUs"
    one(driver, "#reset").click()
    until(driver, lambda d: text(d, "#shown") == "540 cells")


def test_a_click_on_a_column_sorts(browse: Open) -> None:
    driver = browse("h200")
    go_to(driver, "cells")
    one(driver, "#cells thead th:nth-child(7) button").click()
    numbers = [cell.text for cell in every(driver, "#cells td.used .number")]
    shares = [int(number.rstrip("%")) for number in numbers]
    assert len(shares) >= 40
    assert shares == sorted(shares, reverse=True)
    assert one(driver, "#cells th[aria-sort]").get_attribute("aria-sort") == "descending"
    one(driver, "#cells thead th:nth-child(7) button").click()
    assert one(driver, "#cells th[aria-sort]").get_attribute("aria-sort") == "ascending"


def test_a_deep_link_opens_its_cell_with_its_evidence(browse: Open) -> None:
    driver = browse("h200", "#lltm/aten-cpp/cuda/bfloat16/recurrence")
    until(driver, lambda d: every(d, "dialog[open]"))
    dialog = one(driver, "dialog").text
    for words in (
        "recurrence",
        "pass",
        "lltm / aten-cpp / cuda / bfloat16",
        "a thousand steps",
        "horizon 1000",
        "57% left",
    ):
        assert words in dialog
    one(driver, "dialog").send_keys(Keys.ARROW_RIGHT)
    until(driver, lambda d: d.current_url.endswith("#lltm/aten-cpp/cuda/bfloat16/rejects-wrong-calls"))
    until(driver, lambda d: "rejects-wrong-calls" in one(d, "dialog h2").text)
    one(driver, "dialog").send_keys(Keys.ESCAPE)
    until(driver, lambda d: not every(d, "dialog[open]"))
    assert "rejects" not in driver.current_url


def test_the_worst_element_its_call_and_the_allowance_are_shown(browse: Open) -> None:
    driver = browse("h200", "#lltm/aten-cpp/cuda/bfloat16/drawn-calls")
    dialog = until(driver, lambda d: one(d, "dialog[open]").text)
    for words in ("gradient of weights, elementwise", "0.0125, allowed 0.03346", "37%", "63% left", "bias expanded"):
        assert words in dialog
    assert "1184072571" in dialog, "the seed of Hypothesis"


def test_elements_are_counted_by_units_in_the_last_place(browse: Open) -> None:
    driver = browse("each", "#lltm/mine/cpu/float32/sizes")
    until(driver, lambda d: every(d, "dialog[open] table.units"))
    heads = [head.text for head in every(driver, "table.units thead th")]
    assert heads == ["ULP", "½", *(str(2**power) for power in range(11)), "more"]
    counts = [cell.text for cell in every(driver, "table.units tbody td")]
    assert counts == ["4,321", "70", *["·"] * 10, "5"]


def test_a_link_to_no_cell_is_said(browse: Open) -> None:
    driver = browse("h200", "#lltm/aten-cpp/cuda/float8/sizes")
    until(driver, lambda d: "no cell lltm/aten-cpp/cuda/float8/sizes" in text(d, "#said"))
    assert not every(driver, "dialog[open]")


def test_the_reproducer_is_copied(browse: Open) -> None:
    driver = browse("each")
    origin = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    driver.execute_cdp_cmd("Browser.grantPermissions", origin)
    go_to(driver, "failures")
    until(driver, lambda d: every(d, "#failures .copy"))[0].click()
    until(driver, lambda d: text(d, "#said") == "Reproducer copied")
    assert driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])") == SCRIPT


def test_somebody_with_the_page_alone_learns_what_is_wrong(browse: Open) -> None:
    report = Report.read(PLANTED)
    driver = browse("planted")
    go_to(driver, "failures")
    first = until(driver, lambda d: one(d, "#failures article"))
    wrong = next(cell for cell in report.cells if cell.property == "forward-parity")
    for words in (
        wrong.reason.splitlines()[0],
        "15 of 15 elements are wrong",
        "342 times",
        "checkout of the suite at commit 09f550f",
    ):
        assert words in first.text
    assert wrong.figures["reproducer"].strip() in first.find_element(By.CSS_SELECTOR, "pre").get_attribute(
        "textContent"
    )
    command = "pytest tests/conformance/test_properties.py::test_forward_parity --operator lltm --candidate lltm="
    assert command in first.text
    assert "what rounding explains" in first.text
    second = until(driver, lambda d: every(d, "#failures article")[1])
    assert "It may follow from forward-parity, which fails too: fix that first." in second.text
    assert "It may follow" not in first.text
    further = "document.querySelector('#failures button.more')?.scrollIntoView()"

    def all_drawn(driver: Driver) -> bool:
        driver.execute_script(further)
        return len(every(driver, "#failures article, #failures .alike a")) == report.count(FAIL)

    until(driver, all_drawn)


def test_the_keyboard_reaches_a_cell(browse: Open) -> None:
    driver = browse("h200")
    go_to(driver, "matrix")
    one(driver, "body").send_keys("/")
    assert driver.switch_to.active_element.get_attribute("id") == "text"
    marks = until(driver, lambda d: every(d, "table.properties a.mark"))
    assert [mark.get_attribute("tabindex") for mark in marks].count("0") == 1, "one stop for the whole matrix"
    driver.execute_script("arguments[0].focus()", marks[0])
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_LEFT):
        driver.switch_to.active_element.send_keys(key)
    assert driver.switch_to.active_element.get_attribute("href").endswith("#lltm/aten-cpp/cuda/float32/current-stream")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    until(driver, lambda d: "current-stream" in one(d, "dialog[open] h2").text)


#: Too low for the matrix to be drawn by itself, before the click.
LOW = (360, 300)
SECTIONS = ("untested", "accuracy", "parity", "environment", "cells")


@pytest.mark.parametrize(
    ("name", "size", "section"),
    [
        *(("h200", PHONE, section) for section in SECTIONS),
        ("h200", LOW, "accuracy"),
        *(("large", DESKTOP, section) for section in ("parity", "environment")),
    ],
)
def test_a_link_of_the_bar_leads_to_its_section(browse: Open, name: str, size: tuple[int, int], section: str) -> None:
    """All above it is drawn when the click has been handled, so that nothing moves it away later."""
    driver = browse(name, size=size)
    link = one(driver, f"nav a[href='#{section}']")
    where = f"return document.getElementById('{section}').getBoundingClientRect().top"
    height = f"arguments[0].click(); return document.getElementById('{section}').offsetTop"
    top = driver.execute_script(height, link)
    until(driver, lambda d: -10 <= d.execute_script(where) <= 120)
    assert driver.execute_script("return location.hash") == f"#{section}"
    driver.execute_async_script("setTimeout(() => requestAnimationFrame(arguments[0]), 500)")
    assert -10 <= driver.execute_script(where) <= 120, "the section was moved away"
    assert driver.execute_script(f"return document.getElementById('{section}').offsetTop") == top


def test_a_long_list_grows_by_itself_only_so_far(browse: Open) -> None:
    driver = browse("h200")
    go_to(driver, "cells")

    def at_the_end(driver: Driver) -> bool:
        driver.execute_script("scrollTo(0, document.body.scrollHeight)")
        return bool(driver.execute_script("return scrollY + innerHeight >= document.body.scrollHeight - 1"))

    until(driver, lambda d: at_the_end(d) and len(every(d, "#cells tbody tr")) == 240)
    assert "300 are left" in text(driver, "#cells button.more")
    driver.execute_script("document.querySelector('#cells button.more').click()")
    until(driver, lambda d: len(every(d, "#cells tbody tr")) == 540)
    assert not every(driver, "#cells button.more")


def test_each_form_of_an_operator_has_its_evidence(browse: Open) -> None:
    driver = browse("forms", "#lltm/mine/cpu/float32/gradcheck")
    dialog = until(driver, lambda d: one(d, "dialog[open]").text)
    for words in ("op[rows]", "op[images]", "small, large", "after 10", "50%", "it has no rows"):
        assert words in dialog
    driver = browse("forms")
    go_to(driver, "untested")
    gap = one(driver, "#untested .gap").text
    for words in ("a form left out", "2 cells", "op[flat]: it has no rows", "gradcheck, layouts"):
        assert words in gap
    go_to(driver, "derivatives")
    assert "3 cases, 2 calls, not in 1 form" in text(driver, "#derivatives")
