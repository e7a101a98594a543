"""A forward and a backward of FlagGems as one differentiable function, as ATen's derivatives.yaml joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

#: (tensors, what forward kept, cotangent, which gradients are wanted) -> a gradient or None for each tensor.
Backward = Callable[[Sequence[Tensor | None], Sequence[Tensor], Tensor, Sequence[bool]], Sequence[Tensor | None]]


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, forward: Callable[..., Any], backward: Backward, *tensors: Tensor | None) -> Tensor:
        output, *kept = forward(*tensors)
        ctx.tensors, ctx.backward_of = len(tensors), backward
        ctx.save_for_backward(*tensors, *kept)
        result: Tensor = output
        return result

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        saved = ctx.saved_tensors
        tensors, kept = saved[: ctx.tensors], saved[ctx.tensors :]
        return (None, None, *ctx.backward_of(tensors, kept, cotangent, ctx.needs_input_grad[2:]))


def joined(forward: Callable[..., Any], backward: Backward, *tensors: Tensor | None) -> Tensor:
    """The first thing that `forward(*tensors)` returns; all others are kept for backward."""
    output: Tensor = _Joined.apply(forward, backward, *tensors)  # type: ignore[no-untyped-call]
    return output
