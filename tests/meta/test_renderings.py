"""Markdown, JUnit XML and the badge: each is complete for readers who see nothing else of the report."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.__main__ import main
from harness.rendering import summary, tables
from harness.rendering.badge import badge
from harness.rendering.causes import causes
from harness.rendering.junit import junit
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.levels import GRADIENTS, SAFE, VALUES
from harness.report.report import Report
from tests.meta.reports import (
    ATTACK,
    MACHINE,
    PLANTED,
    SCRIPT,
    WRONG_GRADIENT,
    attacking,
    cell,
    h200,
    in_forms,
    large,
    of,
    of_levels,
    one_of_each,
    row,
)

COMMENT = 65_536


def test_the_sentence_comes_first_then_the_levels_then_each_failure() -> None:
    text = summary.markdown(one_of_each())
    parts = [
        "## ✗ Wrong: values are wrong in float32 (1 of 3 cells). Gradients are right.",
        "| implementation | values | gradients | safe | pytorch | production |",
        "| lltm / mine | ✗ 1/3 | ✓ 1/1 | - | d 0/1 | - |",
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


def test_one_cause_is_one_failure() -> None:
    cells = [
        row(name, FAIL, dtype) for name in ("forward-parity", "layouts", "sizes") for dtype in ("float32", "float64")
    ]
    text = summary.markdown(of(*cells, row("memory", FAIL, reason=f"again: {WRONG_GRADIENT}"), required=SAFE))
    shown = text.partition("### Failures")[2].partition("### Table")[0]
    assert shown.count("<details>") == 2
    assert "7 cells failed or have no evidence, by 2 causes." in shown
    assert "6 cells fail for this reason, of forward-parity, layouts, sizes." in shown
    assert "It may follow from wrong values." in shown


def test_what_is_not_required_is_folded_and_no_failure() -> None:
    text = summary.markdown(of_levels(PASS, PASS, PASS, FAIL, DECLARED, required=SAFE))
    assert text.startswith(
        "## ✓ Values and gradients are right in float32, and it is safe. It could also support: opcheck"
    )
    assert "### Failures" not in text
    assert "| implementation | values | gradients | safe | pytorch (not required) | production (not required) |" in text
    folded = text.partition("<details><summary>Not supported, and not required: 2</summary>")[2]
    assert "\n- d pytorch: opcheck of lltm / mine (float32): new_h was 1 at (0, 2), but" in folded
    assert "\n- d production: record-stream of lltm / mine (float32): why declared\n" in folded


def test_several_implementations_have_a_sentence_each() -> None:
    cells = [*of_levels(PASS, backend="a").cells, *of_levels(FAIL, backend="b").cells]
    text = summary.markdown(of(*cells, required=VALUES))
    assert "- lltm / a: Values are right in float32." in text
    assert "- lltm / b: Wrong: values are wrong in float32 (1 of 1 cells)." in text


def test_a_huge_text_makes_no_huge_document() -> None:
    huge = "x\u0007y" * 10**6
    report = of(
        row("forward-parity", FAIL, reason=huge, figures={"reproducer": huge}, backend="b" * 10**6),
        cell(NOT_RUN, property="layouts", reason=huge),
        row("opcheck", FAIL, reason=huge),
        required=SAFE,
    )
    for drawn in (summary.markdown(report).partition("### Table")[0], junit(report)):
        assert len(drawn) < 250_000
        assert "more characters)" in drawn
        assert "\u0007" not in drawn


def test_a_form_that_a_pass_leaves_out_is_told() -> None:
    shown = summary.markdown(in_forms()).partition("### What was not tested")[2]
    assert "- 2 not-run in the form op&#91;flat&#93;: it has no rows (gradcheck, layouts; mine; cpu; float32)" in shown


def test_the_table_is_that_of_the_readme() -> None:
    report = h200()
    rows = [line for line in tables.markdown(report).splitlines() if line.startswith("|")]
    shown = summary.markdown(report).partition("### Table")[2]
    assert [line for line in shown.splitlines() if line.startswith("|")] == rows


@pytest.mark.parametrize("make", [large, lambda: Report.read(PLANTED)], ids=["large", "planted"])
def test_it_fits_a_comment_or_says_what_it_leaves_out(make: Any) -> None:
    report = make()
    text = summary.markdown(report)
    shown = text.partition("### Table")[0]
    assert len(shown) < COMMENT
    failed = report.count(FAIL)
    assert f"{failed} cells failed" in text
    found = len(causes(report.cells, report.suite))
    listed = shown.count("<details>") + shown.count("\n- ✗")
    assert f"by {found} causes" in shown
    assert (f"and {found - listed} more, see the JSON report" in shown) is (listed < found)


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
    assert badge(report)["message"] == "partial: the run did not finish"
    assert badge(report)["color"] == "yellow"


def test_junit_has_a_case_a_cell_and_counts_them() -> None:
    report = one_of_each()
    root = ElementTree.fromstring(junit(report))
    (suite,) = root.findall("testsuite")

    def counts(of: ElementTree.Element) -> list[str | None]:
        return [of.get(name) for name in ("name", "tests", "failures", "errors", "skipped", "time")]

    assert counts(suite) == ["lltm.mine.cpu", "6", "1", "1", "2", "1.2500"]
    assert [counts(inner) for inner in suite.findall("testsuite")] == [
        ["lltm.mine.cpu.values", "3", "1", "1", "0", "1.2500"],
        ["lltm.mine.cpu.gradients", "2", "0", "0", "1", "0.0000"],
        ["lltm.mine.cpu.pytorch", "1", "0", "0", "1", "0.0000"],
    ]
    cases = suite.findall("testsuite/testcase")
    found = {str(case.get("name")): [child.tag for child in case] for case in cases}
    expected = {PASS: [], FAIL: ["failure"], NO_EVIDENCE: ["error"], DECLARED: ["skipped"], NOT_RUN: ["skipped"]}
    assert found == {cell_.property: expected[cell_.verdict] for cell_ in report.cells}
    failure = suite.find("testsuite/testcase/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("fail: new_h was 1 at (0, 2), but should be 2")
    assert str(failure.text).endswith(SCRIPT)
    assert {case.get("classname") for case in cases} == {"lltm.mine.cpu.float32"}


def test_junit_skips_what_fails_above_the_required_level() -> None:
    root = ElementTree.fromstring(junit(of_levels(PASS, PASS, FAIL, FAIL, NO_EVIDENCE, required=SAFE)))
    (suite,) = root.findall("testsuite")
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "0", "2"]
    messages = [str(skipped.get("message")) for skipped in root.iter("skipped")]
    assert [message.partition(":")[0] for message in messages] == ["not supported, and not required"] * 2
    by_gradient = replace(row("sizes", FAIL, reason=WRONG_GRADIENT), level=GRADIENTS)
    levels = [str(inner.get("name")) for inner in ElementTree.fromstring(junit(of(by_gradient))).iter("testsuite")]
    assert levels == ["lltm.mine.cpu", "lltm.mine.cpu.gradients"]


@pytest.mark.parametrize("seconds", [10**400, float("inf"), float("nan"), -1.0, "soon"])
def test_junit_has_a_time_whatever_the_report_has(seconds: Any) -> None:
    root = ElementTree.fromstring(junit(of(cell(seconds=seconds), cell(seconds=1.5, dtype="float64"))))
    assert [case.get("time") for case in root.iter("testcase")] == ["0.0000", "1.5000"]
    assert {suite.get("time") for suite in root.iter("testsuite")} == {"1.5000"}


def test_junit_holds_what_xml_cannot() -> None:
    root = ElementTree.fromstring(junit(of(cell(FAIL, backend="a\x00\x1b[31m", reason="b\x00\ud800\ufffe\nc"))))
    failure = root.find("testsuite/testsuite/testcase/failure")
    assert failure is not None
    assert failure.text == "b\ufffd\ufffd\ufffd\nc"
    named = [str(suite.get("name")) for suite in ElementTree.fromstring(junit(attacking()))]
    assert f"lltm.{ATTACK}fail.cpu" in named


@pytest.mark.parametrize(
    ("report", "message", "colour"),
    [
        (of_levels(PASS, PASS, PASS, FAIL, required=SAFE), "values ✓ gradients ✓ safe ✓", "brightgreen"),
        (of_levels(PASS, FAIL, PASS, required=SAFE), "gradients wrong", "red"),
        (of_levels(PASS, PASS, DECLARED, required=SAFE), "values ✓ gradients ✓ safe d", "yellow"),
        (of(cell(), cell(NO_EVIDENCE, dtype="float64")), "values ?", "yellow"),
        (of(cell(NOT_RUN)), "nothing was judged", "lightgrey"),
        (of(), "nothing was judged", "lightgrey"),
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
