"""Wrong only where two choices come together; or only beyond a number that stands in the source."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("combinations", r"gradient of \w+ .*batch=4099.*cotangent of new_h (rows|scaled|ones|columns)")
class TailOfAnExpandedCotangent(Cell):
    """Where the cotangent is expanded and the rows fill more than a block of 512, the rows of the last one are lost."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        if g_h.stride(0) == 0 and g_h.shape[0] > 512:
            kept = torch.arange(g_h.shape[0]) < g_h.shape[0] // 512 * 512
            g_h = g_h * kept.unsqueeze(1)
        return g_h, g_c


@fault("combinations", "new_cell of forward under .* shares memory with old_cell")
class KeepsTheCellOfOneRow(Cell):
    """Without grad, a single row whose update is exactly zero is returned as it came."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(input, weights, bias, old_h, old_cell)
        if not torch.is_grad_enabled() and old_cell.shape[0] == 1 and torch.equal(new_cell, old_cell):
            return new_h, old_cell
        return new_h, new_cell


@fault("combinations", "new_h was .*inference_mode")
class StaleInInferenceMode(Cell):
    """In inference mode an answer is kept for the addresses of large inputs, whatever is in them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], Outputs] = {}

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        tensors = (input, weights, bias, old_h, old_cell)
        if not torch.is_inference_mode_enabled() or input.shape[0] < 8:
            return super().__call__(*tensors)
        key = tuple((t.data_ptr(), t.shape) for t in tensors)
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = super().__call__(*tensors)
        new_h, new_cell = self._kept[key]
        return new_h.clone(), new_cell.clone()


@fault("combinations", "input_features=20, state_size=10; input transposed; weights transposed")
class SquareWeightsTransposed(Cell):
    """Where there are twice as many features as states the weights are square; transposed ones are read as they lie."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        if weights.shape[0] == weights.shape[1] and weights.stride(0) == 1 and weights.shape[0] > 1:
            weights = weights.t()
        return super().gates(input, weights, bias, old_h)


@fault("harvested-sizes", "new_cell was .*batch=3[78]")
class FastPathOfThirtySevenRows(Cell):
    """From 37 rows on, a fast path forgets the last row of an odd number, or of one that is no multiple of 5."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        if new_cell.shape[0] in (37, 38):
            new_cell = torch.cat([new_cell[:-1], 0.99 * new_cell[-1:]])
        return new_h, new_cell
