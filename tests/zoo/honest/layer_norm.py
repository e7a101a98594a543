"""LayerNorm written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments

Dims = tuple[int, ...]


class Norm:
    """The honest normalisation: every step as `spec/layer_norm.py` states it, half types in float32."""

    def __call__(
        self,
        input: Tensor,
        normalized_shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        self.check(input, normalized_shape, weight, bias)
        return _Function.apply(self, input, weight, bias, self.dims(input, normalized_shape), self.eps(eps))

    def check(self, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None) -> None:
        check_layer_norm_arguments(input, normalized_shape, weight, bias)

    def dims(self, input: Tensor, normalized_shape: Sequence[int]) -> Dims:
        return tuple(range(-len(normalized_shape), 0))

    def eps(self, eps: float) -> float:
        return eps

    # forward

    def wide(self, input: Tensor) -> Tensor:
        return input.to(torch.promote_types(input.dtype, torch.float32))

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        return x.mean(dims, keepdim=True)

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        return (x - mean).square().mean(dims, keepdim=True)

    def rstd(self, variance: Tensor, eps: float) -> Tensor:
        return torch.rsqrt(variance + eps)

    def affine(self, xhat: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        scaled = xhat if weight is None else xhat * weight
        return scaled if bias is None else scaled + bias

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        return output.to(input.dtype)

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def scaled_cotangent(self, g: Tensor, weight: Tensor | None) -> Tensor:
        return g if weight is None else g * weight

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor, dims: Dims) -> Tensor:
        return rstd * (h - h.mean(dims, keepdim=True) - xhat * (h * xhat).mean(dims, keepdim=True))

    def d_weight(self, g: Tensor, xhat: Tensor, rows: Dims) -> Tensor:
        return self.summed(g * xhat, rows)

    def d_bias(self, g: Tensor, rows: Dims) -> Tensor:
        return self.summed(g, rows)

    def summed(self, tensor: Tensor, rows: Dims) -> Tensor:
        return tensor.sum(rows) if rows else tensor

    def wanted(self, gradients: Sequence[Tensor | None], needs: Sequence[bool]) -> list[Tensor | None]:
        return [gradient if need else None for gradient, need in zip(gradients, needs, strict=True)]


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a norm. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(
        ctx: Any, norm: Norm, input: Tensor, weight: Tensor | None, bias: Tensor | None, dims: Dims, eps: float
    ) -> Tensor:
        ctx.norm, ctx.dims, ctx.eps = norm, dims, eps
        ctx.save_for_backward(input, weight)
        x = norm.wide(input)
        mean = norm.mean(x, dims)
        xhat = (x - mean) * norm.rstd(norm.variance(x, mean, dims), eps)
        return norm.finish(norm.affine(xhat, weight, bias), input)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        norm: Norm = ctx.norm
        dims: Dims = ctx.dims
        input, weight = ctx.saved_tensors
        x = norm.wide(input)
        wide_g = norm.cotangent(g).to(x.dtype)
        mean = norm.mean(x, dims)
        rstd = norm.rstd(norm.variance(x, mean, dims), ctx.eps)
        xhat = (x - mean) * rstd
        rows = tuple(range(input.dim() - len(dims)))
        gradients = [
            norm.d_input(norm.scaled_cotangent(wide_g, weight), xhat, rstd, dims),
            norm.d_weight(wide_g, xhat, rows),
            norm.d_bias(wide_g, rows),
        ]
        found = norm.wanted(gradients, ctx.needs_input_grad[1:4])
        return None, *(t if t is None else t.to(input.dtype) for t in found), None, None
