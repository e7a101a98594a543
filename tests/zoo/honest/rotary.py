"""Rotary embedding written out in steps, each a method: right as it stands, and wrong when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends.base import check_arguments
from spec.rotary import OPERATOR

Pair = tuple[Tensor, Tensor]


class Rotation:
    """The honest rotation: every step as `spec/rotary.py` states it, half types in float32."""

    def __call__(self, input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
        check_arguments(OPERATOR, input, cos, sin)
        return _Function.apply(self, input, cos, sin, self.interleaved(interleaved))

    def interleaved(self, interleaved: bool) -> bool:
        return interleaved

    def wide(self, tensor: Tensor) -> Tensor:
        return tensor.to(torch.promote_types(tensor.dtype, torch.float32))

    def pairs(self, x: Tensor, interleaved: bool) -> Pair:
        half = x.shape[-1] // 2
        return (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])

    def joined(self, pair: Pair, interleaved: bool) -> Tensor:
        return torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)

    def of_heads(self, table: Tensor, input: Tensor) -> Tensor:
        del input
        return table.unsqueeze(1)

    def turned(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        x1, x2 = pair
        return x1 * cos - x2 * sin, x2 * cos + x1 * sin

    def turned_back(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        return self.turned(pair, cos, -sin)

    def store(self, output: Tensor, input: Tensor) -> Tensor:
        return output.to(input.dtype)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a rotation."""

    @staticmethod
    def forward(ctx: Any, steps: Rotation, input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
        ctx.steps, ctx.interleaved = steps, interleaved
        ctx.save_for_backward(cos, sin)
        tables = [steps.of_heads(steps.wide(table), input) for table in (cos, sin)]
        pair = steps.turned(steps.pairs(steps.wide(input), interleaved), *tables)
        return steps.store(steps.joined(pair, interleaved), input)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        steps: Rotation = ctx.steps
        tables = [steps.of_heads(steps.wide(table), g) for table in ctx.saved_tensors]
        pair = steps.turned_back(steps.pairs(steps.wide(g), ctx.interleaved), *tables)
        return None, steps.joined(pair, ctx.interleaved).to(g.dtype), None, None, None
