"""GroupNorm written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from backends._python.group_norm import check_group_norm_arguments, per_channel

Optional = Tensor | None


class Groups:
    """The honest normalisation: every step as `spec/group_norm.py` states it, half types in float32."""

    def __call__(
        self, input: Tensor, num_groups: int, weight: Optional = None, bias: Optional = None, eps: float = 1e-5
    ) -> Tensor:
        self.check(input, num_groups, weight, bias)
        return _Function.apply(self, input, weight, bias, num_groups, self.eps(eps))

    def check(self, input: Tensor, num_groups: int, weight: Optional, bias: Optional) -> None:
        check_group_norm_arguments(input, num_groups, weight, bias)

    def eps(self, eps: float) -> float:
        return eps

    # forward

    def wide(self, input: Tensor) -> Tensor:
        return input.to(torch.promote_types(input.dtype, torch.float32))

    def grouped(self, x: Tensor, num_groups: int) -> Tensor:
        """(batch, num_groups, elements of a group)."""
        return x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)

    def ungrouped(self, groups: Tensor, num_groups: int, like: Tensor) -> Tensor:
        """The tensor of which these are the groups."""
        del num_groups
        return groups.reshape(like.shape)

    def mean(self, groups: Tensor) -> Tensor:
        return groups.mean(-1, keepdim=True)

    def variance(self, groups: Tensor, mean: Tensor) -> Tensor:
        return (groups - mean).square().mean(-1, keepdim=True)

    def rstd(self, variance: Tensor, eps: float) -> Tensor:
        return torch.rsqrt(variance + eps)

    def affine(self, xhat: Tensor, weight: Optional, bias: Optional) -> Tensor:
        scaled = xhat if weight is None else xhat * per_channel(weight, xhat)
        return scaled if bias is None else scaled + per_channel(bias, xhat)

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        return output.to(input.dtype)

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def scaled_cotangent(self, g: Tensor, weight: Optional) -> Tensor:
        return g if weight is None else g * per_channel(weight, g)

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return rstd * (h - h.mean(-1, keepdim=True) - xhat * (h * xhat).mean(-1, keepdim=True))

    def d_weight(self, g: Tensor, xhat: Tensor) -> Tensor:
        return self.over_channels(g * xhat)

    def d_bias(self, g: Tensor) -> Tensor:
        return self.over_channels(g)

    def over_channels(self, tensor: Tensor) -> Tensor:
        return tensor.sum((0, *range(2, tensor.dim())))


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a norm. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(
        ctx: Any, norm: Groups, input: Tensor, weight: Optional, bias: Optional, num_groups: int, eps: float
    ) -> Tensor:
        ctx.norm, ctx.num_groups, ctx.eps = norm, num_groups, eps
        ctx.save_for_backward(input, weight, bias)
        groups = norm.grouped(norm.wide(input), num_groups)
        mean = norm.mean(groups)
        xhat = (groups - mean) * norm.rstd(norm.variance(groups, mean), eps)
        return norm.finish(norm.affine(norm.ungrouped(xhat, num_groups, input), weight, bias), input)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Optional, ...]:
        norm: Groups = ctx.norm
        count: int = ctx.num_groups
        input, weight, bias = ctx.saved_tensors
        groups = norm.grouped(norm.wide(input), count)
        wide_g = norm.cotangent(g).to(groups.dtype)
        mean = norm.mean(groups)
        rstd = norm.rstd(norm.variance(groups, mean), ctx.eps)
        xhat = (groups - mean) * rstd
        h = norm.grouped(norm.scaled_cotangent(wide_g, weight), count)
        d_input = norm.ungrouped(norm.d_input(h, xhat, rstd), count, input).to(input.dtype)
        d_weight = None if weight is None else norm.d_weight(wide_g, norm.ungrouped(xhat, count, input)).to(input.dtype)
        d_bias = None if bias is None else norm.d_bias(wide_g).to(input.dtype)
        return None, d_input, d_weight, d_bias, None, None
