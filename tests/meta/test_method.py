"""docs/method.md agrees with the code and with the record."""

import json
import re
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
import torch

import harness.judging.compare
import spec.rounding
from tests.zoo.gaming import table as attacks
from tools.soak import table as soak
from tools.soak.__main__ import places
from tools.soak.state import State
from tools.study import derived, gate, judges, method, tables

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / method.DOCUMENT).read_text()
RECORD = json.loads((ROOT / "results/cpu/method.json").read_text())
SOAKS = {record: State.read(ROOT / record) for record in soak.RECORDS}
DERIVED = json.loads((ROOT / "results/cpu/derived.json").read_text())


def test_tables_are_those_of_the_record() -> None:
    redraw = "python -m tools.study.method --draw results/cpu/method.json"
    assert tables.insert(RECORD, DOCUMENT) == DOCUMENT, f"out of date: {redraw}"
    markers = re.findall(r"^<!-- (?!end)(.*) -->$", DOCUMENT, flags=re.MULTILINE)
    soaks = [name for state in SOAKS.values() for name in soak.drawn(state)]
    assert sorted(markers) == sorted([*tables.drawn(RECORD), *soaks, *derived.drawn(DERIVED), attacks.MARKER])


def test_the_record_is_of_the_judges_and_operators_of_the_code() -> None:
    assert RECORD["judges"] == method.started()["judges"]
    assert {name: part["seeds"] for name, part in RECORD["operators"].items()} == method.SEEDS


@pytest.mark.parametrize("record", SOAKS, ids=str)
def test_tables_of_a_soak_are_those_of_its_state(record: Path) -> None:
    redraw = f"python -m tools.soak --state {record} --table"
    assert soak.insert(SOAKS[record], DOCUMENT) == DOCUMENT, f"out of date: {redraw}"


@pytest.mark.parametrize("record", SOAKS, ids=str)
def test_a_soak_knows_every_form_and_dtype(record: Path) -> None:
    asked = {(place.operator, place.form, place.dtype) for place in places([], [], "cpu")}
    rows = [row for row in SOAKS[record].places if row["device"] != "cuda-emulated"]
    assert asked == {(row["operator"], row["form"], row["dtype"]) for row in rows}


def test_the_table_of_derived_contracts_is_that_of_its_record() -> None:
    redraw = "python -m tools.study.derived --draw results/cpu/derived.json"
    assert derived.insert(DERIVED, DOCUMENT) == DOCUMENT, f"out of date: {redraw}"


@pytest.mark.parametrize("name", derived.OPERATORS)
def test_derived_contracts_were_asked_of_the_whole_zoo_and_reject_no_control(name: str) -> None:
    found = DERIVED["operators"][name]
    measure = "python -m tools.study.derived -o results/cpu/derived.json measures what the record lacks"
    assert {(kind, id) for kind in found for id in found[kind]} == {task[1:] for task in derived.tasks(name)}, measure
    assert not any(control["alarms"] for control in found["controls"].values())


@pytest.mark.parametrize("study", [derived, gate, method], ids=lambda study: study.__name__)
def test_a_study_says_that_it_has_nothing_to_do(
    study: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["study"])
    with pytest.raises(SystemExit, match="2"):
        study.main()
    assert "nothing to do: name the record" in capsys.readouterr().err


def test_figures_are_there() -> None:
    figures = re.findall(r"!\[.*\]\((.*)\)", DOCUMENT)
    assert figures
    for name in figures:
        assert (ROOT / "docs" / name).read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize("module", [spec.rounding, harness.judging.compare], ids=lambda module: module.__name__)
def test_formulae_are_those_of_the_code(module: object) -> None:
    blocks = re.findall(r"(?:^    .*\n)+", module.__doc__ or "", flags=re.MULTILINE)
    assert blocks
    for block in blocks:
        assert dedent(block) in dedent_code(DOCUMENT), f"docs/method.md lacks\n{block}"


def dedent_code(document: str) -> str:
    return re.sub(r"^    ", "", document, flags=re.MULTILINE)


@pytest.mark.parametrize("dtype", judges.ASSERT_CLOSE, ids=str)
def test_tolerances_are_those_of_assert_close(dtype: torch.dtype) -> None:
    rtol, atol = judges.ASSERT_CLOSE[dtype]
    zero, one = torch.zeros(1, dtype=dtype), torch.ones(1, dtype=dtype)
    for base, tolerance in ((zero, atol), (one, rtol + atol)):
        step = max(0.1 * tolerance, torch.finfo(dtype).eps if base is one else 0.0)
        torch.testing.assert_close(base + (tolerance - step), base)
        with pytest.raises(AssertionError):
            torch.testing.assert_close(base + (tolerance + step), base)


@pytest.mark.parametrize("k", [0, 1, 50, 99, 100])
def test_interval_holds_the_rate_and_is_known(k: int) -> None:
    low, high = tables.interval(k, 100)
    assert 0 <= low <= k / 100 <= high <= 1
    if k == 50:
        assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)
    if k == 0:
        assert (low, round(high, 4)) == (0.0, 0.0370)
