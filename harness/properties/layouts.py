"""Outputs and gradients do not depend on how inputs and cotangents lie in memory."""

from __future__ import annotations

from typing import Any

from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import of_layouts
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES


def check(subject: Subject) -> dict[str, Any]:
    """Each layout of each input and cotangent, one at a time; then all at once. NaN lies between the values."""
    return Tally(subject).run_all(foreseen(subject))


def foreseen(subject: Subject) -> list[Scenario]:
    """Every layout that is asked."""
    return of_layouts(subject.operator)


PROPERTY = Property(
    "layouts",
    "right for transposed, sliced, expanded and offset tensors",
    check,
    level=VALUES,
    outside=True,
    foreseen=foreseen,
)
