"""Right, with a backward that reads activations as forward stored them, rounded to the dtype."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Outputs
from tests.zoo.registry import OLD_STYLE, control


class _Saving(torch.autograd.Function):
    """Saves X and four activations. The derivative of elu comes from its result, as torch's elu_ takes it."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        X = torch.cat([old_h, input], dim=1)
        z_i, z_o, z_k = F.linear(X, weights, bias).chunk(3, dim=1)
        i, o, k = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_k)
        new_cell = old_cell + k * i
        tanh_cell = torch.tanh(new_cell)
        ctx.save_for_backward(X, weights, i, o, k, tanh_cell)
        return tanh_cell * o, new_cell

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
        X, weights, *activations = ctx.saved_tensors
        wide = torch.promote_types(weights.dtype, torch.float32)
        i, o, k, tanh_cell = (tensor.to(wide) for tensor in activations)
        d_cell = g_h * o * (1 - tanh_cell**2) + g_c
        slope = torch.where(k > 0, 1.0, k + 1)
        parts = d_cell * k * i * (1 - i), g_h * tanh_cell * o * (1 - o), d_cell * i * slope
        d_gates = torch.cat(parts, dim=1).to(weights.dtype)
        d_X, H = d_gates @ weights, g_h.shape[1]
        return d_X[:, H:], d_gates.t() @ X, d_gates.sum(0), d_X[:, :H], d_cell.to(weights.dtype)


@control(
    gives_up={
        **OLD_STYLE,
        "double-backward": "once_differentiable refuses only where a cotangent requires grad; elsewhere the gradients "
        "have no graph, and a second derivative is 0",
    }
)
def activations_saved(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Activations are saved in the dtype, and elu' is the saved result plus 1."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    new_h, new_cell = _Saving.apply(input, weights, bias, old_h, old_cell)
    return new_h, new_cell
