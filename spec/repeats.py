"""How often values are repeated. Equal terms are rounded equally, also in a sum."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

#: Values count as equal within 2^6 unit roundoffs: equal results of different operands are rounded differently.
_SPREAD_BITS = 6
#: Bits of a float64's mantissa, including the first, which is not stored.
_MANTISSA = 53


def repeats(values: Tensor, unit: float) -> Tensor | None:
    """n_1^2 + n_2^2 + ... of each row (the last dimension), where n_1, n_2, ... count the elements of each value.

    `values` are float64; they count as equal within 64 `unit`. A zero adds nothing and is not rounded, so each zero
    counts as a value of its own. Returns None if no row has two elements of one value.
    """
    dropped = _MANTISSA + round(math.log2(unit)) + _SPREAD_BITS
    rows = (values.reshape(-1, values.shape[-1]) + 0.0).contiguous().numpy().view(np.int64)  # -0.0 is 0.0
    rows += 1 << (dropped - 1)
    rows >>= dropped
    rows.sort(axis=1)
    begins = np.ones(rows.shape, dtype=bool)
    np.not_equal(rows[:, 1:], rows[:, :-1], out=begins[:, 1:])
    if begins.all():
        return None
    first = np.flatnonzero(begins)
    lengths = np.diff(first, append=rows.size).astype(np.float64)
    squares = np.where(rows.reshape(-1)[first] == 0, lengths, lengths * lengths)
    found = np.bincount(first // rows.shape[1], weights=squares, minlength=len(rows))
    return torch.from_numpy(found).reshape(values.shape[:-1])
