"""Outputs and gradients are right at every size that the contract names: empty, single, tails of vectors, many rows.

The sizes that are there for a grid of threads are among the largest, and take half of the time. On the CPU, which has
none, they are asked in float32 alone; the figures say which were left out elsewhere.
"""

from __future__ import annotations

from typing import Any

import torch

from backends.base import CPU
from harness.judge import Property
from harness.parity import Tally
from harness.scenarios import of_sizes, tagged
from harness.subject import Subject


def check(subject: Subject) -> dict[str, Any]:
    """Outputs and gradients of every size."""
    without = subject.device == CPU and subject.dtype != torch.float32
    left_out = {case.name for case in tagged(subject.operator, "grid")} if without else set()
    asked = [scenario for scenario in of_sizes(subject.operator) if scenario.name not in left_out]
    figures = Tally(subject).run_all(asked)
    return {**figures, "only_in_float32": sorted(left_out)} if left_out else figures


PROPERTY = Property("sizes", "right at batch 0, 1, 70000, features 0, and tails of 4, 32, 256, 1024", check)
