"""LayerNorm, calls with side effects, and wrong calls that are accepted."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from tests.zoo.honest.layer_norm import Dims, Norm
from tests.zoo.registry import fault


@fault("no-side-effects", r"changed .* of input in place|is the same|shares", defects=(23,))
class NormalisesInPlace(Norm):
    """Forward writes its result over its input, which backward still needs."""

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        input.copy_(output)
        return input.clone()


@fault("no-special-treatment", r"output was")
class RemembersTheVariance(Norm):
    """The variance of a shape is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Tensor] = {}

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        key = (tuple(x.shape), x.dtype, dims)
        if key not in self._known:
            self._known[key] = super().variance(x, mean, dims).detach()
        return self._known[key]


@fault("rejects-wrong-calls", r"normalized_shape .* silently accepted")
class TakesAnyNormalizedShape(Norm):
    """Only the number of normalised dimensions is checked, not their sizes."""

    def check(self, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None) -> None:
        check_layer_norm_arguments(input, tuple(input.shape[-max(len(normalized_shape), 1) :]), weight, bias)


@fault("rejects-wrong-calls", r"weight .* silently accepted")
class BroadcastsTheWeight(Norm):
    """A weight of another shape is used if it can be broadcast."""

    def check(self, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None) -> None:
        check_layer_norm_arguments(input, normalized_shape, None, bias)


@fault("error-messages", r"should name the argument", dtype=torch.float32)
class SaysNothing(Norm):
    """A wrong call is refused with a message that says nothing."""

    def check(self, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None) -> None:
        try:
            super().check(input, normalized_shape, weight, bias)
        except (TypeError, ValueError):
            raise ValueError("invalid arguments") from None


@fault("determinism", r"bit for bit")
class AddsInRandomOrder(Norm):
    """The order of summation in a row differs from call to call."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        rows = x.flatten(x.dim() - len(dims))
        order = torch.randperm(rows.shape[-1], generator=self._generator)
        mean = rows[..., order].sum(-1) / rows.shape[-1]
        return mean.reshape(*mean.shape, *(1 for _ in dims))

    def __init__(self) -> None:
        self._generator = torch.Generator().manual_seed(0)
