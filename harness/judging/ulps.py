"""Errors in units in the last place (ULP), as a histogram whose bins are the same for every operator and dtype.

One ULP is the distance of two neighbouring numbers of the dtype at the exact value. What is rounded once from the exact
value is within half of one. A value that came of cancellation may be many of them away and right all the same, since a
ULP knows nothing of what was cancelled: that is judged by `harness.judging.compare`, and this is for looking at.

The exact value is the oracle's float64. For float64 itself it has the same roundoff as what is measured by it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from harness.report.histogram import BINS, EDGES

_EXPONENT = 0x7FF0_0000_0000_0000  # the bits of a float64 that say which power of two it is


def ulp(exact: Tensor, dtype: torch.dtype) -> Tensor:
    """The distance of two neighbours of `dtype` at `exact` (float64, any shape), of that shape in float64."""
    limits = torch.finfo(dtype)
    power = (exact.view(torch.int64) & _EXPONENT).view(torch.float64)  # of two, at most |exact|
    return power.clamp(min=limits.tiny) * limits.eps  # among subnormals the distance stays


def histogram(error: Tensor, exact: Tensor, dtype: torch.dtype) -> Tensor:
    """How many elements lie in each bin: int64 of shape (BINS,).

    `error` and `exact` are float64 of one shape, and finite. What the dtype cannot hold has no neighbours: it is left
    out.
    """
    held = exact.abs() <= torch.finfo(dtype).max
    errors = error[held].abs() / ulp(exact[held], dtype)
    return torch.bincount(torch.bucketize(errors, torch.tensor(EDGES, dtype=torch.float64)), minlength=BINS)
