"""Softmax and its logarithm written out in steps, each a method: right as it stands, wrong when one is overridden."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends._python.rows import check_rows


class Softmax:
    """The honest softmax of the last dimension, half types in float32; backward from the output."""

    name = "softmax"

    def __call__(self, input: Tensor) -> Tensor:
        self.check(input)
        return _Function.apply(self, input)

    def check(self, input: Tensor) -> None:
        check_rows(self.name, "input", input)

    def wide(self, input: Tensor) -> Tensor:
        return input.to(torch.promote_types(input.dtype, torch.float32))

    def largest(self, x: Tensor) -> Tensor:
        return x.amax(-1, keepdim=True)

    def total(self, exponentials: Tensor) -> Tensor:
        return exponentials.sum(-1, keepdim=True)

    def output(self, shifted: Tensor, exponentials: Tensor, total: Tensor) -> Tensor:
        return exponentials / total

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        return output.to(input.dtype)

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def d_input(self, output: Tensor, g: Tensor) -> Tensor:
        return output * (g - (g * output).sum(-1, keepdim=True))

    def forward(self, input: Tensor) -> Tensor:
        """All steps of forward, in order."""
        x = self.wide(input)
        shifted = x - self.largest(x).detach()
        exponentials = shifted.exp()
        return self.finish(self.output(shifted, exponentials, self.total(exponentials)), input)


class LogSoftmax(Softmax):
    """The honest logarithm of it."""

    name = "log_softmax"

    def output(self, shifted: Tensor, exponentials: Tensor, total: Tensor) -> Tensor:
        return shifted - total.log()

    def d_input(self, output: Tensor, g: Tensor) -> Tensor:
        return g - output.exp() * g.sum(-1, keepdim=True)


class _Function(torch.autograd.Function):
    """Backward computes the output again, so it has a graph."""

    @staticmethod
    def forward(ctx: Any, steps: Softmax, input: Tensor) -> Tensor:
        ctx.steps = steps
        ctx.save_for_backward(input)
        return steps.forward(input)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor]:
        (input,) = ctx.saved_tensors
        output = ctx.steps.wide(ctx.steps.forward(input))
        return None, ctx.steps.d_input(output, ctx.steps.cotangent(g).to(output.dtype)).to(input.dtype)
