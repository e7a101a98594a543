"""One row of a report, and the five verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

PASS, FAIL, DECLARED, NO_EVIDENCE, NOT_RUN = VERDICTS = ("pass", "fail", "declared", "no-evidence", "not-run")

#: The verdict of several cells is the first of these that occurs among them.
WORST_FIRST = (FAIL, NO_EVIDENCE, DECLARED, PASS, NOT_RUN)

#: The verdicts of cells that were not tested.
UNTESTED = (NO_EVIDENCE, DECLARED, NOT_RUN)

#: The five parts of a cell's name, in the order of its deep link.
AXES = ("operator", "backend", "device", "dtype", "property")


#: The figure of a cell whose judging something other than the suite ended, pytest's own time limit for example. The
#: cell has no evidence, and its report is not complete: the question is still open.
CUT_OFF = "cut off"

#: The figure of a cell that fails because its backend declares that the property does not hold, and it does.
NEEDLESS = "declared, but it holds"


@dataclass(frozen=True)
class Cell:
    """One row of the report: the verdict on one property of one implementation on one device in one dtype.

    `level` is the level at which a failed cell failed, if that is not the level of its property: see `report.levels`.

    Raises ValueError for an unknown verdict, and for a verdict other than `pass` without a reason.
    """

    operator: str
    backend: str
    device: str
    dtype: str
    property: str
    verdict: str
    reason: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    level: str = ""

    @cached_property
    def key(self) -> tuple[str, ...]:
        """(operator, backend, device, dtype, property): no two cells of a report have the same."""
        return (self.operator, self.backend, self.device, self.dtype, self.property)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict was {self.verdict!r}, but should be one of {', '.join(VERDICTS)}")
        if self.verdict != PASS and not self.reason:
            raise ValueError(f"a cell with the verdict {self.verdict!r} needs a reason")
