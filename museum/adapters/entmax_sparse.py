"""entmax's two ways to compute sparsemax over the last dimension."""

from __future__ import annotations

import entmax
from torch import Tensor


def sorted_sparsemax(x: Tensor) -> Tensor:
    """By sorting."""
    return entmax.sparsemax(x, dim=-1)


def bisected_sparsemax(x: Tensor) -> Tensor:
    """By bisection, which needs no sorting."""
    return entmax.sparsemax_bisect(x, dim=-1, n_iter=60)
