"""MLP as a torch.autograd.Function with a closed-form backward.

Backward reads the inputs and `hidden`, which shows where relu passed its argument on: the pre-activations are not kept.
A tensor that forward only saves has no history, so a second differentiation would silently treat it as a constant.
`hidden` is therefore an output of the Function, which the wrapper `mlp` hides: a saved output belongs to the graph, and
the second differentiation passes its gradient as `grad_hidden`. Everything else in backward is differentiable torch on
saved inputs, so it can be differentiated to any order.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from spec.mlp import OPERATOR


class MLPFunction(torch.autograd.Function):
    """(input, hidden_weights, hidden_bias, output_weights, output_bias) -> (output, hidden)."""

    # torch.func.vmap: forward and backward are torch operations, so torch can batch both by itself.
    generate_vmap_rule = True

    @staticmethod
    def forward(
        input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        # Made dense, since oneDNN's products in bfloat16 read beyond the end of a row (torch 2.13).
        hidden = F.relu(F.linear(input.contiguous(), hidden_weights, hidden_bias))  # (batch, hidden_size)
        return F.linear(hidden, output_weights, output_bias), hidden

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        input, hidden_weights, _hidden_bias, output_weights, _output_bias = inputs
        _output, hidden = output
        ctx.save_for_backward(input, hidden_weights, output_weights, hidden)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor, grad_hidden: Tensor) -> tuple[Tensor | None, ...]:
        input, hidden_weights, output_weights, hidden = ctx.saved_tensors
        wants_input, wants_hidden_weights, wants_hidden_bias, wants_output_weights, wants_output_bias = (
            ctx.needs_input_grad
        )
        d_hidden = grad_output @ output_weights + grad_hidden
        # It selects: a product with a mask would be inf * 0 = NaN where d_hidden has overflowed.
        d_z = torch.where(hidden > 0, d_hidden, torch.zeros_like(d_hidden))
        return (
            d_z @ hidden_weights if wants_input else None,
            d_z.t() @ input if wants_hidden_weights else None,
            d_z.sum(0) if wants_hidden_bias else None,
            grad_output.t() @ hidden if wants_output_weights else None,
            grad_output.sum(0) if wants_output_bias else None,
        )


@by_rule(OPERATOR)
def mlp(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The output, (batch, output_size)."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    arguments = (input, hidden_weights, hidden_bias, output_weights, output_bias)
    output: Tensor
    output, _hidden = MLPFunction.apply(*arguments)  # type: ignore[no-untyped-call]
    return output


IMPLEMENTATION = PythonFunction(mlp)
