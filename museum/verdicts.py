"""What a report says about an entry: whether this defect was found, and whether the repaired release is free of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.cell import FAIL, PASS, Cell
from museum.entries import CAUGHT, MISSED, Entry

#: Of the release with the defect, besides `caught` and `missed`.
OTHER_REASON = "other reason"
#: Of the repaired release.
PASSES, FAILS = "passes", "fails"
#: Of both.
NOT_JUDGED, NOT_INSTALLED, NOT_ASKED = "not judged", "not installed", "not asked"


@dataclass(frozen=True)
class Finding:
    """What was found of one release: an outcome of this module, and a sentence about it."""

    outcome: str
    detail: str = ""


def of_broken(entry: Entry, cells: Sequence[Cell]) -> Finding:
    """`caught` if every property of the entry fails, each for the entry's reason.

    `missed` if every one passes. A property that fails for another reason, or that only some of them find, is `other
    reason`: the adapter or the entry is wrong then. A property without a verdict is `not judged`.
    """
    judged = {cell.property: cell for cell in cells}
    silent = _silent(entry, judged)
    if silent:
        return Finding(NOT_JUDGED, silent)
    reasons = {name: _first_line(judged[name]) for name in entry.judged_by}
    if all(judged[name].verdict == PASS for name in entry.judged_by):
        return Finding(MISSED, f"{', '.join(entry.judged_by)} passed")
    for name, pattern in entry.judged_by.items():
        if judged[name].verdict == PASS:
            return Finding(OTHER_REASON, f"{name} passed, but another property of the entry failed")
        if not re.search(pattern, reasons[name]):
            return Finding(OTHER_REASON, f"{name}: {reasons[name]}")
    first = next(iter(entry.judged_by))
    return Finding(CAUGHT, f"{first}: {reasons[first]}")


def of_fixed(entry: Entry, cells: Sequence[Cell]) -> Finding:
    """`passes` if every property of the entry passes; `fails` if one fails; else `not judged`."""
    judged = {cell.property: cell for cell in cells}
    for name in entry.judged_by:
        if name in judged and judged[name].verdict == FAIL:
            return Finding(FAILS, f"{name}: {_first_line(judged[name])}")
    silent = _silent(entry, judged)
    return Finding(NOT_JUDGED, silent) if silent else Finding(PASSES)


def holds(entry: Entry, broken: Finding, fixed: Finding) -> bool:
    """Whether both releases behave as the entry says. A release that was not judged does not."""
    return broken.outcome == entry.expected and fixed.outcome == (PASSES if entry.fixed else NOT_ASKED)


def sentence(entry: Entry, broken: Finding, fixed: Finding) -> str:
    """The result of an entry in one sentence."""
    said = {
        CAUGHT: f"{entry.package} {entry.broken} is caught ({broken.detail})",
        MISSED: f"{entry.package} {entry.broken} is missed ({broken.detail})",
        OTHER_REASON: f"{entry.package} {entry.broken} fails, but not for this defect ({broken.detail})",
    }
    first = said.get(broken.outcome, f"{entry.package} {entry.broken} was {broken.outcome} ({broken.detail})")
    if fixed.outcome == NOT_ASKED:
        return f"{first}; no release repairs it"
    detail = f" ({fixed.detail})" if fixed.detail else ""
    word = fixed.outcome if fixed.outcome in (PASSES, FAILS) else f"was {fixed.outcome}"
    return f"{first}; {entry.fixed} {word}{detail}"


def _silent(entry: Entry, judged: dict[str, Cell]) -> str:
    """Why a property of the entry says nothing; empty if each passed or failed."""
    for name in entry.judged_by:
        if name not in judged:
            return f"{name} has no cell in the report"
        if judged[name].verdict not in (PASS, FAIL):
            return f"{name} is {judged[name].verdict}: {_first_line(judged[name])}"
    return ""


def _first_line(cell: Cell) -> str:
    return cell.reason.splitlines()[0] if cell.reason else ""
