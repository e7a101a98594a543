"""Each result is within the allowance, but results of equal calls differ."""

import random

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell
from tests.zoo.registry import fault


@fault("determinism", "gradient of bias was .* in call .*as in the first call, bit for bit: .* of (15|384)")
class SummedInAnyOrder(Cell):
    """The bias gradient is summed from parts in a varying order, as by atomic additions."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        parts = list(d_gates.split(max(len(d_gates) // 64, 1)))
        random.shuffle(parts)
        total = d_gates.new_zeros(d_gates.shape[1])
        for part in parts:
            total = total + part.sum(0)
        return total


@fault("determinism", "new_(h|cell) was .* in call 2, but should be .* as in the first call, bit for bit")
class StochasticRounding(Cell):
    """The cell is rounded up or down at random, which is more accurate on average."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        new_cell = super().new_cell(old_cell, candidate, input_gate)
        if type(new_cell) is not Tensor:
            return new_cell
        return new_cell * (1 + torch.finfo(new_cell.dtype).eps * torch.randint(-1, 2, new_cell.shape))


@fault("determinism", r"in call 4 \(after a call with other values\), but should be .* as in the first call")
class TunesItself(Cell):
    """After a call with other values, it switches to a faster kernel with another rounding."""

    def __init__(self) -> None:
        self._seen: set[float] = set()

    def new_h(self, new_cell: Tensor, output_gate: Tensor) -> Tensor:
        if new_cell.numel() and type(new_cell) is Tensor and new_cell.shape[1] == 5:
            self._seen.add(float(new_cell.flatten()[0]))
        new_h = super().new_h(new_cell, output_gate)
        return new_h * (1 + torch.finfo(new_h.dtype).eps) if len(self._seen) > 1 else new_h
