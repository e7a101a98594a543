"""What a reader sees before anything is scrolled: the sentence and the five levels; and failures, each cause once."""

from __future__ import annotations

import pytest

from harness.report.cell import FAIL
from harness.report.levels import LEVELS
from harness.report.report import Report
from tests.meta.browser.driving import MARKS, PHONE, Driver, Open, every, go_to, one, text, until
from tests.meta.reports import PLANTED

pytestmark = MARKS

LAPTOP = (1280, 800)
#: The texts of the elements of a selector that lie in the window as a whole.
_IN_SIGHT = """
return [...document.querySelectorAll(arguments[0])].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
}).map((one) => one.getAttribute("aria-label") || one.innerText.replaceAll(/\\s+/g, " ").trim());
"""


def in_sight(driver: Driver, selector: str) -> list[str]:
    found: list[str] = driver.execute_script(_IN_SIGHT, selector)
    return found


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_sentence_and_the_levels_are_in_the_first_screen(browse: Open, size: tuple[int, int]) -> None:
    driver = browse("right", size=size)
    assert in_sight(driver, ".outcome") == [
        "Values and gradients are right in float32, and it is safe. "
        "It could also support: opcheck (0 of 1 at level pytorch)."
    ]
    assert in_sight(driver, ".levels li") == [
        "values 1 of 1",
        "gradients 1 of 1",
        "safe 1 of 1",
        "pytorch 0 of 1",
        "production not judged",
    ]
    assert driver.execute_script("return scrollY") == 0


@pytest.mark.parametrize(
    ("name", "implementations"), [("twelve", 12), ("h200", 5), ("cpu", 50)], ids=["twelve", "h200", "cpu"]
)
def test_many_implementations_are_a_matrix_in_the_first_screen(browse: Open, name: str, implementations: int) -> None:
    """Of more than fifty, the first fifty."""
    driver = browse(name, size=LAPTOP)
    assert len(in_sight(driver, ".outcome")) == 1
    marks = in_sight(driver, ".standings td svg")
    assert len(marks) == 5 * implementations or len(marks) > 5 * implementations == 250
    assert {mark.partition(":")[0] for mark in marks} == set(LEVELS)
    if name == "twelve":
        assert marks[15:19] == [
            "values: 1 of 1 hold",
            "gradients: 1 of 1 hold",
            "safe: 1 of 1 hold",
            "pytorch: 0 of 1 hold, not required",
        ], "backend-11 comes fourth"
        wrong = [mark for mark in marks if mark == "safe: 0 of 1 hold"]
        assert len(wrong) == 1


def test_each_cause_is_one_card(browse: Open) -> None:
    driver = browse("planted")
    go_to(driver, "failures")
    report = Report.read(PLANTED)
    until(driver, lambda d: len(every(d, "#failures article")) == 5)
    assert len(every(driver, "#failures .alike a")) == report.count(FAIL) - 5
    same = until(driver, lambda d: one(d, "#failures article .same").text)
    assert "For the same reason in 13 more cells" in same
    assert "layouts: f32" in same
    driver.execute_script("document.querySelector('#failures .alike a').click()")
    until(driver, lambda d: every(d, "dialog[open] article"))
    driver.execute_script("document.querySelector('dialog').close()")


def test_a_filter_leaves_its_cells_in_each_cause(browse: Open) -> None:
    driver = browse("planted", "#?property=layouts")
    driver.execute_script("scrollTo(0, 0)")
    go_to(driver, "failures")
    until(driver, lambda d: len(every(d, "#failures article")) == 1)
    assert text(driver, "#failures article h3") == "layouts"
    assert not every(driver, "#failures .same")


def test_what_is_not_required_is_folded(browse: Open) -> None:
    driver = browse("right")
    assert not one(driver, "#failures").is_displayed()
    fold = one(driver, "#support details")
    assert not fold.get_attribute("open")
    one(driver, "#support summary").click()
    card = until(driver, lambda d: one(d, "#support .card").text)
    for words in ("opcheck", "level pytorch", "opcheck accepts the operator", "new_h was 1 at (0, 2)", "f32"):
        assert words in card
    assert [link.text for link in every(driver, "nav a")][:2] == ["Could support", "Matrix"]
