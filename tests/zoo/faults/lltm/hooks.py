"""Right alone, but wrong with a user's autograd hooks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell, Outputs, plain
from tests.zoo.registry import fault


class _OutOfSight(torch.autograd.Function):
    """Keeps the weights on ctx, where saved_tensors_hooks do not see them."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        ctx.save_for_backward(input, bias, old_h, old_cell)
        ctx.weights = weights
        return plain(input, weights, bias, old_h, old_cell)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
        input, bias, old_h, old_cell = ctx.saved_tensors
        return OPERATOR.vjp((input, ctx.weights, bias, old_h, old_cell), (g_h, g_c))


@fault("autograd-hooks", "packed by saved_tensors_hooks, .* gradient of input was nan")
def weights_out_of_sight(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The hooks offload all saved tensors except the weights: backward reads these at their old place."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = _OutOfSight.apply(input, weights, bias, old_h, old_cell)
    return outputs


@fault("autograd-hooks", r"in a checkpoint \(use_reentrant=False\), backward raised CheckpointError")
class TunesOnSecondCall(Cell):
    """Every second call also saves the gates, to measure whether that is faster."""

    _calls = 0

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        self._calls += 1
        outputs: Outputs = plain(*inputs) if self._calls % 2 else super().__call__(*inputs)
        return outputs


@fault("autograd-hooks", r"in a checkpoint \(use_reentrant=True\), the call raised RuntimeError: none of output")
class RemembersWithoutGrad(Cell):
    """Results computed under no_grad are cached by address and version, and returned under grad."""

    def __init__(self) -> None:
        self._seen: dict[tuple[tuple[int, int], ...], Outputs] = {}

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        key = tuple((tensor.data_ptr(), tensor._version) for tensor in inputs)
        if key in self._seen:
            return self._seen[key]
        outputs = super().__call__(*inputs)
        if not torch.is_grad_enabled():
            # A copy: the checkpoint replaces the history of the outputs, and would call itself for ever.
            self._seen[key] = outputs[0].clone(), outputs[1].clone()
        return outputs
