"""What a person reads on the terminal: the sentence, a line for each level, every failure once, at 80 columns too."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from harness.__main__ import main
from harness.rendering import tables
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.levels import PYTORCH, SAFE
from harness.report.report import Report
from tests.meta.reports import CPU, RESULTS, WRONG, cell, h200, of, of_levels, one_of_each, row

WRONG_FUNCTION = RESULTS / "cpu" / "wrong-function.json"


def printed(report: Report, width: int = 80, terminal: bool = True, **options: Any) -> str:
    """What a terminal of that width gets, or a log."""
    stream = StringIO()
    tables.print_report(
        report, Console(file=stream, width=width, force_terminal=terminal, color_system=None), **options
    )
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_the_sentence_comes_first_then_a_line_for_each_level() -> None:
    report = of_levels(PASS, PASS, PASS, FAIL, NOT_RUN, required=SAFE)
    later = printed(of_levels(PASS, PASS, PASS, PASS, required=SAFE), 120)
    assert "  ✓ pytorch     1 of 1 hold     not required  opcheck\n" in later, "no more than was judged"
    assert printed(report, 120).splitlines()[:8] == [
        "lltm / mine on cpu: torch 2.13, a CPU",
        "Values and gradients are right in float32, and it is safe. "
        "It could also support: opcheck (0 of 1 at level pytorch).",
        "",
        "  ✓ values      1 of 1 hold     outputs are right",
        "  ✓ gradients   1 of 1 hold     gradients are right",
        "  ✓ safe        1 of 1 hold     no side effects, no crash, no state between calls",
        "  ✗ pytorch     0 of 1 hold     not required  opcheck",
        "  - production  not judged      not required",
    ]


def test_what_is_not_required_is_no_failure() -> None:
    shown = printed(of_levels(PASS, PASS, PASS, FAIL, DECLARED, required=SAFE), 120)
    assert "Failed" not in shown
    assert shown.splitlines()[-3:] == [
        "Not supported, and not required",
        f"  d pytorch: opcheck (float32): {WRONG}"[:119] + "…",
        "  d production: record-stream (float32): why declared",
    ]
    assert "Failed: 1 cell by 1 cause" in printed(of_levels(PASS, PASS, PASS, FAIL, required=PYTORCH))


def test_a_failure_is_printed_once_however_many_cells_it_fails() -> None:
    report = replace(Report.read(WRONG_FUNCTION), required=SAFE)
    shown = printed(report)
    failed = re.search(r"\nFailed: (\d+) cells by (\d+) causes\n(.+?)\n\n", shown, re.DOTALL)
    assert failed is not None
    cells, found, text = failed.groups()
    assert int(cells) > 5 * int(found)
    assert text.count("  ✗ ") == int(found)
    assert text.count("new_h was") == 1
    assert "(float32, bfloat16)" in text, "dtypes in the order of the suite"
    assert "it may follow from wrong values" in " ".join(text.split())
    assert len(shown.splitlines()) < 50


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("make", [one_of_each, lambda: Report.read(WRONG_FUNCTION)], ids=["each", "wrong"])
def test_no_line_is_wider_than_the_terminal(make: Any, width: int) -> None:
    assert max(map(len, printed(make(), width).splitlines())) <= width


def test_the_lines_of_a_reason_stay_whole_in_a_log() -> None:
    reason = f"{WRONG} " + "word " * 60
    lines = printed(of(row("forward-parity", FAIL, reason=f"{reason}\n  - more")), terminal=False).splitlines()
    assert f"    {reason.rstrip()}" in lines
    assert "      - more" in lines


def test_every_verdict_has_its_reason() -> None:
    """Square brackets are markup for rich; in a reason they enclose a scenario."""
    report = of(
        row("forward-parity", FAIL),
        cell(NO_EVIDENCE, dtype="float64"),
        cell(DECLARED, property="layouts"),
        cell(NOT_RUN, dtype="float16"),
        complete=False,
    )
    shown = printed(report, 100)
    assert shown.splitlines()[0] == "Partial: the run did not finish. So far:"
    for line in (
        WRONG,
        "  ? 1 cell: why no-evidence (sizes (float64))",
        "  d 1 cell: why declared (layouts (float32))",
        "  - 1 cell: why not-run (sizes (float16))",
        "This report is partial: the run did not finish.",
    ):
        assert line in shown


def test_several_implementations_are_told_one_by_one() -> None:
    cells = [*of_levels(PASS, PASS, PASS, backend="a").cells, *of_levels(FAIL, backend="b").cells]
    shown = printed(of(*cells, required=SAFE), 100)
    assert "lltm / a on cpu" in shown
    assert "lltm / b on cpu: torch 2.13, a CPU\nWrong: values are wrong in float32 (1 of 1 cells)." in shown
    assert "✗ lltm / b: values: forward-parity (float32)" in shown


def test_many_implementations_have_tables() -> None:
    report = h200()
    shown = printed(report, 140)
    assert shown.startswith("Values and gradients are right, safety holds, and levels pytorch and production hold,")
    assert "conformance of lltm: torch" in shown
    assert "✗ fail 0  ? no-evidence 0  d declared 3  ✓ pass 462  - not-run 75" in shown
    wrong = replace(report, cells=(*report.cells, row("forward-parity", FAIL)))
    assert "lltm / mine: Wrong: values are wrong in float32 (1 of 1 cells)." in printed(wrong, 140)
    record = Report.read(CPU)
    assert len(printed(record, 140).splitlines()) < 60 * len({cell.operator for cell in record.cells})


@pytest.mark.parametrize("options", [{"view": "parity"}, {"table": True}])
def test_a_table_can_be_asked_for(options: dict[str, Any]) -> None:
    shown = printed(one_of_each(), 100, **options)
    assert f"{options.get('view', 'conformance')} of lltm" in shown
    assert re.search(r"│ forward-parity +│ ✗ 1 +│", shown)
    assert ("Wrong: values" in shown) is ("table" in options)


def test_cells_of_no_known_property_are_a_table() -> None:
    """The reports of `fuzz` and `compute-sanitizer`: no level is known for them."""
    shown = printed(of(cell(property="fuzz"), cell(FAIL, property="fuzz", dtype="float64")), 100)
    assert shown.startswith("conformance of lltm")
    assert "✗ production: fuzz (float64)" in shown


ESCAPE = "\x1b]0;stolen\x07\x1b[2J\x9b31m\x00\u202e"


@pytest.mark.parametrize("verdict", [FAIL, NO_EVIDENCE, DECLARED, NOT_RUN])
@pytest.mark.parametrize("backends", [1, 6])
def test_no_text_of_a_report_commands_the_terminal(verdict: str, backends: int) -> None:
    made = [
        cell(
            verdict,
            operator=f"o{ESCAPE}",
            backend=f"b{n}{ESCAPE}",
            dtype=f"d{ESCAPE}",
            reason=f"why{ESCAPE}\nmore{ESCAPE}",
        )
        for n in range(backends)
    ]
    shown = printed(of(*made, row(f"[/]{ESCAPE}"), row("sizes"), cpu=f"cpu{ESCAPE}", complete=False), 200, table=True)
    assert not [letter for letter in shown if (ord(letter) < 32 and letter != "\n") or 0x7F <= ord(letter) <= 0x9F]
    assert "\u202e" not in shown
    assert "\\x1b[2J" in shown, "it is shown as text"


def test_a_huge_reason_is_cut() -> None:
    shown = printed(of(row("forward-parity", FAIL, reason="x" * 10**7), cell(NOT_RUN, reason="y" * 10**7)))
    assert len(shown) < 10_000
    assert "more characters)" in shown


def test_show_draws_the_table_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for options, there in (([], False), (["--table"], True)):
        monkeypatch.setattr(sys, "argv", ["harness", "show", str(WRONG_FUNCTION), *options])
        main()
        shown = capsys.readouterr().out
        assert "Wrong: values are wrong in float32 and bfloat16 (" in shown
        assert ("conformance of lltm" in shown) is there
