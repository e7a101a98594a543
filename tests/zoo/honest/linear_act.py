"""linear_act written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from backends._python.linear_act import check_linear_act_arguments

Optional = Tensor | None


class Layer:
    """The honest layer: every step as `spec/linear_act.py` states it, half types activated in float32."""

    def __call__(self, input: Tensor, weight: Tensor, bias: Optional = None, activation: str = "relu") -> Tensor:
        self.check(input, weight, bias, activation)
        return _Function.apply(self, input, weight, bias, activation)

    def check(self, input: Tensor, weight: Tensor, bias: Optional, activation: str) -> None:
        check_linear_act_arguments(input, weight, bias, activation)

    # forward

    def product(self, input: Tensor, weight: Tensor) -> Tensor:
        return input.contiguous() @ weight.t()

    def biased(self, product: Tensor, bias: Optional) -> Tensor:
        return product if bias is None else product + bias

    def wide(self, z: Tensor) -> Tensor:
        return z.to(torch.promote_types(z.dtype, torch.float32))

    def activated(self, x: Tensor, activation: str) -> Tensor:
        if activation == "relu":
            return self.relu(x)
        return self.gelu(x) if activation == "gelu" else self.silu(x)

    def relu(self, x: Tensor) -> Tensor:
        return torch.relu(x)

    def gelu(self, x: Tensor) -> Tensor:
        return x * (0.5 * (1 + torch.erf(x * math.sqrt(0.5))))

    def silu(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        return output.to(input.dtype)

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def d_z(self, g: Tensor, x: Tensor, activation: str) -> Tensor:
        if activation == "relu":
            return torch.where(x > 0, g, torch.zeros_like(g))
        return g * (self.gelu_slope(x) if activation == "gelu" else self.silu_slope(x))

    def gelu_slope(self, x: Tensor) -> Tensor:
        return 0.5 * (1 + torch.erf(x * math.sqrt(0.5))) + x * torch.exp(x * x * -0.5) / math.sqrt(2 * math.pi)

    def silu_slope(self, x: Tensor) -> Tensor:
        s = torch.sigmoid(x)
        return s * (1 + x * (1 - s))

    def d_input(self, d_z: Tensor, weight: Tensor) -> Tensor:
        return d_z @ weight

    def d_weight(self, d_z: Tensor, input: Tensor) -> Tensor:
        return d_z.t() @ input

    def d_bias(self, d_z: Tensor) -> Tensor:
        return d_z.sum(0)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a layer. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, input: Tensor, weight: Tensor, bias: Optional, activation: str) -> Tensor:
        ctx.layer, ctx.activation = layer, activation
        ctx.save_for_backward(input, weight, bias)
        z = layer.biased(layer.product(input, weight), bias)
        return layer.finish(layer.activated(layer.wide(z), activation), input)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Optional, ...]:
        layer: Layer = ctx.layer
        input, weight, bias = ctx.saved_tensors
        x = layer.wide(layer.biased(layer.product(input, weight), bias))
        d_z = layer.d_z(layer.cotangent(g).to(x.dtype), x, ctx.activation).to(input.dtype)
        d_bias = None if bias is None else layer.d_bias(d_z)
        return None, layer.d_input(d_z, weight), layer.d_weight(d_z, input), d_bias, None
