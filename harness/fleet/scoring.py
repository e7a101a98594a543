"""One number for a report, for training loops: how much of what was asked holds."""

from __future__ import annotations

from harness.report.cell import FAIL, NOT_RUN, PASS
from harness.report.levels import GRADIENTS, LEVELS, VALUES, level_of
from harness.report.report import Report

#: A level weighs more than all later ones together.
WEIGHTS = dict(zip(LEVELS, (16, 8, 4, 2, 1), strict=True))
#: Properties that are asked only if the candidate's source gives reason to: it has an integer, a line of Python, a
#: registered operator, a compiled part. A candidate could leave that out, so `not-run` counts as not held.
OF_THE_SOURCE = frozenset({"harvested-sizes", "unreached-code", "opcheck", "sanitizers"})
_IMPORTS = "imports"


def score(report: Report) -> float:
    """A number from 0 to 1, from the levels of the report:

        score = sum over levels L of  w(L) * s(L) * product of s(K) over the levels K before L,
                divided by the sum of w(L) over the levels that were asked

    w is 16 for values, 8 for gradients, 4 for safe, 2 for pytorch, 1 for production. s(L) is the share of the cells
    asked at level L that passed. A level without such cells is left out of both sums and of the product. A cell of
    level values is asked at gradients too, because it compares both: it holds at values if outputs are right, and at
    gradients if it passed. So 1 means that every cell that was asked passed, whatever level was required.

    - Monotone: if a cell that was asked passes and did not, and nothing else changes, the score does not fall. If the
      first cell of a level is asked, it may: the weight of the level counts then.
    - It cannot be raised by declaring: a declared cell is asked and did not pass, and no-evidence the same.
    - It cannot be raised by leaving out: a report that is not complete, or whose candidate does not import, scores 0. A
      `not-run` cell is not asked, because the machine or the operator lacks something; but where the candidate's own
      source decides whether there is a question (`OF_THE_SOURCE`), `not-run` is asked and did not pass. A function
      without a registered operator, or whose source has no integer, scores a little below 1 for that reason.

    Scores of two reports are comparable if operator, device, dtypes, properties and suite are the same.
    """
    if not report.complete or any(cell.property == _IMPORTS and cell.verdict == FAIL for cell in report.cells):
        return 0.0
    held: dict[str, list[bool]] = {level: [] for level in LEVELS}
    for cell in report.cells:
        if cell.verdict == NOT_RUN and cell.property not in OF_THE_SOURCE:
            continue
        level = level_of(cell, report.suite)
        if level == VALUES:
            held[GRADIENTS].append(cell.verdict == PASS)
        held[level].append(cell.verdict == PASS or (level == VALUES and cell.level in LEVELS[1:]))
    total, before, weights = 0.0, 1.0, 0
    for level, weight in WEIGHTS.items():
        if held[level]:
            before *= sum(held[level]) / len(held[level])
            total += weight * before
            weights += weight
    return round(total / weights, 6) if weights else 0.0
