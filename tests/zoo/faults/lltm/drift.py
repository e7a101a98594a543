"""Within the allowance after one step, but not after many."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("recurrence", "new_(h|cell) after 1000 steps was .* horizon")
class CellTruncated(Cell):
    """The cell is rounded towards zero instead of to nearest."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        new_cell = new_cell.contiguous()
        return new_h, (new_cell.detach().view(torch.int32) & -2).view(torch.float32)


@fault("recurrence", "new_(h|cell) after 10+ steps was .* horizon", dtype=torch.float16)
class LeakyCell(Cell):
    """Each step forgets one part in a thousand of the cell, half of what float16 can resolve."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return super().new_cell(old_cell * (1 - 2**-10), candidate, input_gate)


@fault("recurrence", "new_(h|cell) after 10+ steps was")
class CountsCalls(Cell):
    """The gate has a bias correction that depends on the number of calls, as in an optimiser."""

    def __init__(self) -> None:
        self._calls = 0

    def sigmoid(self, z: Tensor) -> Tensor:
        self._calls += 1
        return super().sigmoid(z) * (1 - 1e-9 * self._calls)
