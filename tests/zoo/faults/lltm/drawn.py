"""Wrong only for combinations that no named case has: Hypothesis finds them."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("drawn-calls", r"columns 6\S* of [^$]*found by hypothesis among")
class SeventhColumnOfFewRows(Cell):
    """An error of one percent from the seventh column on, for one or two rows: no named case is that small and wide."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        if new_h.shape[0] > 2 or new_h.shape[1] == 8:
            return new_h, new_cell
        return torch.cat([new_h[:, :6], 0.99 * new_h[:, 6:]], dim=1), new_cell


@fault("drawn-calls", "weights (transposed|expanded)[^$]*found by hypothesis among", examples=200)
class FastPathTransposes(Cell):
    """A path for states of 9 and more reads transposed weights as contiguous; all named layouts are smaller."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        if old_h.shape[1] >= 9 and weights.stride(0) < weights.stride(1):
            weights = weights.t().reshape(weights.shape)
        return super().gates(input, weights, bias, old_h)
