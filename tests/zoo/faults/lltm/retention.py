"""Memory is kept that backward does not need, or for too long. Every value is right."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell, Outputs, plain
from tests.zoo.registry import fault


@fault("memory", r"bytes more were in use after \d+ calls .* bytes of each call are kept")
class KeepsEveryLoss(Cell):
    """The norm of each new_h is kept for a log that nobody reads: a number and a tensor for each call."""

    def __init__(self) -> None:
        self._log: list[Tensor] = []

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        if type(new_h) is Tensor:
            self._log.append(new_h.detach().norm())
        return new_h, new_cell


class _OnContext(torch.autograd.Function):
    """Keeps its inputs as attributes of ctx, which nobody clears, in place of save_for_backward."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Outputs:
        ctx.inputs = inputs
        return plain(*inputs)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
        return OPERATOR.vjp(ctx.inputs, (g_h, g_c))


@fault("memory", "input, weights, bias, old_h, old_cell was alive after backward, but should be freed")
def kept_on_context(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The inputs are kept on ctx: they live as long as the outputs, even after backward."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = _OnContext.apply(input, weights, bias, old_h, old_cell)
    return outputs


class _SavesWide(torch.autograd.Function):
    """Saves seven functions of the gates in float64, but computes the gradient from the inputs."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Outputs:
        input, weights, bias, old_h, _ = inputs
        gates = torch.nn.functional.linear(torch.cat([old_h, input], dim=1), weights, bias).double()
        steps = (gates, gates.sigmoid(), gates.tanh(), gates.exp(), gates.square(), gates.sin(), gates.cos())
        ctx.save_for_backward(*inputs, *steps)
        return plain(*inputs)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
        return OPERATOR.vjp(ctx.saved_tensors[:5], (g_h, g_c))


@fault("memory", r"bytes more are kept between forward and backward .* 4 times as X, gates, .* are in the contract")
def saves_wide(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Forward saves all intermediates in float64; backward uses none of them."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = _SavesWide.apply(input, weights, bias, old_h, old_cell)
    return outputs
