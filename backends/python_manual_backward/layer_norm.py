"""LayerNorm as a torch.autograd.Function with a closed-form backward.

Backward reads the inputs, and the mean and rstd of each row. If forward only saved these two, they would have no
history, and a second differentiation would silently treat them as constants. So they are outputs of the Function, which
the wrapper `layer_norm` hides, and the second differentiation passes their gradients as grad_mean and grad_rstd.

Half types are normalised in float32, mean and rstd stay in float32, and each result is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.layer_norm import OPERATOR


class LayerNormFunction(torch.autograd.Function):
    """(input, weight, bias, rank of normalized_shape, eps) -> (output, mean, rstd)."""

    # torch.func.vmap: forward and backward are torch operations, so torch can batch both by itself.
    generate_vmap_rule = True

    @staticmethod
    def forward(
        input: Tensor, weight: Tensor | None, bias: Tensor | None, normalized: int, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        dims = tuple(range(-normalized, 0))
        x = input.to(torch.promote_types(input.dtype, torch.float32))
        mean = x.mean(dims, keepdim=True)
        centred = x - mean
        rstd = torch.rsqrt(centred.square().mean(dims, keepdim=True) + eps)
        output = centred * rstd
        if weight is not None:
            output = output * weight
        if bias is not None:
            output = output + bias
        return output.to(input.dtype), mean, rstd

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        input, weight, _bias, ctx.normalized, _eps = inputs
        _output, mean, rstd = output
        ctx.save_for_backward(input, weight, mean, rstd)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_mean: Tensor, grad_rstd: Tensor) -> tuple[Tensor | None, ...]:
        input, weight, mean, rstd = ctx.saved_tensors
        dims = tuple(range(-ctx.normalized, 0))
        rows = tuple(range(input.dim() - ctx.normalized))
        g = grad.to(rstd.dtype)
        centred = input.to(rstd.dtype) - mean
        xhat = centred * rstd
        wants_input, wants_weight, wants_bias, *_ = ctx.needs_input_grad

        d_input = d_weight = d_bias = None
        if wants_input:
            h = g if weight is None else g * weight
            d_input = rstd * (h - h.mean(dims, keepdim=True) - xhat * (h * xhat).mean(dims, keepdim=True))
            # d mean / dx = 1/N, d rstd / dx = -rstd^3 (x - mean) / N: zero except in a second differentiation.
            count = input[(0,) * len(rows)].numel() if input.numel() else 1
            d_input = (d_input + (grad_mean - grad_rstd * rstd**3 * centred) / count).to(input.dtype)
        if wants_weight:
            d_weight = _summed(g * xhat, rows).to(input.dtype)
        if wants_bias:
            d_bias = _summed(g, rows).to(input.dtype)
        return d_input, d_weight, d_bias, None, None


def _summed(tensor: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The sum over `dims`, which is empty where the whole input is one row."""
    return tensor.sum(dims) if dims else tensor


@by_rule(OPERATOR)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The rows of input normalised over its last dimensions, `normalized_shape`; of the shape of input."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    outputs = LayerNormFunction.apply(input, weight, bias, len(normalized_shape), eps)  # type: ignore[no-untyped-call]
    output: Tensor = outputs[0]  # mean and rstd are for a second differentiation alone
    return output


IMPLEMENTATION = PythonFunction(layer_norm)
