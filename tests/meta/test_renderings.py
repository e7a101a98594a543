"""Markdown, JUnit XML and the badge: each is complete for readers who see nothing else of the report."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.__main__ import main
from harness.rendering import summary, tables
from harness.rendering.badge import badge
from harness.rendering.junit import junit
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.report import Report
from tests.meta.reports import ATTACK, MACHINE, PLANTED, SCRIPT, attacking, cell, h200, in_forms, large, of, one_of_each

COMMENT = 65_536


def test_failures_come_first_each_with_its_reproducer() -> None:
    text = summary.markdown(one_of_each())
    parts = [
        "## ✗ Conformance: 1 of 3 tested cells failed",
        "### Failures",
        SCRIPT.rstrip(),
        "### Table",
        "### What was not",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("<details>") == text.count("</details>") == 2, "the failure and the cell without evidence"
    assert "new_h was 1 at (0, 2), but should be 2" in text
    for gap in ("1 declared: why declared", "1 not-run: why not-run", "not selected in this run: device cuda"):
        assert gap in text


def test_a_form_that_a_pass_leaves_out_is_told() -> None:
    shown = summary.markdown(in_forms()).partition("### What was not tested")[2]
    assert "- 2 not-run in the form op&#91;flat&#93;: it has no rows (gradcheck, layouts; mine; cpu; float32)" in shown


def test_the_table_is_that_of_the_readme() -> None:
    report = h200()
    rows = [line for line in tables.markdown(report).splitlines() if line.startswith("|")]
    assert [line for line in summary.markdown(report).splitlines() if line.startswith("|")] == rows


@pytest.mark.parametrize("make", [large, lambda: Report.read(PLANTED)], ids=["large", "planted"])
def test_it_fits_a_comment_or_says_what_it_leaves_out(make: Any) -> None:
    report = make()
    text = summary.markdown(report)
    shown = text.partition("### Table")[0]
    assert len(shown) < COMMENT
    failed = report.count(FAIL)
    assert f"{failed} cells failed" in text
    listed = shown.count("<details>") + shown.count("\n- ✗")
    if listed < failed:
        assert f"and {failed - listed} more, see the JSON report" in shown


def test_a_code_block_cannot_be_left() -> None:
    text = summary.block("```\n````\n# not a heading")
    assert text.startswith("`````\n")
    assert text.endswith("\n`````")


def test_words_of_a_candidate_are_no_markup() -> None:
    text = summary.markdown(attacking())
    outside = [part for number, part in enumerate(text.split("```")) if number % 2 == 0]
    for part in outside:
        assert "<script" not in part
        assert "<img" not in part
        assert "@all" not in part
    for is_table, rows in itertools.groupby(text.splitlines(), lambda line: line.startswith("|")):
        if is_table:
            assert len({line.count("|") for line in rows}) == 1, "a name has split a row of the table"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("forward-parity", "forward-parity"),
        ("bias_of_one_row", "bias_of_one_row"),
        ("_f_", "&#95;f&#95;"),
        ("a|b", "a&#124;b"),
        ("[x](y)", "&#91;x&#93;(y)"),
        ("two\n lines", "two lines"),
        ("#1 @you *x* `y` <b>", "&#35;1 &#64;you &#42;x&#42; &#96;y&#96; &#60;b&#62;"),
    ],
)
def test_plain_text(text: str, expected: str) -> None:
    assert tables.plain(text) == expected


def test_a_partial_report_says_so_everywhere() -> None:
    report = of(cell(), complete=False)
    assert "**This report is partial" in summary.markdown(report)
    root = ElementTree.fromstring(junit(report))
    assert [case.get("name") for case in root.iter("testcase") if case.find("error") is not None] == [
        "comes to its end"
    ]
    assert badge(report)["message"] == "the run did not finish"


def test_junit_has_a_case_a_cell_and_counts_them() -> None:
    report = one_of_each()
    root = ElementTree.fromstring(junit(report))
    (suite,) = root.findall("testsuite")
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "lltm.mine.cpu",
        "tests": "6",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
    }
    found = {str(case.get("name")): [child.tag for child in case] for case in suite.findall("testcase")}
    expected = {PASS: [], FAIL: ["failure"], NO_EVIDENCE: ["error"], DECLARED: ["skipped"], NOT_RUN: ["skipped"]}
    assert found == {cell_.property: expected[cell_.verdict] for cell_ in report.cells}
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("fail: new_h was 1 at (0, 2), but should be 2")
    assert str(failure.text).endswith(SCRIPT)
    assert {case.get("classname") for case in suite.findall("testcase")} == {"lltm.mine.cpu.float32"}


def test_junit_holds_what_xml_cannot() -> None:
    root = ElementTree.fromstring(junit(of(cell(FAIL, backend="a\x00\x1b[31m", reason="b\x00\ud800\ufffe\nc"))))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.text == "b\ufffd\ufffd\ufffd\nc"
    named = [str(suite.get("name")) for suite in ElementTree.fromstring(junit(attacking()))]
    assert f"lltm.{ATTACK}fail.cpu" in named


@pytest.mark.parametrize(
    ("report", "message", "colour"),
    [
        (of(cell()), "1 pass", "brightgreen"),
        (of(cell(), cell(NOT_RUN, dtype="float64")), "1 pass, 1 not tested", "brightgreen"),
        (of(cell(FAIL), cell(dtype="float64")), "1 of 2 tested cells failed", "red"),
        (of(cell(), cell(NO_EVIDENCE, dtype="float64")), "1 cells could not tell right from wrong", "yellow"),
        (of(cell(NOT_RUN)), "nothing was tested", "lightgrey"),
        (of(), "nothing was tested", "lightgrey"),
    ],
)
def test_the_badge(report: Report, message: str, colour: str) -> None:
    found = badge(report)
    assert (found["message"], found["color"]) == (message, colour)
    assert found["schemaVersion"] == 1
    assert found["isError"] is (colour == "red")
    assert found.keys() <= {"schemaVersion", "label", "message", "color", "isError"}, (
        "shields.io refuses unknown fields"
    )


@pytest.mark.parametrize("name", ["markdown", "junit", "badge"])
def test_the_commands_print_what_is_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["harness", name, str(PLANTED)])
    assert main() == 0
    report = Report.read(PLANTED)
    expected = {"markdown": summary.markdown, "junit": junit, "badge": lambda it: json.dumps(badge(it)) + "\n"}
    assert capsys.readouterr().out == expected[name](report)


def test_a_command_that_writes_a_file_makes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "deep" / "badge.json"
    monkeypatch.setattr(sys, "argv", ["harness", "badge", str(PLANTED), "-o", str(target)])
    assert main() == 0
    assert json.loads(target.read_text())["color"] == "red"


@pytest.mark.parametrize("name", ["html", "markdown", "junit", "show"])
def test_half_a_character_is_drawn_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """An error message may hold half a surrogate pair; JSON can represent it, UTF-8 cannot."""
    path = tmp_path / "report.json"
    row = {**vars(cell(FAIL)), "reason": "half \ud800 of one"}
    machine = {**MACHINE, "cpu": "\ud800"}
    path.write_text(json.dumps({"schema": 1, "environment": machine, "complete": True, "cells": [row]}))
    assert Report.read(path).cells[0].reason == "half ? of one"
    monkeypatch.setattr(sys, "argv", ["harness", name, str(path), "-o", str(tmp_path / "drawn")])
    assert main() == (1 if name == "show" else 0)
    (tmp_path / "drawn").read_text(encoding="utf-8")
