"""docs/mutation.md shows the record of a run, and that run had no complaints."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.running import strength
from tools.mutation import document
from tools.mutation.account import REQUIRED
from tools.mutation.judging import KILLED, SURVIVED

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / document.DOCUMENT).read_text()
PATH = ROOT / "results/cpu/mutation.json"


@pytest.fixture
def record() -> dict[str, Any]:
    """The record of a whole run; without one, the tables of the page are empty."""
    if not PATH.exists():
        pytest.skip(f"{PATH.relative_to(ROOT)} is not there: `nox -s mutation -- --report` writes it")
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def test_tables_are_those_of_the_record(record: dict[str, Any]) -> None:
    redraw = "python -m tools.mutation --draw results/cpu/mutation.json"
    assert document.insert(record, TEXT) == TEXT, f"out of date: {redraw}"
    markers = re.findall(r"^<!-- (?!end)(.*) -->$", TEXT, flags=re.MULTILINE)
    assert sorted(markers) == sorted(document.drawn(record))


def test_the_scores_of_properties_are_those_of_the_record(record: dict[str, Any]) -> None:
    assert json.loads(strength.FILE.read_text()) == document.strength(record)


def _mutant(status: str, by: str = "", dtype: str = "") -> dict[str, Any]:
    return {"status": status, "by": by, "dtype": dtype}


def test_a_property_is_scored_on_the_mutants_that_came_to_it(tmp_path: Path) -> None:
    """Two dtypes of `first`, then `second`: a mutant that `first` noticed never reached `second`; survivors did."""
    checks = [("first", "torch.float32"), ("second", "torch.float32"), ("first", "torch.float16")]
    mutants = [
        _mutant(KILLED, "first: crash (SIGSEGV)", "float32"),
        _mutant(KILLED, "first", "float16"),
        _mutant(KILLED, "second", "float32"),
        _mutant(KILLED, "sanitize: second: exit (1)", "float32"),
        _mutant(SURVIVED),
        _mutant("stillborn"),
    ]
    drawn = document.strength(
        {
            "environment": {"commit": "abc"},
            "hearings": [{"property": name, "dtype": dtype} for name, dtype in checks],
            "mutants": mutants,
            "faults": [_mutant(KILLED, "second", "float32"), _mutant(SURVIVED)],
        }
    )
    path = tmp_path / "strength.json"
    path.write_text(json.dumps(drawn))
    assert strength.strengths(path) == {"first": strength.Strength(2, 5, 0), "second": strength.Strength(1, 4, 1)}
    assert strength.strengths(tmp_path / "none.json") == {}


def test_the_run_was_good(record: dict[str, Any]) -> None:
    assert record["score"] >= REQUIRED
    assert not record["complaints"]
    assert [fault["id"] for fault in record["faults"] if fault["status"] != KILLED] == []
    assert not any(control["false_alarms"] for control in record["controls"])


def test_a_failed_launch_is_told_without_folders(record: dict[str, Any]) -> None:
    messages = [mutant["message"] for mutant in record["mutants"]]
    launches = [message for message in messages if "check_launch, " in message]
    assert launches
    assert [message for message in launches if not re.search(r"check_launch, \w+\.h:\d+", message)] == []


def test_who_noticed_is_told_by_the_property() -> None:
    assert document._noticed_by("layouts") == "layouts"
    assert document._noticed_by("layouts: crash (SIGSEGV)") == "layouts"
    assert document._noticed_by("sanitize: layouts: exit (1)") == "layouts, under AddressSanitizer"
