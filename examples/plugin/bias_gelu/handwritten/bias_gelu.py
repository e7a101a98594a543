"""bias_gelu as a torch.autograd.Function: it saves its inputs and recomputes the rest."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from backends.base import PythonFunction, check_arguments
from bias_gelu.contract import OPERATOR


def _wide(input: Tensor, bias: Tensor) -> Tensor:
    """z in float32 or wider."""
    wide = torch.promote_types(input.dtype, torch.float32)
    return input.to(wide) + bias.to(wide)


def _cdf(z: Tensor) -> Tensor:
    return torch.erfc(-z / math.sqrt(2)) / 2


class BiasGELU(torch.autograd.Function):
    """(input, bias) -> output."""

    # torch.func.vmap: forward and backward are torch operations, so torch can batch both by itself.
    generate_vmap_rule = True

    @staticmethod
    def forward(input: Tensor, bias: Tensor) -> Tensor:
        z = _wide(input, bias)
        return (z * _cdf(z)).to(input.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        input, bias = ctx.saved_tensors
        z = _wide(input, bias)
        slope = _cdf(z) + z * torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        d_z = g.to(z.dtype) * slope
        wants_input, wants_bias = ctx.needs_input_grad
        return d_z.to(input.dtype) if wants_input else None, d_z.sum(0).to(input.dtype) if wants_bias else None


def bias_gelu(input: Tensor, bias: Tensor) -> Tensor:
    """gelu(input + bias), (batch, features)."""
    check_arguments(OPERATOR, input, bias)
    output: Tensor = BiasGELU.apply(input, bias)
    return output


IMPLEMENTATION = PythonFunction(bias_gelu)
