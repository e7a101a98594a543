"""Cross-entropy, right in float32 but computed in half precision where the contract has float32."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.cross_entropy import Loss
from tests.zoo.registry import fault


@fault("forward-parity", r"values certain", dtype=torch.bfloat16)
class SumOfExponentialsInHalf(Loss):
    """The sum of exponentials is rounded to bfloat16: 1 + exp(-7) becomes 1, and the loss of a certain row 0."""

    def total(self, exponentials: Tensor) -> Tensor:
        return super().total(exponentials).to(torch.bfloat16).to(exponentials.dtype)


@fault("sizes", r"loss was .* but should be", dtype=torch.bfloat16)
class MeanInHalf(Loss):
    """The losses of the rows are added up one after another in bfloat16: the sum stops growing."""

    def mean(self, row: Tensor, kept: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.bfloat16, device=row.device)
        for value in torch.where(kept, row, torch.zeros_like(row)).to(torch.bfloat16)[:512]:
            total = total + value
        return total / kept[:512].sum()
