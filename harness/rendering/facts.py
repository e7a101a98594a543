"""What every rendering says of a report: its outcome in a sentence, how much of an allowance was used, what is missing.

A report is as much about what was not tested as about what was. Three kinds of it are told apart: cells that came to
no test (`declared`, `not-run`, `no-evidence`), each with its reason; places that have no cell though others like them
do; and what the suite knows but nobody asked for in this run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from backends.base import DEVICES
from harness import discovery
from harness.errors import HarnessError
from harness.judge import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.options import DTYPE_NAMES
from harness.properties import all_properties
from harness.report import Report

#: The five parts of a cell's name, in the order of its deep link.
AXES = ("operator", "backend", "device", "dtype", "property")
UNTESTED = (NO_EVIDENCE, DECLARED, NOT_RUN)
_WORDS = {FAIL: "failed", NO_EVIDENCE: "no evidence", DECLARED: "declared", PASS: "hold", NOT_RUN: "not run"}
#: How a failure tells its numbers, see `harness.parity` and `harness.properties`.
_BEYOND = re.compile(r"(?:error|difference) ([-+.\de]+|inf|nan), allowed ([-+.\de]+)")
#: Backends whose names fit into a line.
_NAMED = 12
_AFTER = re.compile(r"^(?P<state>.+) after (?P<steps>\d+)$")


@dataclass(frozen=True)
class Gap:
    """Cells that share the reason for which they were not tested; where `form` is not "", only in that form of the
    operator, and the cells pass in others."""

    verdict: str
    reason: str
    cells: tuple[Cell, ...]
    form: str = ""

    def names(self, axis: str) -> list[str]:
        """The operators, backends, ... that it is about."""
        return list(dict.fromkeys(str(getattr(cell, axis)) for cell in self.cells))


def outcome(report: Report) -> tuple[str, str]:
    """(the verdict that stands for the run, a sentence). Nothing but passes and declared cells makes a pass."""
    counts = {verdict: report.count(verdict) for verdict in _WORDS}
    tested = counts[PASS] + counts[FAIL]
    if counts[FAIL]:
        return FAIL, f"{counts[FAIL]} of {tested} tested cells failed"
    if not report.complete:
        return NO_EVIDENCE, report.why_partial()
    if counts[NO_EVIDENCE]:
        return NO_EVIDENCE, f"{counts[NO_EVIDENCE]} cells could not tell right from wrong"
    if not tested:
        return NOT_RUN, "nothing was tested"
    return PASS, f"all {tested} tested cells hold"


def counted(report: Report) -> str:
    """`18 failed, 5 hold, 4 not run`."""
    return ", ".join(f"{report.count(verdict)} {word}" for verdict, word in _WORDS.items() if report.count(verdict))


def judged(cells: Sequence[Cell]) -> str:
    """Who was judged, by name: `aten-cpp, my_lltm`; "" without cells."""
    names = axis(cells, "backend")
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def place(report: Report) -> str:
    """The machine and the software, in a line."""
    machine = report.environment
    return f"{machine['gpu'] or machine['cpu']}, torch {machine['torch']}, Python {machine['python']}"


def commit(report: Report) -> str:
    """The commit of the suite, and whether its files were those of the commit."""
    name = report.environment["commit"]
    if name is None:
        return "unknown commit"
    state = report.environment.get("dirty")
    return f"{name.split()[-1][:12]}" + {True: ", with local changes", None: ", perhaps with local changes"}.get(
        state, ""
    )


def used(cell: Cell) -> float | None:
    """The error of a cell in units of its allowance: 1 is all of it. None where nothing was measured so."""
    worst = cell.figures.get("worst")
    if isinstance(worst, dict):
        return _positive(_number(worst.get("used")))
    shares = [share for _, _, share in drift(cell)]
    if shares:
        return max(shares)
    found = _BEYOND.search(cell.reason) if cell.verdict == FAIL else None
    if found is None:
        return None
    error, allowed = _number(found[1]), _number(found[2])
    return _positive(error / allowed) if allowed else None


def share_words(share: float) -> str:
    """`44%`, and for what is beyond, `342 times`."""
    return f"{100 * share:.0f}%" if share < 9.995 else f"{share:.3g} times"


def drift(cell: Cell) -> list[tuple[str, int, float]]:
    """(state, steps, error in units of the allowance) of a recurrence, in every form of the operator."""
    forms = cell.figures.get("forms")
    found = _drift(cell.figures, "")
    for form, figures in forms.items() if isinstance(forms, dict) else ():
        found += _drift(figures, f"{form} ") if isinstance(figures, dict) else []
    return sorted(found, key=lambda point: (point[0], point[1]))


def _drift(figures: dict[str, Any], prefix: str) -> list[tuple[str, int, float]]:
    found = []
    for name, value in figures.items():
        match = _AFTER.match(name)
        if match and isinstance(value, dict):
            error, allowed = _number(value.get("error")), _number(value.get("allowed"))
            if allowed > 0 and error >= 0:
                found.append((prefix + match["state"], int(match["steps"]), error / allowed))
    return found


def ulps(cell: Cell) -> dict[str, list[int]]:
    """The counts of `harness.ulps.histogram` of outputs and of gradients, over all forms of the operator."""
    forms = cell.figures.get("forms")
    found: dict[str, list[int]] = {}
    for figures in (cell.figures, *(forms.values() if isinstance(forms, dict) else ())):
        counted = figures.get("ulps") if isinstance(figures, dict) else None
        for kind, counts in counted.items() if isinstance(counted, dict) else ():
            there = found.get(kind, [0] * len(counts))
            found[kind] = [one + other for one, other in zip(there, counts, strict=True)]
    return found


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def _positive(value: float) -> float | None:
    return value if value >= 0 else None


def failures(cells: Iterable[Cell]) -> list[Cell]:
    """Failed cells, those first that can be run again alone, and plain disagreement before all else."""
    plain = ("forward-parity", "vjp-parity")

    def rank(cell: Cell) -> tuple[bool, int, tuple[str, ...]]:
        first = plain.index(cell.property) if cell.property in plain else len(plain)
        return "reproducer" not in cell.figures, first, cell.key

    return sorted((cell for cell in cells if cell.verdict == FAIL), key=rank)


def unasked(cell: Cell) -> dict[str, str]:
    """Forms of the operator in which a cell that passes was not asked, with the reasons."""
    found = cell.figures.get("not asked of")
    return {str(form): str(why) for form, why in found.items()} if isinstance(found, dict) else {}


def gaps(cells: Iterable[Cell]) -> list[Gap]:
    """What came to no test, grouped by verdict, form and reason."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.verdict in UNTESTED:
            found.setdefault((cell.verdict, "", cell.reason), []).append(cell)
        for form, why in unasked(cell).items():
            found.setdefault((NOT_RUN, form, why), []).append(cell)
    ordered = sorted(found.items(), key=lambda item: (UNTESTED.index(item[0][0]), bool(item[0][1]), -len(item[1])))
    return [Gap(verdict, reason, tuple(which), form) for (verdict, form, reason), which in ordered]


