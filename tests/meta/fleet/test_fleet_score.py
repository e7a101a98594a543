"""The score of a report: from 0 to 1, monotone, and not to be raised by declaring or leaving out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.fleet import score
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import GRADIENTS, LEVELS, VALUES
from harness.report.report import Report
from harness.report.suite import KnownProperty, Suite

SUITE = Suite(properties=tuple(KnownProperty(level, "", level=level) for level in LEVELS))
OF_SOURCE = replace(SUITE, properties=(*SUITE.properties, KnownProperty("harvested-sizes", "", level=VALUES)))


def _cell(property: str, verdict: str, dtype: str = "float32", level: str = "") -> Cell:
    return Cell("op", "f", "cpu", dtype, property, verdict, "" if verdict == PASS else "why", level=level)


def _score(*cells: Cell, complete: bool = True) -> float:
    return score(replace(Report.of(cells, {}, OF_SOURCE), complete=complete))


def _of_levels(*verdicts: str) -> float:
    return _score(*(_cell(level, verdict) for level, verdict in zip(LEVELS, verdicts, strict=False)))


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((PASS,) * 5, 1.0),
        ((FAIL,) * 5, 0.0),
        # The cell of values is asked at gradients too: half of them hold if its own cell fails.
        ((PASS, FAIL), (16 + 8 / 2) / 24),
        ((PASS, PASS, FAIL), 24 / 28),
        ((PASS, PASS, FAIL, PASS, PASS), 24 / 31),
        ((FAIL, PASS, PASS, PASS, PASS), 0.0),
        ((PASS,), 1.0),
        ((), 0.0),
    ],
)
def test_the_formula(verdicts: tuple[str, ...], expected: float) -> None:
    assert _of_levels(*verdicts) == pytest.approx(expected, abs=1e-6)


def test_values_may_be_right_where_gradients_are_wrong() -> None:
    assert _score(_cell(VALUES, FAIL, level=GRADIENTS)) == pytest.approx(16 / 24, abs=1e-6)
    assert _score(_cell(VALUES, FAIL)) == 0.0


def test_a_level_outweighs_all_later_ones() -> None:
    assert _of_levels(PASS, PASS, FAIL, FAIL, FAIL) > _score(_cell(VALUES, FAIL, level=GRADIENTS), _cell("safe", PASS))


_STATES = st.sampled_from([(PASS, ""), (FAIL, ""), (FAIL, GRADIENTS), (DECLARED, ""), (NO_EVIDENCE, ""), (NOT_RUN, "")])
_CELLS = st.lists(st.tuples(st.sampled_from([*LEVELS, "harvested-sizes"]), _STATES), min_size=1, max_size=8)


def _drawn(rows: list[tuple[str, tuple[str, str]]]) -> list[Cell]:
    return [
        _cell(property, verdict, f"type{number}", level if property == VALUES else "")
        for number, (property, (verdict, level)) in enumerate(rows)
    ]


def _asked(rows: list[tuple[str, tuple[str, str]]]) -> list[Cell]:
    return _drawn([row for row in rows if row[1][0] != NOT_RUN] or [(VALUES, (FAIL, ""))])


@given(_CELLS, st.data())
def test_it_does_not_fall_if_one_more_cell_passes(rows: list[tuple[str, tuple[str, str]]], data: st.DataObject) -> None:
    """Of those that were asked: a level of which nothing ran has no weight, and gets its own with its first cell."""
    cells = _asked(rows)
    chosen = data.draw(st.integers(0, len(cells) - 1))
    better = [replace(cell, verdict=PASS, reason="", level="") if n == chosen else cell for n, cell in enumerate(cells)]
    assert 0 <= _score(*cells) <= _score(*better) <= 1


@given(_CELLS, st.data())
def test_declaring_does_not_raise_it(rows: list[tuple[str, tuple[str, str]]], data: st.DataObject) -> None:
    cells = _asked(rows)
    chosen = data.draw(st.integers(0, len(cells) - 1))
    for verdict in (DECLARED, NO_EVIDENCE):
        changed = [
            replace(c, verdict=verdict, reason="why", level="") if n == chosen else c for n, c in enumerate(cells)
        ]
        assert _score(*changed) <= _score(*cells)


@given(_CELLS)
def test_leaving_out_does_not_raise_it(rows: list[tuple[str, tuple[str, str]]]) -> None:
    cells = _drawn(rows)
    asked = _score(*cells, _cell("harvested-sizes", FAIL))
    assert _score(*cells, _cell("harvested-sizes", NOT_RUN)) == asked
    assert _score(*cells, complete=False) == 0.0
    assert _score(*cells, _cell("imports", FAIL)) == 0.0


def test_what_the_machine_lacks_is_not_asked() -> None:
    assert _score(_cell(VALUES, PASS), _cell("production", NOT_RUN)) == 1.0
    assert _score(_cell(VALUES, NOT_RUN)) == 0.0
