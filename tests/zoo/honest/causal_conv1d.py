"""Depthwise causal convolution written out in steps, each a method: wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.causal_conv1d import check_causal_conv1d_arguments

Optional = Tensor | None


class Filter:
    """The honest convolution: every step as `spec/causal_conv1d.py` states it, half types in float32."""

    def __call__(self, input: Tensor, weight: Tensor, bias: Optional = None, activation: str | None = None) -> Tensor:
        self.check(input, weight, bias, activation)
        return _Function.apply(self, input, weight, bias, activation)

    def check(self, input: Tensor, weight: Tensor, bias: Optional, activation: str | None) -> None:
        check_causal_conv1d_arguments(input, weight, bias, activation)

    def wide(self, tensor: Tensor) -> Tensor:
        return tensor.to(torch.promote_types(tensor.dtype, torch.float32))

    # forward

    def seen(self, input: Tensor) -> Tensor:
        return self.wide(input)

    def padded(self, x: Tensor, width: int) -> Tensor:
        """The steps with the zeros before them."""
        return F.pad(x, (width - 1, 0))

    def tap(self, w: Tensor, k: int) -> Tensor:
        """(channels, 1): what the step k after the first one of a window is multiplied by."""
        return w[:, k : k + 1]

    def added(self, terms: list[Tensor]) -> Tensor:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def biased(self, total: Tensor, bias: Optional) -> Tensor:
        return total if bias is None else total + bias.to(total.dtype).unsqueeze(-1)

    def z(self, x: Tensor, w: Tensor, bias: Optional) -> Tensor:
        """All steps before the activation."""
        width, length = w.shape[1], x.shape[2]
        before = self.padded(x, width)
        terms = [before[..., k : k + length] * self.tap(w, k) for k in range(width)]
        return self.biased(self.added(terms), bias)

    def silu(self, z: Tensor) -> Tensor:
        return z * torch.sigmoid(z)

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        return output.to(input.dtype)

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def slope(self, z: Tensor) -> Tensor:
        s = torch.sigmoid(z)
        return s * (1 + z * (1 - s))

    def d_input(self, d_z: Tensor, w: Tensor) -> Tensor:
        width, length = w.shape[1], d_z.shape[2]
        behind = F.pad(d_z, (0, width - 1))
        terms = [behind[..., width - 1 - k : width - 1 - k + length] * self.tap(w, k) for k in range(width)]
        return self.added(terms)

    def d_weight(self, d_z: Tensor, x: Tensor, width: int) -> Tensor:
        before, length = self.padded(x, width), x.shape[2]
        return torch.stack([(before[..., k : k + length] * d_z).sum((0, 2)) for k in range(width)], -1)

    def d_bias(self, d_z: Tensor) -> Tensor:
        return d_z.sum((0, 2))


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a filter. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(
        ctx: Any, steps: Filter, input: Tensor, weight: Tensor, bias: Optional, activation: str | None
    ) -> Tensor:
        ctx.steps, ctx.activation = steps, activation
        ctx.save_for_backward(input, weight, bias)
        z = steps.z(steps.seen(input), steps.wide(weight), bias)
        return steps.finish(z if activation is None else steps.silu(z), input)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Optional, ...]:
        steps: Filter = ctx.steps
        input, weight, bias = ctx.saved_tensors
        x, w, d_z = steps.seen(input), steps.wide(weight), steps.wide(steps.cotangent(g))
        if ctx.activation is not None:
            d_z = d_z * steps.slope(steps.z(x, w, bias))
        d_bias = None if bias is None else steps.d_bias(d_z).to(g.dtype)
        d_weight = steps.d_weight(d_z, x, weight.shape[1]).to(g.dtype)
        return None, steps.d_input(d_z, w).to(g.dtype), d_weight, d_bias, None
