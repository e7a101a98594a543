"""Errors in units in the last place (ULP), as a histogram whose bins are the same for every operator and dtype.

One ULP is the distance of two neighbouring numbers of the dtype at the exact value. A value that is rounded once from
the exact value is within half of one. After cancellation a value may be many ULPs away and still be right, because a
ULP knows nothing of what cancelled. So the histogram is information only; `harness.judging.compare` decides.

The exact value is the oracle's in float64. For float64 itself it has the same roundoff as the errors that it measures.
"""

from __future__ import annotations

import torch
from torch import Tensor

from harness.report.histogram import BINS, EDGES

_EXPONENT = 0x7FF0_0000_0000_0000  # the bits of a float64 that say which power of two it is


def ulp(exact: Tensor, dtype: torch.dtype) -> Tensor:
    """The distance of two neighbours of `dtype` at `exact` (float64, any shape); float64 of the same shape."""
    limits = torch.finfo(dtype)
    power = (exact.view(torch.int64) & _EXPONENT).view(torch.float64)  # of two, at most |exact|
    return power.clamp(min=limits.tiny) * limits.eps  # among subnormals the distance is constant


def histogram(error: Tensor, exact: Tensor, dtype: torch.dtype) -> Tensor:
    """How many elements lie in each bin: int64 of shape (BINS,).

    `error` and `exact` are float64 of one shape, and finite. Values that overflow the dtype have no neighbours in it
    and are left out.
    """
    held = exact.abs() <= torch.finfo(dtype).max
    errors = error[held].abs() / ulp(exact[held], dtype)
    return torch.bincount(torch.bucketize(errors, torch.tensor(EDGES, dtype=torch.float64)), minlength=BINS)
