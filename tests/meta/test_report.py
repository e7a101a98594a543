"""The report of a run: it is written completely or not at all, is read unchanged, and never mixes machines."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.errors import UsageError
from harness.rendering import tables
from harness.report import atomic_write
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, VERDICTS, WORST_FIRST
from harness.report.report import Report, one_each
from tests.meta.reports import cell, of


def test_a_report_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "report.json"
    written = of(cell(figures={"scenarios": 3, "worst": {"used": 0.5}}, seconds=1.25), cell(FAIL, backend="ünder"))
    written = replace(written, required="safe")
    written.write(path)
    assert Report.read(path) == written
    assert [other.name for other in path.parent.iterdir()] == ["report.json"]


def test_figures_that_json_lacks_become_words(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    of(cell(figures={"a": math.nan, "b": [math.inf, -math.inf], "c": {"d": (1.0, math.nan)}})).write(path)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    json.loads(path.read_text(), parse_constant=refuse)
    (found,) = Report.read(path).cells
    assert found.figures == {"a": "nan", "b": ["inf", "-inf"], "c": {"d": [1.0, "nan"]}}


def test_a_write_that_fails_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    of(cell()).write(path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        of(cell(figures={"a": object()})).write(path)
    assert path.read_bytes() == before

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(atomic_write.os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        of(cell(FAIL)).write(path)
    assert path.read_bytes() == before
    assert [other.name for other in tmp_path.iterdir()] == ["report.json"], "half-written files were left"


def test_unknown_fields_of_a_newer_suite_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    of(cell()).write(path)
    record = json.loads(path.read_text())
    record["cells"][0]["novelty"] = 1
    path.write_text(json.dumps(record))
    assert Report.read(path) == of(cell())
    record["cells"][0]["verdict"] = "excellent"
    path.write_text(json.dumps(record))
    with pytest.raises(UsageError, match="verdict was 'excellent', but should be one of pass, fail"):
        Report.read(path)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_only_a_pass_needs_no_reason(verdict: str) -> None:
    if verdict == PASS:
        assert cell(verdict, reason="").verdict == PASS
    else:
        with pytest.raises(ValueError, match=f"a cell with the verdict '{verdict}' needs a reason"):
            cell(verdict, reason="")


def test_of_two_verdicts_the_worse_one_stands() -> None:
    assert sorted(WORST_FIRST) == sorted(VERDICTS)
    for number, worse in enumerate(WORST_FIRST):
        for better in WORST_FIRST[number + 1 :]:
            for pair in ((worse, better), (better, worse)):
                (found,) = one_each(cell(verdict) for verdict in pair)
                assert found.verdict == worse
            assert tables.worst([cell(better), cell(worse)]) == worse


def test_the_markdown_table() -> None:
    cells = [cell(dtype=dtype) for dtype in ("float32", "float64")] + [cell(NOT_RUN, dtype="float16")]
    cells += [cell(FAIL, backend="other"), cell(DECLARED, backend="other", property="layouts")]
    assert tables.markdown(of(*cells)).splitlines() == [
        "a CPU, torch 2.13, Python 3.11: 1 fail, 1 declared, 2 pass, 1 not-run",
        "",
        "| property | mine<br>cpu | other<br>cpu |",
        "|---|---|---|",
        "| layouts |   | d 1 |",
        "| sizes | ✓ 2 - 1 | ✗ 1 |",
    ]
    assert len(tables.markdown(of(*cells), "parity").splitlines()) == 4, "a view without cells is a table without rows"


def test_the_terminal_table_has_every_reason_as_it_is() -> None:
    """Square brackets are markup for rich; in a reason they enclose a scenario."""
    console = Console(record=True, width=100)
    cells = [
        cell(FAIL, reason="new_h was 1 [lltm(small: batch=3)]"),
        cell(NO_EVIDENCE, dtype="float64"),
        cell(NOT_RUN, backend="b"),
    ]
    tables.print_report(of(*cells, complete=False), console)
    printed = console.export_text()
    for words in ("new_h was 1 [lltm(small: batch=3)]", "why no-evidence", "why not-run", "This report is partial"):
        assert words in printed
    assert "✗ fail 1  ? no-evidence 1  d declared 0  ✓ pass 0  - not-run 1" in printed
