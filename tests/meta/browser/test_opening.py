"""The page opens without other files, at once however large it is, and runs no code from a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.report.cell import FAIL
from tests.meta.browser.driving import MARKS, Open, every, go_to, one, text, until
from tests.meta.reports import ATTACK, large

pytestmark = MARKS


def test_it_needs_no_network_and_no_other_file(browse: Open) -> None:
    driver = browse("h200")
    for section in ("matrix", "untested", "derivatives", "parity", "cells"):
        go_to(driver, section)
    loaded = driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert text(driver, "#shown") == "540 cells"
    assert "Values and gradients are right" in text(driver, ".certificate")


def test_what_a_report_says_is_never_run(browse: Open) -> None:
    driver = browse("attack")
    for section in ("failures", "matrix", "untested", "derivatives", "parity", "cells"):
        go_to(driver, section)
    driver.execute_script("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    links = driver.execute_script(
        "return [...document.querySelectorAll('#cells tbody a')].map((a) => a.getAttribute('href'))"
    )
    assert len(links) == 8
    for link in links:
        driver.execute_script("location.hash = arguments[0]", link)
        until(driver, lambda d: every(d, "dialog[open] article"))
        driver.execute_script("document.querySelector('dialog').close()")
    assert driver.execute_script("return window.attacked ?? null") is None
    assert every(driver, "img, main script, dialog script") == []
    assert ATTACK in text(driver, "#failures")
    assert ATTACK in text(driver, "#environment")
    assert "49" not in text(driver, "#environment"), "a template inside a fact was evaluated"


_SMUGGLE = """
const made = document.createElement("script");
made.textContent = "window.attacked = 1";
document.body.append(made);
document.body.insertAdjacentHTML("beforeend", '<b onclick="window.attacked = 1" id="lure">x</b>');
document.getElementById("lure").click();
"""


def test_a_smuggled_script_would_not_run_either(browse: Open) -> None:
    """The page's security policy is the second protection: it allows one script, by its digest."""
    driver = browse("each")
    driver.execute_script(_SMUGGLE)
    assert driver.execute_script("return window.attacked ?? null") is None
    refused = driver.get_log("browser")
    assert any("Content Security Policy" in entry["message"] for entry in refused)


def test_twenty_thousand_cells_open_at_once(browse: Open, pages: Callable[[str], Path], record_property: Any) -> None:
    size = pages("large").stat().st_size
    assert size < 5_000_000
    driver = browse("large")
    until(driver, lambda d: d.execute_script("return document.readyState") == "complete")
    timing = "const seen = performance.getEntriesByType('navigation')[0]; return seen.loadEventEnd / 1000"
    seconds = until(driver, lambda d: d.execute_script(timing))
    record_property("bytes", size)
    record_property("seconds to open", seconds)
    print(f"20,000 cells: {size:,} bytes, open after {seconds:.2f} s")
    assert text(driver, "#shown") == "20,000 cells"
    assert len(every(driver, "*")) < 20_000, "sections out of view must not be drawn yet"
    one(driver, "#verdicts [data-verdict=fail]").click()
    go_to(driver, "cells")
    assert len(every(driver, "#cells tbody tr")) < 500
    shown = text(driver, "#shown")
    assert shown.endswith(" of 20,000 cells")
    assert int(shown.split()[0].replace(",", "")) == large().count(FAIL)
