"""Shared by the tests of the page: window sizes, browser helpers, and the reasons to skip."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("selenium", reason="needs selenium, which `pip install --group browser` brings")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

#: The marks of each file of these tests. All use one browser, so they go to one worker.
MARKS = [
    pytest.mark.skipif(
        shutil.which("chromium") is None or shutil.which("chromedriver") is None,
        reason="needs Debian's chromium and chromium-driver, see .ci/setup",
    ),
    pytest.mark.xdist_group("browser"),
]
PHONE, DESKTOP = (360, 740), (1440, 900)

Driver = webdriver.Chrome
#: Open a page by its name, see `conftest.PAGES`, with a link, in a window of a size, light or dark.
Open = Callable[..., Driver]


def until(driver: Driver, condition: Callable[[Driver], Any]) -> Any:
    """The value of the condition when it becomes true. Elements that the page has replaced are looked up again."""
    replaced = [StaleElementReferenceException]
    return WebDriverWait(driver, 20, poll_frequency=0.05, ignored_exceptions=replaced).until(condition)


def one(driver: Driver, selector: str) -> Any:
    return driver.find_element(By.CSS_SELECTOR, selector)


def every(driver: Driver, selector: str) -> list[Any]:
    return driver.find_elements(By.CSS_SELECTOR, selector)


def text(driver: Driver, selector: str) -> str:
    return str(one(driver, selector).get_attribute("textContent"))


def go_to(driver: Driver, section: str) -> None:
    """Scroll to a section and wait until it is drawn."""
    driver.execute_script("document.getElementById(arguments[0]).scrollIntoView()", section)
    until(driver, lambda d: every(d, f"#{section} .body > *"))
