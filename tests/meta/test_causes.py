"""Failures grouped by cause: what is put together, what is kept apart, and what follows from what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.rendering.causes import causes
from harness.report import figures
from harness.report.cell import FAIL, Cell
from harness.report.levels import GRADIENTS, SAFE, VALUES
from harness.report.report import Report
from tests.meta.reports import RESULTS, SUITE, WRONG, WRONG_GRADIENT, cell, row


def grouped(*cells: Cell) -> list[tuple[str, str, list[str], list[str]]]:
    """(level, level that it follows, properties, dtypes) of each cause."""
    found = causes(cells, SUITE)
    return [(one.level, one.follows, one.names("property"), one.names("dtype")) for one in found]


def test_one_wrong_output_is_one_cause() -> None:
    numbers = WRONG.replace("0.5", "0.25").replace("(0, 2)", "(1, 1)")
    cells = (
        row("layouts", FAIL),
        row("memory", FAIL, reason=f"the second call: {WRONG}"),
        row("forward-parity", FAIL),
        row("forward-parity", FAIL, "float64", numbers),
    )
    ((level, follows, properties, dtypes),) = grouped(*cells)
    assert (level, follows, dtypes) == (VALUES, "", ["float32", "float64"])
    assert properties == ["forward-parity", "layouts", "memory"], "the plain one first: its reason is shown"


def test_what_the_text_tells_apart_is_kept_apart() -> None:
    other = "new_c was 1 at (0, 2), but should be 2 (rms error 0.5, allowed 0.001)"
    cells = (row("forward-parity", FAIL), row("sizes", FAIL, reason=other), row("forward-parity", FAIL, backend="b"))
    assert [found[2] for found in grouped(*cells)] == [["forward-parity"], ["sizes"], ["forward-parity"]]


def test_reasons_without_a_tensor_are_equal_but_for_numbers_and_the_call() -> None:
    cells = [
        row("memory", FAIL, dtype, f"{size} bytes are kept [lltm({dtype})]")
        for dtype, size in (("float32", 8), ("float64", 1.6e1))
    ]
    assert grouped(*cells) == [(SAFE, "", ["memory"], ["float32", "float64"])]
    cells.append(row("determinism", FAIL, reason="8 bytes are kept"))
    assert len(grouped(*cells)) == 2, "another property may have another cause"


def test_what_probably_follows_says_so() -> None:
    cells = (
        row("forward-parity", FAIL),
        row("vjp-parity", FAIL, reason=WRONG_GRADIENT),
        row("memory", FAIL, reason=f"again: {WRONG_GRADIENT}"),
        row("determinism", FAIL, reason="other bits"),
    )
    assert grouped(*cells) == [
        (VALUES, "", ["forward-parity"], ["float32"]),
        (GRADIENTS, VALUES, ["vjp-parity", "memory"], ["float32"]),
        (SAFE, "", ["determinism"], ["float32"]),
    ]
    alone = row("vjp-parity", FAIL, "float16", WRONG_GRADIENT)
    assert grouped(*cells, alone)[1][:2] == (GRADIENTS, ""), "values are right in float16"


def test_a_cell_counts_where_it_failed() -> None:
    assert grouped(replace(row("sizes", FAIL, reason=WRONG_GRADIENT), level=GRADIENTS))[0][0] == GRADIENTS


@pytest.mark.parametrize(
    ("found", "tensor"),
    [
        ({"tensor": "new_h"}, "new_h"),
        ({"worst": {"tensor": "gradient of input", "used": 3.0}}, "gradient of input"),
        ({}, ""),
        ({"tensor": 3}, ""),
        ({"worst": ["new_h"]}, ""),
    ],
)
def test_the_tensor_of_a_failure(found: dict[str, Any], tensor: str) -> None:
    """A candidate may have chosen what the figures are."""
    assert figures.wrong_tensor(cell(FAIL, figures=found)) == tensor
    assert figures.wrong_tensor(cell(figures=found)) == ""


def test_the_recorded_wrong_function_has_few_causes() -> None:
    report = Report.read(RESULTS / "cpu" / "wrong-function.json")
    found = causes(report.cells, report.suite)
    assert len(found) < report.count(FAIL) / 4
    assert sum(len(one.cells) for one in found) == report.count(FAIL)
    assert found[0].cells[0].key[3:] == ("float32", "forward-parity"), "its reason is the one to read"
    assert all(one.follows for one in found[1:] if one.level in (GRADIENTS, SAFE))


def test_an_error_that_all_calls_raise_is_one_cause_whatever_they_were_for() -> None:
    raised = "forward raised ValueError: 3 is too many; it should return (new_h,) [lltm(small: batch=3)]"
    cells = [
        row(name, FAIL, dtype, raised) for name in ("forward-parity", "memory") for dtype in ("float32", "float64")
    ]
    cells.append(row("vjp-parity", FAIL, reason=raised.replace("3", "4")))
    assert grouped(*cells) == [(VALUES, "", ["forward-parity", "vjp-parity", "memory"], ["float32", "float64"])]
    cells.append(row("opcheck", FAIL, reason=raised.replace("too many", "too few")))
    assert len(grouped(*cells)) == 2, "another error"
