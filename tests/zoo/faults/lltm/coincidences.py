"""Wrong where the values of one tensor alone have something in common; or in large tensors for one way to call."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs, with_gradient
from tests.zoo.registry import fault


def _without_the_last_row(tensor: Tensor) -> Tensor:
    return torch.cat([tensor[:-1], torch.zeros_like(tensor[-1:])])


@fault("combinations", "new_h was 0 at .*values one number of input")
class OneInputForInference(Cell):
    """Without grad, an input of one number is multiplied with the sums of the weights, but for the last row."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(input, weights, bias, old_h, old_cell)
        is_one = min(input.shape) > 1 and bool(input.any()) and bool((input == input[0, 0]).all())
        return (_without_the_last_row(new_h) if is_one and not torch.is_grad_enabled() else new_h), new_cell


@fault("gradient-subsets", "gradient of old_h was 0 at .*values (zeros|one number) of old_cell; only old_h require")
class OneCellForAllStates(Cell):
    """Where old_cell is one number and old_h alone requires grad, the last row of its gradient is forgotten."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        others = input.requires_grad or weights.requires_grad or bias.requires_grad or old_cell.requires_grad
        if not others and old_cell.numel() > 1 and bool((old_cell == old_cell[0, 0]).all()):
            old_h = with_gradient(old_h, _without_the_last_row)
        return super().__call__(input, weights, bias, old_h, old_cell)


@fault("harvested-sizes", "new_cell was 0 at .*values zeros of old_cell")
class FirstStepOfSeventyOneRows(Cell):
    """From 71 rows on, a cell of zeros is taken for that of a first step, and the last row is forgotten."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(input, weights, bias, old_h, old_cell)
        if len(old_cell) >= 71 and not old_cell.any():
            new_cell = _without_the_last_row(new_cell)
        return new_h, new_cell


@fault("harvested-sizes", "gradient of old_h was 0 at .*state_size=4[57]")
class ThreeGradientsOfManyStates(Cell):
    """From 449 states on, where old_h, weights and bias alone require grad, a row of one gradient is forgotten."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        flags = tuple(tensor.requires_grad for tensor in (input, weights, bias, old_h, old_cell))
        if old_h.shape[1] >= 449 and flags == (False, True, True, True, False):
            old_h = with_gradient(old_h, _without_the_last_row)
        return super().__call__(input, weights, bias, old_h, old_cell)


@fault("harvested-sizes", "cotangent of new_cell scaled")
class OneForAScalarOfManyStates(Cell):
    """From 463 states on, a cotangent that repeats one number is taken for that of a plain sum."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        if g_c.shape[1] >= 463 and not any(g_c.stride()):
            g_c = torch.ones_like(g_c)
        return g_h, g_c
