"""One call affects another, or a change between forward and backward goes unnoticed."""

from typing import Any

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault(
    "repeated-backward",
    "weights was changed in place between forward and backward, which raised nothing[^$]*at the new weights",
)
class WeightsSavedWithoutVersion(Cell):
    """Weights are saved as .data, which the version counter does not cover: backward silently uses changed weights."""

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        input, weights, *others = inputs
        return (input, weights.data, *others)


class _KeepsOutput(torch.autograd.Function):
    """The identity, whose gradient is multiplied by output/output, read again from memory in backward."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        output = value.clone()
        ctx.kept = output.data
        ctx.save_for_backward(value)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (value,) = ctx.saved_tensors
        return gradient * torch.where(value == 0, torch.ones_like(value), ctx.kept / value)


@fault("repeated-backward", "new_cell was changed in place between forward and backward, which raised nothing")
class OutputReadAgain(Cell):
    """Backward reads new_cell from the caller's memory."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(*inputs)
        return new_h, _KeepsOutput.apply(new_cell)


@fault("repeated-backward", "second backward through one graph .*: gradient of bias was")
class BackwardAccumulates(Cell):
    """Backward adds into a buffer that forward cleared."""

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        self._total = torch.zeros_like(inputs[2])
        return super().saved(*inputs)

    def d_bias(self, d_gates: Tensor) -> Tensor:
        self._total = self._total + super().d_bias(d_gates)
        return self._total


class _FreesByItself(torch.autograd.Function):
    """The identity; its backward overwrites its saved tensor, but can run a second time."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        ctx.scale = torch.ones_like(value)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        scale, ctx.scale = ctx.scale, torch.zeros_like(ctx.scale)
        return gradient * scale


@fault("repeated-backward", "second backward without retain_graph raised nothing, but should.*gradient of .* was 0")
def frees_silently(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A first backward overwrites the tensors that forward kept; a second one uses them and raises nothing."""
    tensors = [_FreesByItself.apply(tensor) for tensor in (input, weights, bias, old_h, old_cell)]
    return _Unsaved()(*tensors)


class _Unsaved(Cell):
    """The honest cell with its inputs kept where autograd does not free them."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        return _KeptOnContext.apply(self, *inputs)


class _KeptOnContext(torch.autograd.Function):
    """Keeps the inputs as attributes, and differentiates the honest cell again in backward."""

    @staticmethod
    def forward(ctx: Any, _: Cell, *inputs: Tensor) -> Outputs:
        ctx.inputs = [tensor.detach().clone() for tensor in inputs]
        with torch.no_grad():
            return Cell()(*inputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            inputs = [tensor.requires_grad_() for tensor in ctx.inputs]
            return None, *torch.autograd.grad(Cell()(*inputs), inputs, cotangents)


@fault("repeated-backward", "after the inputs were updated in place, through .data, .*: new_(h|cell) was")
class TransposedWeightsCached(Cell):
    """Weights are transposed once for each address and version."""

    def __init__(self) -> None:
        self._transposed: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        held, copy = self._transposed.setdefault(
            (weights.data_ptr(), weights._version), (weights, weights.detach().t().contiguous())
        )
        X = self.concatenated(input, old_h)
        return X @ (copy if held is weights else weights.t()) + bias


@fault("repeated-backward", "with calls of other sizes before it: new_(h|cell) was")
class LargestBatchKept(Cell):
    """The scratch for the pre-activations grows with the batch, is never cleared, and is added to."""

    def __init__(self) -> None:
        self._scratch: Tensor | None = None

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        known = self._scratch
        if known is not None and known.shape[1] > gates.shape[1] and known.dtype == gates.dtype:
            gates = gates + known[: len(gates), : gates.shape[1]].to(gates.dtype) * 0.1
        if known is None or known.shape[1] <= gates.shape[1]:
            self._scratch = gates.detach().clone()
        return super().split(gates)


@fault("survives-wrong-calls", "after a refused call with .*: new_h was")
class FlagLeftBehind(Cell):
    """A flag is set on entry and cleared on return, but not after an exception."""

    def __init__(self) -> None:
        self._busy = False

    def __call__(self, *inputs: Tensor) -> Outputs:
        nested, self._busy = self._busy, True
        new_h, new_cell = super().__call__(*inputs)
        self._busy = False
        return (new_h * 0.5, new_cell) if nested else (new_h, new_cell)