def axis(cells: Iterable[Cell], name: str) -> list[str]:
    """The operators, backends, ... of the cells; those that the suite knows in the suite's order."""
    there = {str(getattr(cell, name)) for cell in cells}
    first = [value for value in known(name) if value in there]
    return first + sorted(there.difference(first))


def never_asked(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """What this suite knows and the report has no cell of, by axis."""
    found = {}
    for name in AXES:
        there = {getattr(cell, name) for cell in cells}
        missing = [value for value in known(name) if value not in there]
        if missing:
            found[name] = missing
    return found


def holes(cells: Sequence[Cell]) -> int:
    """How many combinations of what the report names have no cell."""
    places = {cell.key[:4] for cell in cells}
    properties = {(cell.operator, cell.property) for cell in cells}
    expected = sum(operator == where[0] for where, (operator, _) in product(places, properties))
    return expected - len(cells)


def known(name: str) -> list[str]:
    """The operators, backends, ... of this suite, in its order; none where something of it is broken."""
    try:
        return list(_of_the_suite(name))
    except HarnessError:  # something beside the report, which is no concern of the report's
        return []


def _of_the_suite(name: str) -> Iterable[str]:
    match name:
        case "operator":
            return discovery.operators()
        case "backend":
            return discovery.all_backends()
        case "device":
            return DEVICES
        case "dtype":
            return DTYPE_NAMES
    return all_properties()


def claims() -> dict[str, str]:
    """What each property of this suite says of an implementation."""
    return {name: found.claim for name, found in all_properties().items()}
