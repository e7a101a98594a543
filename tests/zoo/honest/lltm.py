"""LLTM written out in steps, each a method: right as it stands, and wrong in one way when one method is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR

Outputs = tuple[Tensor, Tensor]


class Cell:
    """The honest cell: every step as `spec/lltm.py` states it, with the pointwise part of half types in float32."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        self.check(input, weights, bias, old_h, old_cell)
        new_h, new_cell = _Function.apply(self, input, weights, bias, old_h, old_cell)
        return new_h, new_cell

    def check(self, *inputs: Tensor) -> None:
        check_arguments(OPERATOR, *inputs)

    # forward

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return F.linear(self.concatenated(input, old_h), weights, bias)

    def concatenated(self, input: Tensor, old_h: Tensor) -> Tensor:
        return torch.cat([old_h, input], dim=1)

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        return gates.to(torch.promote_types(gates.dtype, torch.float32)).chunk(3, dim=1)

    def sigmoid(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)

    def candidate(self, z: Tensor) -> Tensor:
        return F.elu(z)

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return old_cell + candidate * input_gate

    def new_h(self, new_cell: Tensor, output_gate: Tensor) -> Tensor:
        return torch.tanh(new_cell) * output_gate

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h, new_cell

    # backward

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        return torch.exp(z.clamp(max=0))

    def d_new_cell(self, g_h: Tensor, g_c: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return g_h * output_gate * (1 - tanh_cell**2) + g_c

    def d_input_gate(self, d_new_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return d_new_cell * candidate * input_gate * (1 - input_gate)

    def d_output_gate(self, g_h: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return g_h * tanh_cell * output_gate * (1 - output_gate)

    def d_candidate(self, d_new_cell: Tensor, input_gate: Tensor, slope: Tensor) -> Tensor:
        return d_new_cell * input_gate * slope

    def joined(self, d_input_gate: Tensor, d_output_gate: Tensor, d_candidate: Tensor) -> Tensor:
        return torch.cat([d_input_gate, d_output_gate, d_candidate], dim=1)

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        return g_h, g_c

    def d_weights(self, d_gates: Tensor, X: Tensor) -> Tensor:
        return d_gates.t() @ X

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return d_gates.sum(0)

    def d_X(self, d_gates: Tensor, weights: Tensor) -> Tensor:
        return d_gates @ weights

    def d_old_cell(self, d_new_cell: Tensor) -> Tensor:
        return d_new_cell

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        return tuple(gradient if need else None for gradient, need in zip(gradients, needs, strict=True))

    def saved(
        self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
    ) -> tuple[Tensor, ...]:
        return input, weights, bias, old_h, old_cell


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a cell. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(ctx: Any, cell: Cell, *inputs: Tensor) -> Outputs:
        input, weights, bias, old_h, old_cell = inputs
        ctx.cell = cell
        ctx.save_for_backward(*cell.saved(*inputs))
        z_i, z_o, z_k = cell.split(cell.gates(input, weights, bias, old_h))
        new_cell = cell.new_cell(old_cell.to(z_k.dtype), cell.candidate(z_k), cell.sigmoid(z_i))
        new_h = cell.new_h(new_cell, cell.sigmoid(z_o))
        return cell.finish(new_h.to(old_cell.dtype), new_cell.to(old_cell.dtype))

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor | None, ...]:
        cell: Cell = ctx.cell
        input, weights, bias, old_h, old_cell = ctx.saved_tensors
        g_h, g_c = cell.cotangents(g_h, g_c)
        z_i, z_o, z_k = cell.split(cell.gates(input, weights, bias, old_h))
        i, o, k = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_k)
        tanh_cell = torch.tanh(old_cell + k * i)
        d_new_cell = cell.d_new_cell(g_h, g_c, tanh_cell, o)
        d_gates = cell.joined(
            cell.d_input_gate(d_new_cell, k, i),
            cell.d_output_gate(g_h, tanh_cell, o),
            cell.d_candidate(d_new_cell, i, cell.elu_slope(z_k, k)),
        ).to(weights.dtype)
        d_X = cell.d_X(d_gates, weights)
        H = old_h.shape[1]
        gradients = (
            d_X[:, H:],
            cell.d_weights(d_gates, torch.cat([old_h, input], dim=1)),
            cell.d_bias(d_gates),
            d_X[:, :H],
            cell.d_old_cell(d_new_cell).to(old_cell.dtype),
        )
        return None, *cell.wanted(gradients, ctx.needs_input_grad[1:])


Implementation = Callable[..., Outputs]


# What several controls share ------------------------------------------------------------------------------------------


def wide(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The same tensors in float32 or wider."""
    return tuple(tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in tensors)


def rounded(dtype: torch.dtype, *tensors: Tensor) -> Outputs:
    """Both outputs, rounded once to the dtype of the call."""
    new_h, new_cell = tensors
    return new_h.to(dtype), new_cell.to(dtype)


def elementwise(z_i: Tensor, z_o: Tensor, z_k: Tensor, old_cell: Tensor) -> Outputs:
    """The part of the cell after the product, in the dtype of the gates."""
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def plain(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The cell in four lines of torch, which autograd differentiates; arguments are not checked."""
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    return elementwise(z_i, z_o, z_k, old_cell)


def with_gradient(tensor: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """The same tensor, with `change` applied to its gradient in backward."""
    passed = tensor.view_as(tensor)
    if passed.requires_grad:
        passed.register_hook(change)
    return passed
