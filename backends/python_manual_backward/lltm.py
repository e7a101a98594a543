"""LLTM as a torch.autograd.Function with a closed-form backward.

Backward reads the inputs and `gates`, the only step of forward that is expensive to compute again: the rest is
elementwise. A tensor that forward only saves has no history, so a second differentiation would silently treat it as a
constant. `gates` is therefore an output of the Function, which the wrapper `lltm` hides: a saved output belongs to the
graph, and the second differentiation passes its gradient as `grad_gates`. Everything else in backward is differentiable
torch on saved inputs, so it can be differentiated to any order.

float16 and bfloat16 go through the elementwise part in float32, and are rounded once at its end.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from spec.lltm import OPERATOR


def _elementwise(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(z_k, input_gate, output_gate, candidate, new_cell), in float32 or wider; z_k is the candidate before elu."""
    wide = torch.promote_types(gates.dtype, torch.float32)
    z_i, z_o, z_k = gates.to(wide).chunk(3, dim=1)
    input_gate, output_gate, candidate = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_k)
    return z_k, input_gate, output_gate, candidate, old_cell.to(wide) + candidate * input_gate


class LLTMFunction(torch.autograd.Function):
    """(input, weights, bias, old_h, old_cell) -> (new_h, new_cell, gates)."""

    # torch.func.vmap: forward and backward are torch operations, so torch can batch both by itself.
    generate_vmap_rule = True

    @staticmethod
    def forward(
        input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        gates = F.linear(torch.cat([old_h, input], dim=1), weights, bias)  # (batch, 3*state_size)
        _, _, output_gate, _, new_cell = _elementwise(gates, old_cell)
        new_h = torch.tanh(new_cell) * output_gate
        return new_h.to(old_cell.dtype), new_cell.to(old_cell.dtype), gates

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        input, weights, _bias, old_h, old_cell = inputs
        _new_h, _new_cell, gates = output
        ctx.save_for_backward(input, weights, old_h, old_cell, gates)

    @staticmethod
    def backward(ctx: Any, grad_h: Tensor, grad_cell: Tensor, grad_gates: Tensor) -> tuple[Tensor | None, ...]:
        input, weights, old_h, old_cell, gates = ctx.saved_tensors
        state_size = old_h.shape[1]
        z_k, input_gate, output_gate, candidate, new_cell = _elementwise(gates, old_cell)
        tanh_cell = torch.tanh(new_cell)

        d_output_gate = grad_h * tanh_cell
        d_new_cell = grad_h * output_gate * (1 - tanh_cell**2) + grad_cell
        d_input_gate = d_new_cell * candidate
        d_candidate = d_new_cell * input_gate
        # elu'(z) is 1 where z > 0 and exp(z) elsewhere, which is exp(min(z, 0)): exp never sees a z that overflows.
        # The minimum is written with relu, whose slope at 0 is 0: elu''(0) = 0 then, as for autograd through elu.
        elu_slope = torch.exp(-F.relu(-z_k))
        d_gates = torch.cat(
            [
                d_input_gate * input_gate * (1 - input_gate),
                d_output_gate * output_gate * (1 - output_gate),
                d_candidate * elu_slope,
            ],
            dim=1,
        )
        d_gates = (d_gates + grad_gates).to(weights.dtype)

        wants_input, wants_weights, wants_bias, wants_old_h, wants_old_cell = ctx.needs_input_grad
        return (
            d_gates @ weights[:, state_size:] if wants_input else None,
            d_gates.t() @ torch.cat([old_h, input], dim=1) if wants_weights else None,
            d_gates.sum(0) if wants_bias else None,
            d_gates @ weights[:, :state_size] if wants_old_h else None,
            d_new_cell.to(old_cell.dtype) if wants_old_cell else None,
        )


@by_rule(OPERATOR)
def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the cell: (new_h, new_cell), each (batch, state_size)."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs = LLTMFunction.apply(input, weights, bias, old_h, old_cell)  # type: ignore[no-untyped-call]
    new_h, new_cell, _gates = outputs
    return new_h, new_cell


IMPLEMENTATION = PythonFunction(lltm)
