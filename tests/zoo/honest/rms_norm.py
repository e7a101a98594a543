"""RMSNorm written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends._python.rows import check_rms_norm_arguments

Optional = Tensor | None


class RootMeanSquare:
    """The honest normalisation: every step as `spec/rms_norm.py` states it, half types in float32."""

    def __call__(
        self, input: Tensor, weight: Optional = None, residual: Optional = None, eps: float = 1e-6
    ) -> Tensor | tuple[Tensor, Tensor]:
        self.check(input, weight, residual)
        output, total = _Function.apply(self, input, weight, residual, self.eps(eps))
        return output if residual is None else (output, total)

    def check(self, input: Tensor, weight: Optional, residual: Optional) -> None:
        check_rms_norm_arguments(input, weight, residual)

    def eps(self, eps: float) -> float:
        return eps

    # forward

    def total(self, input: Tensor, residual: Optional) -> Tensor:
        return input.clone() if residual is None else input + residual

    def wide(self, total: Tensor) -> Tensor:
        return total.to(torch.promote_types(total.dtype, torch.float32))

    def mean_square(self, x: Tensor) -> Tensor:
        return x.square().mean(-1, keepdim=True)

    def rstd(self, mean_square: Tensor, eps: float) -> Tensor:
        return torch.rsqrt(mean_square + eps)

    def scaled(self, xhat: Tensor, weight: Optional) -> Tensor:
        return xhat if weight is None else xhat * weight

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        return output.to(input.dtype)

    def new_residual(self, total: Tensor, output: Tensor) -> Tensor:
        return total

    # backward

    def read(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """What backward takes for x where it computes xhat."""
        return x

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def scaled_cotangent(self, g: Tensor, weight: Optional) -> Tensor:
        return g if weight is None else g * weight

    def d_total(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return rstd * (h - xhat * (h * xhat).mean(-1, keepdim=True))

    def with_residual(self, d_total: Tensor, of_total: Tensor) -> Tensor:
        return d_total + of_total

    def d_weight(self, g: Tensor, xhat: Tensor) -> Tensor:
        products = g * xhat
        return products.sum(tuple(range(products.dim() - 1))) if products.dim() > 1 else products


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a norm. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(
        ctx: Any, norm: RootMeanSquare, input: Tensor, weight: Optional, residual: Optional, eps: float
    ) -> tuple[Tensor, Tensor]:
        ctx.norm, ctx.eps = norm, eps
        ctx.save_for_backward(input, weight, residual)
        total = norm.total(input, residual)
        x = norm.wide(total)
        output = norm.finish(norm.scaled(x * norm.rstd(norm.mean_square(x), eps), weight), input)
        return output, norm.new_residual(total, output)

    @staticmethod
    def backward(ctx: Any, g: Tensor, of_total: Tensor) -> tuple[Optional, ...]:
        norm: RootMeanSquare = ctx.norm
        input, weight, residual = ctx.saved_tensors
        x = norm.wide(norm.total(input, residual))
        rstd = norm.rstd(norm.mean_square(x), ctx.eps)
        xhat, wide_g = norm.read(x, input.dtype) * rstd, norm.cotangent(g).to(x.dtype)
        d_total = norm.d_total(norm.scaled_cotangent(wide_g, weight), xhat, rstd).to(input.dtype)
        d_total = d_total if residual is None else norm.with_residual(d_total, of_total)
        d_weight = None if weight is None else norm.d_weight(wide_g, xhat).to(input.dtype)
        return None, d_total, d_weight, None if residual is None else d_total, None
