"""The verdict as JSON for other tools, and the commands that write files."""

from __future__ import annotations

import errno
import json
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from harness.rendering.notebook import NotebookReport
from harness.rendering.record import verdict_record
from harness.report import atomic_write
from harness.report.cell import FAIL, NOT_RUN, PASS
from harness.report.levels import LEVELS, SAFE
from harness.report.report import Report
from tests.meta.reports import PLANTED, RESULTS, h200, of, of_levels


def test_it_has_the_sentences_and_the_standings() -> None:
    report = of_levels(PASS, PASS, PASS, FAIL, NOT_RUN, required=SAFE)
    said = (
        "Values and gradients are right in float32, and it is safe. "
        "It could also support: opcheck (0 of 1 at level pytorch)."
    )
    levels = [("pass", 1, 1)] * 3 + [("fail", 0, 1), ("not-run", 0, 0)]
    assert verdict_record(report) == {
        "verdict": "pass",
        "sentence": said,
        "short": "values ✓ gradients ✓ safe ✓",
        "required": "safe",
        "partial": "",
        "implementations": [
            {
                "operator": "lltm",
                "backend": "mine",
                "devices": ["cpu"],
                "verdict": "pass",
                "sentence": said,
                "levels": [
                    {
                        "level": name,
                        "required": name in LEVELS[:3],
                        "verdict": verdict,
                        "passed": passed,
                        "tested": tested,
                    }
                    for name, (verdict, passed, tested) in zip(LEVELS, levels, strict=True)
                ],
            }
        ],
    }


def test_it_says_why_a_report_is_partial_and_knows_every_implementation() -> None:
    assert verdict_record(replace(of_levels(PASS), complete=False))["partial"] == "the run did not finish"
    assert verdict_record(of())["implementations"] == []
    found = verdict_record(h200())["implementations"]
    assert (len(found), found[0]["backend"]) == (5, "aten-cpp")


def test_show_prints_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = RESULTS / "cpu" / "wrong-function.json"
    monkeypatch.setattr(sys, "argv", ["harness", "show", str(path), "--json"])
    assert main() == 1
    assert json.loads(capsys.readouterr().out) == verdict_record(Report.read(path))


def _full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("command", ["html", "markdown", "junit", "badge", "show", "merge"])
@pytest.mark.parametrize("full", [True, False], ids=["full", "unwritable"])
def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, full: bool
) -> None:
    target = tmp_path / "file" / "report"
    if full:
        monkeypatch.setattr(atomic_write.tempfile, "mkstemp", _full)
    else:
        (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(sys, "argv", ["harness", command, str(PLANTED), "-o", str(target)])
    assert main() == 2
    why = "No space left on device" if full else ""
    assert f"error: {target} cannot be written: {why}" in capsys.readouterr().err


def test_a_report_prints_as_a_verdict() -> None:
    """`print(verify(...))`; a notebook shows the Markdown."""
    report = of_levels(PASS, PASS, PASS, FAIL, required=SAFE)
    shown = str(NotebookReport(**{field.name: getattr(report, field.name) for field in fields(report)}))
    assert shown.splitlines()[1].startswith("Values and gradients are right in float32, and it is safe.")
    assert "  ✗ pytorch     0 of 1 hold     not required  opcheck" in shown
    assert "\x1b" not in shown
