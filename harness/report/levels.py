"""The five levels of a verdict: what holds at each, and the sentence that says it.

A property belongs to one level. A cell counts at the level of its property, with one exception: a property of the
first level may fail because of a gradient, while all outputs are right. Such a cell says so in `level`; it counts as a
pass at the first level, and as a failure at the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.suite import Suite

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
    levels = {known.name: known.level for known in suite.properties}
    verdicts: dict[str, list[str]] = {level: [] for level in LEVELS}
    for cell in cells:
        own = levels.get(cell.property, PRODUCTION)
        if cell.verdict == FAIL and cell.level and cell.level != own:
            verdicts[own].append(PASS)
            verdicts[cell.level].append(FAIL)
        else:
            verdicts[own].append(cell.verdict)
    return [_standing(level, found) for level, found in verdicts.items()]


def _standing(level: str, verdicts: Sequence[str]) -> Standing:
    tested = [verdict for verdict in verdicts if verdict != NOT_RUN]
    verdict = next((each for each in _ORDER if each in tested), NOT_RUN)
    return Standing(level, verdict, tested.count(PASS), len(tested))


def required(level: str) -> tuple[str, ...]:
    """This level and all before it."""
    return LEVELS[: LEVELS.index(level) + 1]
