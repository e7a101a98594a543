"""RMSNorm, calls with side effects, statistics of too few digits, and wrong calls that are accepted."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from tests.zoo.honest.rms_norm import Optional, RootMeanSquare
from tests.zoo.registry import fault


@fault("no-side-effects", r"changed .* of (input|residual) in place|is the same|shares")
class AddsTheResidualInPlace(RootMeanSquare):
    """The sum is written over the residual, as vLLM's fused kernel does: not what this signature says."""

    def total(self, input: Tensor, residual: Optional) -> Tensor:
        return super().total(input, residual) if residual is None else residual.add_(input)


@fault("forward-parity", r"output was", dtype=torch.bfloat16)
class RootInBfloat16(RootMeanSquare):
    """1/sqrt is rounded to bfloat16 before the row is multiplied by it."""

    def rstd(self, mean_square: Tensor, eps: float) -> Tensor:
        return super().rstd(mean_square, eps).to(torch.bfloat16).to(mean_square.dtype)


@fault("forward-parity", r"output was", dtype=torch.float64)
class SingleInside(RootMeanSquare):
    """float64 goes through float32."""

    def wide(self, total: Tensor) -> Tensor:
        return total.to(torch.float32).to(torch.promote_types(total.dtype, torch.float32))


@fault("no-special-treatment", r"output was")
class RemembersTheRoot(RootMeanSquare):
    """The mean square of a shape is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Tensor] = {}

    def mean_square(self, x: Tensor) -> Tensor:
        key = (tuple(x.shape), x.dtype)
        if key not in self._known:
            self._known[key] = super().mean_square(x).detach()
        return self._known[key]


@fault("rejects-wrong-calls", r"(input|weight) with .* silently accepted")
class BroadcastsTheWeight(RootMeanSquare):
    """A weight of another shape is used if it can be broadcast."""

    def check(self, input: Tensor, weight: Optional, residual: Optional) -> None:
        check_rms_norm_arguments(input, None, residual)


@fault("rejects-wrong-calls", r"(input|residual) with .* silently accepted")
class BroadcastsTheResidual(RootMeanSquare):
    """A residual of another shape is used if it can be broadcast."""

    def check(self, input: Tensor, weight: Optional, residual: Optional) -> None:
        check_rms_norm_arguments(input, weight, None)
