"""The figures of a cell. They are read with care: a candidate may have chosen their names and values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.report.cell import FAIL, Cell


@dataclass(frozen=True)
class Unreached:
    """A statement that no call reached; with `always`, a condition that was true in every call."""

    file: str
    line: int
    text: str
    always: bool


def unreached(cell: Cell) -> list[Unreached]:
    """What no call of the cell reached, in no form of the operator."""
    forms = cell.figures.get("forms")
    judged = [figures for figures in (forms.values() if isinstance(forms, dict) else ()) if isinstance(figures, dict)]
    found = [_unreached(figures) for figures in judged or (cell.figures,)]
    return [line for line in found[0] if all(line in other for other in found)] if found else []


def _unreached(figures: dict[str, Any]) -> list[Unreached]:
    listed = figures.get("unreached")
    found = []
    for line in listed if isinstance(listed, list) else ():
        if isinstance(line, dict) and isinstance(line.get("line"), int):
            file, text = str(line.get("file")), str(line.get("text"))
            found.append(Unreached(file, line["line"], text, line.get("always") is True))
    return found


def used(cell: Cell) -> float | None:
    """The error of a cell in units of its allowance: 1 is all of it. None where no such error was measured."""
    worst = cell.figures.get("worst")
    if isinstance(worst, dict):
        return _positive(_number(worst.get("used")))
    return max((share for _, _, share in drift(cell)), default=None)


def wrong_tensor(cell: Cell) -> str:
    """What was not as it should be: `new_h`, `gradient of input`, `dtype of new_h`; or ""."""
    worst = cell.figures.get("worst")
    found = cell.figures.get("tensor") or (worst.get("tensor") if isinstance(worst, dict) else "")
    return found if isinstance(found, str) and cell.verdict == FAIL else ""


def raised(cell: Cell) -> str:
    """What forward or backward raised, `forward raised ValueError: ...`, or ""."""
    found = cell.figures.get("raised")
    return found if isinstance(found, str) and cell.verdict == FAIL else ""


def drift(cell: Cell) -> list[tuple[str, int, float]]:
    """(state, steps, error in units of the allowance) of a recurrence, in every form of the operator."""
    forms = cell.figures.get("forms")
    found = _drift(cell.figures, "")
    for form, figures in forms.items() if isinstance(forms, dict) else ():
        found += _drift(figures, f"{form} ") if isinstance(figures, dict) else []
    return sorted(found, key=lambda point: (point[0], point[1]))


def _drift(figures: dict[str, Any], prefix: str) -> list[tuple[str, int, float]]:
    found = []
    points = figures.get("drift")
    for point in points if isinstance(points, list) else ():
        if not isinstance(point, dict) or not math.isfinite(_number(point.get("steps"))):
            continue
        error, allowed = _number(point.get("error")), _number(point.get("allowed"))
        if allowed > 0 and error >= 0:
            found.append((f"{prefix}{point.get('state')}", int(_number(point.get("steps"))), error / allowed))
    return found


def ulps(cell: Cell) -> dict[str, list[int]]:
    """Elements by their error in units in the last place, of outputs and of gradients, over all forms."""
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
    except OverflowError:  # a whole number beyond all floats
        return math.inf


def _positive(value: float) -> float | None:
    return value if value >= 0 else None


def unasked(cell: Cell) -> dict[str, str]:
    """Forms of the operator that a passing cell did not test, with the reasons."""
    found = cell.figures.get("not asked of")
    return {str(form): str(why) for form, why in found.items()} if isinstance(found, dict) else {}


def totals(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Of figures that properties made, those of parts of a cell: the worst error, and the sums of what is counted."""
    every = list(found)
    made: dict[str, Any] = {}
    worst = [figures["worst"] for figures in every if "worst" in figures]
    if worst:
        made["worst"] = max(worst, key=lambda figure: figure["used"])
    for count in ("scenarios", "beyond_float64", "undecided", "not_taken"):
        counts = [figures[count] for figures in every if count in figures]
        if counts:
            made[count] = sum(counts)
    return made
