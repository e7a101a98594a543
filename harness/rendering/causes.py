"""Failures grouped by cause: one bug fails many properties in many dtypes, and a reader needs it once.

A cell in which a tensor is wrong belongs to the cause of the first cell in which it is wrong in the same dtype. Cells
in which forward or backward raised the same error have one cause, whatever their properties called it for. The figures
of a cell name the tensor and the error. Others have the same cause if they are of one property and the first lines of
their reasons are equal but for numbers and the call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.rendering import facts
from harness.report import figures
from harness.report.cell import FAIL, Cell
from harness.report.levels import GRADIENTS, LEVELS, VALUES, counted
from harness.report.suite import Suite

#: The part of a first line that is looked at: a candidate may have written megabytes.
_LOOKED_AT = 2_000
#: As much of an error as tells it from others: PyTorch's may list all backends.
_ERROR = 200


@dataclass(frozen=True)
class Cause:
    """Failed cells of one implementation for one reason. `level` is that of the first, whose reason says it best.

    `follows` is the level whose failure probably explains all of these cells, or "".
    """

    level: str
    follows: str
    cells: tuple[Cell, ...]

    def names(self, axis: str) -> list[str]:
        """The properties, dtypes, ... of its cells."""
        return list(dict.fromkeys(str(getattr(cell, axis)) for cell in self.cells))


@dataclass(frozen=True)
class Roots:
    """For the first two levels, the devices and dtypes in which they fail; and the errors raised for values there."""

    wrong: dict[str, set[tuple[str, str]]]
    errors: set[tuple[str, str, str]]


def roots(cells: Iterable[Cell], suite: Suite) -> Roots:
    """Where values and gradients of these cells, all of one implementation, are wrong."""
    found = Roots({VALUES: set(), GRADIENTS: set()}, set())
    for level, verdict, cell in counted(cells, suite):
        if verdict == FAIL and level in found.wrong:
            found.wrong[level].add((cell.device, cell.dtype))
            if level == VALUES and raised(cell):
                found.errors.add((cell.device, cell.dtype, raised(cell)))
    return found


def follows(level: str, cell: Cell, known: Roots) -> str:
    """The level whose failure probably explains that this cell failed at `level`, or "".

    Where values are wrong, so are gradients, and whatever compares values, or raises the same error; where gradients
    are wrong, whatever compares gradients.
    """
    place, tensor = (cell.device, cell.dtype), figures.wrong_tensor(cell)
    same = tensor or (*place, raised(cell)) in known.errors
    if level != VALUES and place in known.wrong[VALUES] and (level == GRADIENTS or same):
        return VALUES
    if level not in (VALUES, GRADIENTS) and place in known.wrong[GRADIENTS] and tensor.startswith("gradient"):
        return GRADIENTS
    return ""


def causes(cells: Iterable[Cell], suite: Suite) -> list[Cause]:
    """The causes of all failed cells, the first level first."""
    own: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        own.setdefault((cell.operator, cell.backend), []).append(cell)
    found = [cause for some in own.values() for cause in _of_one(some, suite)]
    return sorted(found, key=lambda cause: LEVELS.index(cause.level))


def _of_one(cells: list[Cell], suite: Suite) -> list[Cause]:
    known = roots(cells, suite)
    at = {cell.key: level for level, verdict, cell in counted(cells, suite) if verdict == FAIL}
    groups: dict[tuple[str, ...], list[Cell]] = {}
    tensors: dict[tuple[str, str, str], tuple[str, ...]] = {}
    errors: dict[tuple[str, str], tuple[str, ...]] = {}
    dtypes = suite.ordered("dtype", (cell.dtype for cell in cells))
    order = sorted(facts.failures(cells), key=lambda cell: (LEVELS.index(at[cell.key]), dtypes.index(cell.dtype)))
    for cell in order:
        level, tensor = at[cell.key], figures.wrong_tensor(cell)
        where = (tensor, cell.device, cell.dtype)
        key = tensors.get(where, ()) if tensor else errors.get((cell.device, raised(cell)), ())
        key = key or (level, "" if tensor or raised(cell) else cell.property, _essence(cell))
        if tensor and level in (VALUES, GRADIENTS):
            tensors.setdefault(where, key)
        if raised(cell):
            errors.setdefault((cell.device, raised(cell)), key)
        groups.setdefault(key, []).append(cell)
    return [
        Cause(key[0], _common(follows(at[cell.key], cell, known) for cell in some), tuple(some))
        for key, some in groups.items()
    ]


def _common(names: Iterable[str]) -> str:
    found = set(names)
    return found.pop() if len(found) == 1 else ""


def error(cell: Cell) -> str:
    """What forward or backward raised, `forward raised ValueError: ...`, or ""."""
    return figures.raised(cell)[:_ERROR]


def raised(cell: Cell) -> str:
    """The error without numbers, by which it is compared with others."""
    return _without_numbers(error(cell))


def _essence(cell: Cell) -> str:
    """What cells of one cause have in common: the tensor, the error, or the first line without numbers and call."""
    line = cell.reason[:_LOOKED_AT].split("\n", 1)[0]
    text = line.partition(" [")[0] if line.endswith("]") else line
    return figures.wrong_tensor(cell) or raised(cell) or _without_numbers(text)


def _without_numbers(text: str) -> str:
    return " ".join(word for word in text.split() if not any(map(str.isdigit, word)))
