"""Outputs and gradients are right at every size of the contract: empty, single, tails of vectors, many rows.

Cases for blocks and grids of threads are among the largest and take half the time. The CPU has neither: there, cases
around a block are left out, and those beyond a grid are run in float32 only. The figures name them.
"""

from __future__ import annotations

from typing import Any

import torch

from backends.base import CPU
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import of_sizes, tagged
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES


def check(subject: Subject) -> dict[str, Any]:
    """Outputs and gradients of every size."""
    left_out = _left_out(subject)
    figures = Tally(subject).run_all(foreseen(subject))
    return {**figures, "left_out": left_out} if left_out else figures


def foreseen(subject: Subject) -> list[Scenario]:
    """Every size that is asked."""
    left_out = _left_out(subject)
    return [scenario for scenario in of_sizes(subject.operator) if scenario.name not in left_out]


def _left_out(subject: Subject) -> list[str]:
    for_threads = ["block", *(["grid"] if subject.dtype != torch.float32 else [])] if subject.device == CPU else []
    return sorted(case.name for tag in for_threads for case in tagged(subject.operator, tag))


PROPERTY = Property(
    "sizes",
    "right at batch 0, 1, 70000, features 0, and tails of 4, 32, 256, 1024",
    check,
    level=VALUES,
    outside=True,
    foreseen=foreseen,
)
