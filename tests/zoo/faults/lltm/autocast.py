"""Right by itself, and wrong under torch.autocast."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell, Outputs, plain, with_gradient
from tests.zoo.registry import fault


@fault("autocast", "forward raised TypeError: lltm: weights was torch.float32", dtype=torch.bfloat16)
class RefusesAMixture(Cell):
    """All dtypes must be equal: a half-precision output of the previous layer is refused with float32 weights."""


class _ProductsInBackward(torch.autograd.Function):
    """Matrix products by `@` in a backward in which autocast is not disabled."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        gates = F.linear(torch.cat([old_h, input], dim=1), weights, bias)
        ctx.save_for_backward(input, weights, old_h, old_cell, gates)
        return plain(input, weights, bias, old_h, old_cell)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
        input, weights, old_h, old_cell, gates = ctx.saved_tensors
        z_i, z_o, z_k = gates.chunk(3, dim=1)
        i, o, k = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_k)
        tanh_cell = torch.tanh(old_cell + k * i)
        d_cell = g_h * o * (1 - tanh_cell**2) + g_c
        d_gates = torch.cat(
            [d_cell * k * i * (1 - i), g_h * tanh_cell * o * (1 - o), d_cell * i * z_k.clamp(max=0).exp()], dim=1
        ).to(gates.dtype)
        d_weights = d_gates.t() @ torch.cat([old_h, input], dim=1)
        d_old_h, d_input = (d_gates @ weights).split([old_h.shape[1], input.shape[1]], dim=1)
        return d_input, d_weights, d_gates.sum(0), d_old_h, d_cell


@fault("autocast", "with float32 inputs, backward raised RuntimeError: ", dtype=torch.bfloat16)
def half_gates_meet_float32_weights(
    input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
) -> Outputs:
    """Autocast makes the gates half, and backward multiplies them by the saved float32 weights."""
    if not torch.is_autocast_enabled(input.device.type):
        check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = _ProductsInBackward.apply(input, weights, bias, old_h, old_cell)
    return outputs


class _Scaled(Cell):
    """The honest cell under autocast, in its dtype."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        if not torch.is_autocast_enabled("cpu"):
            return super().__call__(*inputs)
        low = [tensor.to(torch.get_autocast_dtype("cpu")) for tensor in inputs]
        with torch.autocast("cpu", enabled=False):
            return super().__call__(*low)


@fault("autocast", "dtype of new_h was torch.bfloat16, but should be torch.float64", dtype=torch.float64)
class CastsFloat64(_Scaled):
    """Casts every floating dtype: float64 inputs give results with the digits of bfloat16."""


@fault("autocast", "switched off again inside of it, dtype of new_h was torch.bfloat16", dtype=torch.bfloat16)
class LooksOnce(Cell):
    """The state of autocast is read at the first call, and never again."""

    def __init__(self) -> None:
        self._low: torch.dtype | None = None

    def __call__(self, *inputs: Tensor) -> Outputs:
        if torch.is_autocast_enabled("cpu"):
            self._low = torch.get_autocast_dtype("cpu")
        if self._low is None or inputs[0].dtype == torch.float64:
            return super().__call__(*inputs)
        with torch.autocast("cpu", enabled=False):
            return super().__call__(*(tensor.to(self._low) for tensor in inputs))


@fault("autocast", r"made a step on .* at a scale of 2\^127, but should have skipped it", dtype=torch.float16)
class OverflowHidden(_Scaled):
    """Gradients that overflow are replaced by the largest number: GradScaler sees no overflow, and makes the step."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        if not torch.is_autocast_enabled("cpu"):
            return super().__call__(*inputs)
        return super().__call__(*(with_gradient(tensor, torch.nan_to_num) for tensor in inputs))
