"""The five levels of a verdict: what holds at each, the sentence that says it, and what the exit code is made of.

A property belongs to one level. A cell counts at the level of its property, with two exceptions. A property of the
first level may fail because of a gradient, while all outputs are right: it counts as a pass at the first level, and as
a failure at the second. A property may hold that the backend declares not to hold: it counts as a pass at its own
level, and as a failure at the last. Such a cell says so in `level`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.parts import is_part
from harness.report.suite import Suite

if TYPE_CHECKING:
    from harness.report.report import Report

VALUES, GRADIENTS, SAFE, PYTORCH, PRODUCTION = LEVELS = ("values", "gradients", "safe", "pytorch", "production")

#: What is asked at each level, for headings and help.
MEANINGS = {
    VALUES: "outputs are right",
    GRADIENTS: "gradients are right",
    SAFE: "no side effects, no crash, no state between calls",
    PYTORCH: "works with torch.compile, export, func, autocast; refuses wrong calls in clear words",
    PRODUCTION: "works with streams, graphs, several devices and processes",
}

#: The standing of a level is the first of these that occurs among its cells.
_ORDER = (FAIL, NO_EVIDENCE, DECLARED, PASS)


@dataclass(frozen=True)
class Standing:
    """One level of some cells: `passed` of `tested` cells hold. A declared cell is tested and does not hold.

    `verdict` is `fail` if a cell failed, else `no-evidence`, else `declared` if a part is not supported, else `pass`;
    `not-run` if nothing was tested.
    """

    level: str
    verdict: str
    passed: int
    tested: int


def level_of(cell: Cell, suite: Suite) -> str:
    """The level of the cell's property; the last one if the report does not record it."""
    return next((known.level for known in suite.properties if known.name == cell.property), PRODUCTION)


def standings(cells: Iterable[Cell], suite: Suite) -> list[Standing]:
    """Each of the five levels, in order."""
    verdicts: dict[str, list[str]] = {level: [] for level in LEVELS}
    for level, verdict, _ in counted(cells, suite):
        verdicts[level].append(verdict)
    return [_standing(level, found) for level, found in verdicts.items()]


def counted(cells: Iterable[Cell], suite: Suite) -> Iterator[tuple[str, str, Cell]]:
    """(level, verdict, cell): each cell at its level, and twice if it failed at another level than its property's."""
    levels = {known.name: known.level for known in suite.properties}
    for cell in cells:
        own = levels.get(cell.property, PRODUCTION)
        if cell.verdict == FAIL and cell.level and cell.level != own:
            yield own, PASS, cell
            yield cell.level, FAIL, cell
        else:
            yield own, cell.verdict, cell


def _standing(level: str, verdicts: Sequence[str]) -> Standing:
    tested = [verdict for verdict in verdicts if verdict != NOT_RUN]
    verdict = next((each for each in _ORDER if each in tested), NOT_RUN)
    return Standing(level, verdict, tested.count(PASS), len(tested))


def required(level: str) -> tuple[str, ...]:
    """This level and all before it."""
    return LEVELS[: LEVELS.index(level) + 1]


def is_required(level: str, of: str) -> bool:
    """Whether `level` is required where `of` is the last required one."""
    return LEVELS.index(level) <= LEVELS.index(of)


def in_words(level: str) -> str:
    """`values to safe`: the levels that are required up to this one."""
    return level if level == LEVELS[0] else f"{LEVELS[0]} to {level}"


def exit_reason(report: Report, part: bool = False) -> str:
    """Why the exit code is not 0, as a sentence; empty if the run is green.

    A run is green if its report is complete, at least one cell of the required levels passed, and none of them failed,
    lacks evidence, or is declared by a candidate. Backends of the suite may declare, with a reason, what they do not
    support: their declarations are reviewed with them, and are checked to fail. A candidate's are its own word.

    With `part`, the report is one of several shards: the others may be missing, it need not have a pass of its own, and
    cells that are shared out to the shards need not be decided.
    """
    level = f"the required levels ({in_words(report.required)})"
    by_verdict: dict[str, list[Cell]] = {}
    for at, verdict, cell in counted(report.cells, report.suite):
        if is_required(at, report.required) and not (part and is_part(cell)):
            by_verdict.setdefault(verdict, []).append(cell)
    declared = [cell for cell in by_verdict.get(DECLARED, []) if cell.backend not in report.suite.backends]
    if FAIL in by_verdict:
        return f"{_cells(by_verdict[FAIL])} of {level} failed: {_named(by_verdict[FAIL])}"
    if not report.complete and not (part and report.plan is not None and report.plan.begun == report.plan.finished):
        return report.why_partial()
    if NO_EVIDENCE in by_verdict:
        lacking = by_verdict[NO_EVIDENCE]
        return f"{_cells(lacking)} of {level} could not tell right from wrong: {_named(lacking)}"
    if declared:
        return (
            f"{_named(declared)} {'is' if len(declared) == 1 else 'are'} declared not to hold, but {level} include "
            f"{'it' if len(declared) == 1 else 'them'}: repair the function, or require less with --level"
        )
    return "" if part or PASS in by_verdict else _nothing_passed(report, by_verdict)


def _nothing_passed(report: Report, by_verdict: dict[str, list[Cell]]) -> str:
    """What is there, where no cell of the required levels passed, failed or lacks evidence."""
    left_out = [cell for verdict in (NOT_RUN, DECLARED) for cell in by_verdict.get(verdict, [])]
    if not report.cells:
        return "nothing was judged: no cell was selected"
    if not left_out:
        return (
            f"nothing of the required levels ({in_words(report.required)}) was judged: every cell is of a later level, "
            "which --level can require"
        )
    reason, _ = Counter(cell.reason.splitlines()[0] for cell in left_out).most_common(1)[0]
    verdicts = " or ".join(verdict for verdict in (NOT_RUN, DECLARED) if verdict in by_verdict)
    return f"nothing was judged: {_cells(left_out)} {'is' if len(left_out) == 1 else 'are'} {verdicts} ({reason})"


def _cells(cells: Sequence[Cell]) -> str:
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"


def _named(cells: Sequence[Cell]) -> str:
    """`sizes, layouts of mine`: at most three properties and two backends."""
    return f"{_first(3, (cell.property for cell in cells))} of {_first(2, (cell.backend for cell in cells))}"


def _first(count: int, names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - count} more" if len(found) > count else ""
    return ", ".join(found[:count]) + more
