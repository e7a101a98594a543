"""docs/mutation.md shows the record of a run, and the run was good."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.meta.mutation import document
from tests.meta.mutation.account import REQUIRED
from tests.meta.mutation.court import KILLED

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / document.DOCUMENT).read_text()
PATH = ROOT / "results/cpu/mutation.json"


@pytest.fixture
def record() -> dict[str, Any]:
    """The record of a whole run; until there is one, the tables of the page are empty."""
    if not PATH.exists():
        pytest.skip(f"{PATH.relative_to(ROOT)} is not there: `nox -s mutation -- --report` writes it")
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def test_tables_are_those_of_the_record(record: dict[str, Any]) -> None:
    redraw = "python -m tests.meta.mutation --draw results/cpu/mutation.json"
    assert document.insert(record, TEXT) == TEXT, f"out of date: {redraw}"
    markers = re.findall(r"^<!-- (?!end)(.*) -->$", TEXT, flags=re.MULTILINE)
    assert sorted(markers) == sorted(document.drawn(record))


def test_the_run_was_good(record: dict[str, Any]) -> None:
    assert record["score"] >= REQUIRED
    assert not record["complaints"]
    assert [fault["id"] for fault in record["faults"] if fault["status"] != KILLED] == []
    assert not any(control["false_alarms"] for control in record["controls"])


def test_who_noticed_is_told_by_the_property() -> None:
    assert document._noticed_by("layouts") == "layouts"
    assert document._noticed_by("layouts: crash (SIGSEGV)") == "layouts"
    assert document._noticed_by("sanitize: layouts: exit (1)") == "layouts, under AddressSanitizer"
